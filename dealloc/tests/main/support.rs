//! Helpers: programs on memrefs, and passes over them.

use monopour_dealloc::{Options, Stats, run_ownership};
use monopour_ir::{Context, Diagnostics, Module, run_passes};

pub const EXTENSIONS: Options =
    Options { extensions: true, private_function_dynamic_ownership: false, allow_unknown_effects: false };
pub const UPSTREAM: Options =
    Options { extensions: false, private_function_dynamic_ownership: false, allow_unknown_effects: false };

pub fn parse<'c>(text: &str) -> Module<'c> {
    let cx = Context::new();
    cx.allow_unregistered_dialects(true);
    Module::parse(cx, text.as_bytes(), "test.mlir").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

pub fn dealloc<'c>(text: &str, options: &Options) -> Result<(Module<'c>, Stats), Diagnostics> {
    let module = parse(text);
    let stats = run_ownership(module.op(), options)?;
    if let Err(e) = module.op().verify_with_diagnostics() {
        panic!("{e}\n{}", module.op());
    }
    Ok((module, stats))
}

pub fn passes(text: &str, pipeline: &str) -> String {
    let module = parse(text);
    run_passes(module.op(), &format!("builtin.module({pipeline})")).unwrap_or_else(|e| panic!("{e}\n{text}"));
    module.op().to_string()
}

/// The programs of the bufferization tests, bufferized.
pub fn programs() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../bufferize/tests/programs");
    let mut found: Vec<_> = std::fs::read_dir(folder).expect("folder exists")
        .map(|e| e.expect("entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "mlir"))
        .map(|p| {
            let name = p.file_stem().expect("named").to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&p).expect("readable");
            let bufferize = "one-shot-bufferize{bufferize-function-boundaries allow-return-allocs-from-loops function-boundary-type-conversion=identity-layout-map},canonicalize,cse";
            (name, passes(&text, bufferize))
        })
        .collect();
    found.sort();
    assert!(found.len() > 30);
    found
}

/// Whether a program has only regions with known forwarding.
pub fn is_known(text: &str) -> bool {
    let unknown = [
        "scf.index_switch",
        "scf.execute_region",
        "scf.parallel",
        "shape.assuming",
        "cf.br",
        "cf.cond_br",
        "cf.switch",
    ];
    !unknown.iter().any(|op| text.contains(op))
}
