//! The order of the phases: a table as data, from which `--emit`, `--dump-after`, timings and help texts come.
//!
//! A phase takes the module of one variant to the next form and promises a [`Contract`]; the next phase trusts it.
//! The last step, `emit`, turns the scheduled module into kernels and native code.

use crate::options::{CompileOptions, TargetDescription, target_kind};
use crate::report::{Dump, Report, Timing};
use monopour_bufferize::{Options, eliminate_empty_tensors, run_one_shot};
use monopour_contract::attributes;
use monopour_frontend as frontend;
use monopour_ir::{
    Attr, CANONICALIZE, Context, Contract, Diagnostic, Diagnostics, Module, Op, PrintOptions, run_passes,
};
use monopour_program::{Constant, CopyNote, DType, DYNAMIC, Program, Signature, TensorDesc, Variant};
use monopour_split as split;
use std::path::Path;
use std::time::Instant;

mod copies;
mod emit;

/// One phase of the way from a model to a program.
pub struct Phase {
    /// The name that `--emit` and `--dump-after` take.
    pub name: &'static str,
    /// One line of help.
    pub help: &'static str,
    run: fn(&mut State<'_>) -> Result<(), Diagnostics>,
    contract: fn(&TargetDescription) -> Contract,
}

/// All phases, in order.
pub const PHASES: [Phase; 10] = [
    Phase { name: "import", help: "canonical linalg on tensors", run: import, contract: on_tensors },
    Phase { name: "fuse", help: "elementwise ops fused, dispatch roots marked", run: fuse, contract: on_tensors },
    Phase { name: "tile", help: "one scf.forall over tiles per dispatch", run: tile, contract: tiled },
    Phase { name: "place", help: "host or device for each op, memory spaces", run: place, contract: tiled },
    Phase {
        name: "bufferize",
        help: "memrefs instead of tensors, in place where it is safe",
        run: bufferize,
        contract: on_memrefs,
    },
    Phase { name: "dealloc", help: "every allocation freed once, or returned", run: dealloc, contract: on_memrefs },
    Phase { name: "outline", help: "each dispatch a kernel function of a tile id", run: outline, contract: on_memrefs },
    Phase {
        name: "distribute",
        help: "a GPU tile spread over the invocations of a workgroup",
        run: distribute,
        contract: distributed,
    },
    Phase { name: "plan", help: "transients placed in one arena", run: plan, contract: distributed },
    Phase { name: "schedule", help: "the host function as calls of the runtime", run: schedule, contract: distributed },
];

/// What a compilation makes.
pub struct Compiled {
    /// The program, one variant per target.
    pub program: Program,
    /// Timings, dumps and remarks.
    pub report: Report,
}

/// A variant on its way through the phases.
struct State<'a> {
    cx: Context,
    source: &'a [u8],
    file: &'a str,
    options: &'a CompileOptions,
    target: &'a TargetDescription,
    imported: Option<frontend::import::Imported>,
    entry: String,
    known_constants: Vec<String>,
    scheduled: split::schedule::Scheduled,
    plan: split::plan::Report,
    copies: Vec<CopyNote>,
    kernel_copies: split::copies::KernelCopies,
    pooled: Vec<split::plan::Pooled>,
    report: &'a mut Report,
}

/// Compiles MLIR text or bytecode; `file` is its name in diagnostics, and weights are looked for beside it.
///
/// # Errors
/// Diagnostics of the phase that failed.
pub fn compile(source: &[u8], file: &str, options: &CompileOptions) -> Result<Compiled, Diagnostics> {
    let mut report = Report::default();
    let mut program = Program {
        entry: String::new(),
        signature: Signature::default(),
        constants: vec![],
        variants: vec![],
        producer: concat!("monopour ", env!("CARGO_PKG_VERSION")).to_owned(),
    };
    let mut known_constants = Vec::new();
    for target in &options.targets {
        let variant =
            Context::scope(|cx| compile_variant(cx, source, file, options, target, &mut report, &mut known_constants))?;
        program.entry = variant.entry;
        program.signature = variant.signature;
        program.constants = variant.constants;
        program.variants.push(variant.variant);
    }
    Ok(Compiled { program, report })
}

