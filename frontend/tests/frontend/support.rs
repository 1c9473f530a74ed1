//! Runs the phases and counts their results.

use monopour_frontend::{ImportOptions, TargetDescription, TileOptions, fuse, import, place, tile};
use monopour_ir::{CANONICALIZE, Context, Diagnostics, Module, Op, run_passes};
use monopour_program::{CpuTarget, DeviceType, GpuDescription, GpuFeature};

pub fn lavapipe() -> TargetDescription {
    let mut gpu = GpuDescription::portable();
    gpu.device_type = DeviceType::Cpu;
    gpu.features = vec![GpuFeature::Subgroup, GpuFeature::Int64];
    (gpu.subgroup_min_size, gpu.subgroup_max_size) = (8, 8);
    TargetDescription::Gpu(gpu)
}

pub fn portable() -> TargetDescription {
    TargetDescription::Gpu(GpuDescription::portable())
}

pub fn cpu(name: &str) -> TargetDescription {
    TargetDescription::Cpu(CpuTarget::parse(name).expect("a known CPU"))
}

pub fn import_text<'c>(text: &str) -> Result<import::Imported<'c>, Diagnostics> {
    import::run(Context::new(), text.as_bytes(), "test.mlir", &ImportOptions::default())
}

/// Runs all phases; each phase's output must parse again.
pub fn compile<'c>(text: &str, target: &TargetDescription) -> Module<'c> {
    compile_module(import_text(text).expect("imports").module, target)
}

/// Runs all phases but the import.
pub fn compile_module<'c>(module: Module<'c>, target: &TargetDescription) -> Module<'c> {
    run_passes(module.op(), "builtin.module(func.func(convert-elementwise-to-linalg))").expect("converts");
    reparses(&module);
    fuse::run(&module).expect("fuses");
    reparses(&module);
    let options = TileOptions { target: target.clone(), schedule: None, tuning: None, effort: Default::default() };
    tile::run(&module, &options).expect("tiles");
    reparses(&module);
    place::run(&module, target).expect("places");
    reparses(&module);
    module
}

pub fn reparses(module: &Module) {
    module.op().verify_with_diagnostics().unwrap_or_else(|e| panic!("{e}\n{}", module.op()));
    let text = module.op().to_string();
    Module::parse(Context::new(), text.as_bytes(), "again.mlir").unwrap_or_else(|e| panic!("{e}\n{text}"));
}

/// The dispatches, in order.
pub fn dispatches<'c>(module: &'c Module<'c>) -> Vec<Op<'c>> {
    let foralls = module.op().find_all("scf.forall").into_iter();
    foralls.filter(|f| f.attr("monopour.kernel").is_some()).collect()
}

pub fn kernel_text(forall: Op, key: &str) -> String {
    let kernel = forall.attr("monopour.kernel").expect("a kernel");
    let value = kernel.get(key).unwrap_or_else(|| panic!("{key} in {kernel}"));
    value.as_string().map_or_else(|| value.to_string(), str::to_owned)
}

/// Allocations and copies after upstream's one-shot bufferization, with its output.
pub fn bufferized(module: &Module) -> (usize, usize, String) {
    let copy = module.duplicate();
    let pipeline = format!(
        "builtin.module(one-shot-bufferize{{bufferize-function-boundaries use-encoding-for-memory-space \
         function-boundary-type-conversion=identity-layout-map allow-return-allocs-from-loops}},{CANONICALIZE},cse,{CANONICALIZE})"
    );
    run_passes(copy.op(), &pipeline).unwrap_or_else(|e| panic!("{e}\n{}", module.op()));
    let count = |name| copy.op().find_all(name).len();
    // Those inside a dispatch go to the task's stack.
    let outside = |op: &Op| op.ancestor("scf.forall").is_none();
    let allocations = copy.op().find_all("memref.alloc").into_iter().filter(outside).count();
    (allocations, count("memref.copy") + count("linalg.copy"), copy.op().to_string())
}

/// Compiles, and expects this many dispatches, as many allocations, and no copy.
pub fn check<'c>(text: &str, target: &TargetDescription, expected: usize) -> Module<'c> {
    let module = compile(text, target);
    assert_eq!(dispatches(&module).len(), expected, "dispatches in\n{}", module.op());
    let structured = ["linalg.fill", "linalg.matmul", "linalg.generic"];
    for op in structured.into_iter().flat_map(|n| module.op().find_all(n)) {
        assert!(op.ancestor("scf.forall").is_some(), "'{}' is in a dispatch in\n{}", op.name(), module.op());
    }
    let (allocs, copies, after) = bufferized(&module);
    assert_eq!((allocs, copies), (expected, 0), "allocations, copies in\n{}\nfrom\n{}", after, module.op());
    module
}