/// Compiles a file.
///
/// # Errors
/// I0031 when the file cannot be read; else as [`compile`].
pub fn compile_file(path: &Path, options: &CompileOptions) -> Result<Compiled, Diagnostics> {
    let source = read(path)?;
    compile(&source, &path.display().to_string(), options)
}

fn read(path: &Path) -> Result<Vec<u8>, Diagnostics> {
    std::fs::read(path).map_err(|e| {
        let message = format!("cannot read {}: {e}", path.display());
        Diagnostic::global("I0031", message).with_help("check the path and its permissions").into()
    })
}

struct VariantParts {
    entry: String,
    signature: Signature,
    constants: Vec<Constant>,
    variant: Variant,
}

fn compile_variant(
    cx: Context,
    source: &[u8],
    file: &str,
    options: &CompileOptions,
    target: &TargetDescription,
    report: &mut Report,
    known_constants: &mut Vec<String>,
) -> Result<VariantParts, Diagnostics> {
    let mut state = State {
        cx,
        source,
        file,
        options,
        target,
        imported: None,
        entry: String::new(),
        known_constants: std::mem::take(known_constants),
        scheduled: Default::default(),
        plan: Default::default(),
        copies: vec![],
        kernel_copies: Default::default(),
        pooled: vec![],
        report,
    };
    state.cx.allow_unregistered_dialects(true);
    let mut boundary = None;
    for phase in &PHASES {
        run_phase(&mut state, phase)?;
        if phase.name == "import" {
            boundary = Some(signature(&state)?);
        }
    }
    let variant = timed(&mut state, "emit", emit::emit_variant)?;
    let weights = |name: &str| state.imported.as_ref().and_then(|i| i.weights.get(name)).map(frontend::Weight::data);
    let constants = split::constants::collect(state.module(), &state.scheduled.constants, &weights)?;
    *known_constants = state.scheduled.constants.clone();
    let signature = boundary.expect("import is the first phase");
    Ok(VariantParts { entry: state.entry.clone(), signature, constants, variant })
}

fn run_phase(state: &mut State<'_>, phase: &Phase) -> Result<(), Diagnostics> {
    timed(state, phase.name, phase.run)?;
    if state.options.verify || cfg!(debug_assertions) {
        (phase.contract)(state.target).verify(phase.name, state.module().op())?;
    }
    if state.options.dump_after.iter().any(|p| p == phase.name) {
        let text = state.module().op().print(&PrintOptions { elide_larger_than: Some(64), ..Default::default() });
        state.report.dumps.push(Dump { phase: phase.name.to_owned(), target: target_kind(state.target), text });
    }
    Ok(())
}

fn timed<'a, T>(
    state: &mut State<'a>,
    phase: &'static str,
    run: impl FnOnce(&mut State<'a>) -> Result<T, Diagnostics>,
) -> Result<T, Diagnostics> {
    if let Some(watch) = &state.options.watch {
        watch.begins(phase, target_kind(state.target));
    }
    let (start, cpu_start) = (Instant::now(), cpu_ms());
    let result = run(state)?;
    let elapsed_ms = start.elapsed().as_secs_f64() * 1e3;
    let cpu_ms = cpu_ms().zip(cpu_start).map(|(end, start)| end - start);
    state.report.timings.push(Timing { phase, target: target_kind(state.target), elapsed_ms, cpu_ms });
    Ok(result)
}

/// CPU time of this process so far.
#[cfg(unix)]
fn cpu_ms() -> Option<f64> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6)
}

#[cfg(not(unix))]
fn cpu_ms() -> Option<f64> {
    None
}

impl State<'_> {
    fn module(&self) -> &Module {
        &self.imported.as_ref().expect("import is the first phase").module
    }

    /// The function that the host runs.
    fn host(&self) -> Op {
        self.module().symbol(&self.entry).expect("phases keep the entry function")
    }

    fn is_gpu(&self) -> bool {
        matches!(self.target, TargetDescription::Gpu(_))
    }
}

fn import(state: &mut State<'_>) -> Result<(), Diagnostics> {
    let options = frontend::import::ImportOptions {
        entry: state.options.entry.clone(),
        weights: state.options.weights.clone(),
        donate: state.options.donate.clone(),
    };
    let imported = frontend::import::run(state.cx, state.source, state.file, &options)?;
    state.entry = imported.entry.clone();
    state.imported = Some(imported);
    Ok(())
}

fn fuse(state: &mut State<'_>) -> Result<(), Diagnostics> {
    frontend::fuse::run(state.module())
}

fn tile(state: &mut State<'_>) -> Result<(), Diagnostics> {
    let schedule = state.options.schedule.as_ref().map(|path| read_schedule(state.cx, path)).transpose()?;
    let options = frontend::TileOptions { target: state.target.clone(), schedule };
    if let TargetDescription::Gpu(description) = state.target {
        frontend::windows::run(state.module(), description)?;
    }
    let tiled = frontend::tile::run(state.module(), &options)?;
    for text in tiled.scripts {
        if state.options.dump_after.iter().any(|p| p == "transforms") {
            state.report.dumps.push(Dump { phase: "transforms".to_owned(), target: target_kind(state.target), text });
        }
    }
    Ok(())
}

fn read_schedule(cx: Context, path: &Path) -> Result<Module, Diagnostics> {
    let source = read(path)?;
    Module::parse(cx, &source, &path.display().to_string())
}

fn place(state: &mut State<'_>) -> Result<(), Diagnostics> {
    frontend::place::run(state.module(), state.target)
}

fn bufferize(state: &mut State<'_>) -> Result<(), Diagnostics> {
    let options = Options { use_encoding_for_memory_space: state.is_gpu(), ..Options::pipeline() };
    eliminate_empty_tensors(state.module().op(), &options)?;
    let stats = run_one_shot(state.module().op(), &options)?;
    state.report.in_place += stats.in_place as usize;
    state.report.out_of_place += stats.out_of_place as usize;
    note_copies(state, stats.remarks, &stats.remark_bytes);
    // Subviews of one slice become one value, and a copy of a slice to itself folds away.
    run_passes(state.module().op(), &format!("builtin.module({CANONICALIZE},cse,{CANONICALIZE})"))
}

/// Every copy that a phase inserted, with its reason; a new buffer without contents is none.
fn note_copies(state: &mut State<'_>, remarks: Diagnostics, bytes: &[Option<u64>]) {
    state.copies.extend(copies::inserted(&remarks, bytes));
    state.report.remarks.0.extend(remarks.0);
}

fn dealloc(state: &mut State<'_>) -> Result<(), Diagnostics> {
    let options = monopour_dealloc::Options { extensions: true, ..Default::default() };
    let stats = monopour_dealloc::run_ownership(state.module().op(), &options)?;
    note_copies(state, stats.remarks, &stats.remark_bytes);
    if !state.is_gpu() {
        monopour_dealloc::promote::run(state.module().op())?;
    }
    Ok(())
}

fn outline(state: &mut State<'_>) -> Result<(), Diagnostics> {
    let most_binding_bytes = match state.target {
        TargetDescription::Gpu(description) => description.limits.max_binding_bytes,
        TargetDescription::Cpu(_) => u64::MAX,
    };
    split::outline::run_for(state.module(), most_binding_bytes)?;
    state.kernel_copies = split::copies::of_kernels(state.module());
    Ok(())
}

fn distribute(state: &mut State<'_>) -> Result<(), Diagnostics> {
    match state.target {
        TargetDescription::Gpu(description) => {
            let report = monopour_codegen_gpu::distribute::run(state.module(), description)?;
            let remarks = report.remarks(state.module());
            state.report.remarks.0.extend(remarks.0);
            Ok(())
        }
        TargetDescription::Cpu(_) => Ok(()),
    }
}

fn plan(state: &mut State<'_>) -> Result<(), Diagnostics> {
    state.plan = split::plan::run(state.module(), state.host())?;
    state.pooled = split::plan::pooled(state.host());
    Ok(())
}

fn schedule(state: &mut State<'_>) -> Result<(), Diagnostics> {
    let sites = split::copies::of_host(state.module(), state.host(), &state.kernel_copies, state.is_gpu());
    state.copies = copies::explained(&sites, std::mem::take(&mut state.copies));
    let known = std::mem::take(&mut state.known_constants);
    state.scheduled = split::schedule::run(state.module(), state.host(), known)?;
    Ok(())
}

const SCALAR: [&str; 9] = ["func", "arith", "math", "scf", "affine", "ub", "vector", "linalg", "tensor"];

fn on_tensors(_: &TargetDescription) -> Contract {
    Contract {
        dialects: &["func", "linalg", "tensor", "arith", "math", "scf", "affine"],
        ops: &[
            "cf.assert",
            "bufferization.to_tensor",
            "bufferization.to_buffer",
            "bufferization.materialize_in_destination",
            "bufferization.alloc_tensor",
        ],
        tensors: true,
        memrefs: false,
    }
}

fn tiled(_: &TargetDescription) -> Contract {
    Contract { dialects: &SCALAR, ops: &["bufferization.alloc_tensor", "cf.assert"], tensors: true, memrefs: false }
}

fn on_memrefs(_: &TargetDescription) -> Contract {
    Contract {
        dialects: &["func", "arith", "math", "scf", "affine", "ub", "vector", "linalg", "memref"],
        ops: &["cf.assert"],
        tensors: false,
        memrefs: true,
    }
}

fn distributed(target: &TargetDescription) -> Contract {
    match target {
        TargetDescription::Gpu(_) => Contract {
            dialects: &["func", "arith", "math", "scf", "memref", "vector", "gpu", "ub"],
            ops: &["cf.assert"],
            tensors: false,
            memrefs: true,
        },
        TargetDescription::Cpu(_) => on_memrefs(target),
    }
}

/// Names, types, donations and size rules of the entry function's arguments and results.
fn signature(state: &State<'_>) -> Result<Signature, Diagnostics> {
    let func = state.host();
    let (inputs, results) = func.function_type().expect("the entry is a function");
    let describe = |list: &str, prefix: &str, i: usize, ty: monopour_ir::Type| -> Result<TensorDesc, Diagnostics> {
        let attrs = func.attr(list).and_then(|a| a.as_array()).and_then(|a| a.get(i).copied());
        let named = |key: &str| attrs.and_then(|a: Attr| a.get(key));
        let unsupported = || {
            Diagnostic::error(
                "F0003",
                func.location(),
                format!("{prefix}{i} of type {ty} cannot cross the boundary of a program"),
            )
            .with_help("pass ranked tensors, integers, floats and index values")
        };
        let name = named(attributes::NAME).and_then(|n| n.as_string().map(str::to_owned));
        let size = |extent: i64| u64::try_from(extent).unwrap_or(DYNAMIC);
        // The import leaves no sign in a type; an unsigned one is noted here.
        let unsigned = named(attributes::DTYPE).and_then(|d| d.as_string().and_then(DType::parse));
        let dtype = unsigned.or_else(|| DType::parse(&ty.element().to_string()));
        let shape = ty.as_tensor().map(|tensor| tensor.shape.into_iter().map(size).collect());
        Ok(TensorDesc {
            name: name.unwrap_or_else(|| format!("{prefix}{i}")),
            dtype: dtype.ok_or_else(unsupported)?,
            scalar: shape.is_none(),
            shape: shape.unwrap_or_default(),
            donated: named(attributes::DONATE).is_some(),
        })
    };
    let sizes = state.imported.as_ref().map(|imported| imported.sizes.clone()).unwrap_or_default();
    let mut out = Signature { sizes, ..Signature::default() };
    for (i, ty) in inputs.into_iter().enumerate() {
        out.inputs.push(describe("arg_attrs", "arg", i, ty)?);
    }
    for (i, ty) in results.into_iter().enumerate() {
        out.results.push(describe("res_attrs", "result", i, ty)?);
    }
    Ok(out)
}
