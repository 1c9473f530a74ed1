//! Helpers: parse, bufferize, print, and run upstream's tool.

use std::io::Write;
use std::process::{Command, Stdio};

use monopour_bufferize::op_model::{AliasModel, Buffers, OpModel, UseModel};
use monopour_bufferize::{Callees, Options, Rewriting, Stats, run_one_shot};
use monopour_ir::conversion::{ConversionRewriter, Declined};
use monopour_ir::{Context, Diagnostics, Module, Op};

/// Options for comparisons with upstream's pass.
pub fn boundaries() -> Options {
    Options { bufferize_function_boundaries: true, ..Options::default() }
}

pub fn parse<'c>(text: &str) -> Module<'c> {
    let cx = Context::new();
    Module::parse(cx, text.as_bytes(), "test.mlir").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Bufferizes and returns the module and the statistics; the result verifies.
pub fn bufferize<'c>(text: &str, options: &Options) -> Result<(Module<'c>, Stats), Diagnostics> {
    let module = parse(text);
    let stats = run_one_shot(module.op(), options)?;
    if let Err(e) = module.op().verify_with_diagnostics() {
        panic!("{e}\n{}", module.op());
    }
    Ok((module, stats))
}

/// Upstream's output, reprinted by us so that both texts come from one printer.
pub fn upstream(text: &str, options: &str) -> String {
    upstreams_pass(text, &format!("-one-shot-bufferize={options}"))
}

/// As [`upstream`], of another pass.
pub fn upstreams_pass(text: &str, pass: &str) -> String {
    let mut child = Command::new("mlir-opt-22")
        .arg(pass)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("mlir-opt-22 starts");
    child.stdin.take().expect("piped").write_all(text.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}\n{text}", String::from_utf8_lossy(&output.stderr));
    parse(&String::from_utf8_lossy(&output.stdout)).op().to_string()
}

/// The programs on which upstream and we agree.
pub fn agreed_programs() -> Vec<(String, String)> {
    programs().into_iter().filter(|(_, text)| !text.contains("// differs: ")).collect()
}

/// The options in a program's first line, as upstream's text and as ours.
pub fn option_line(text: &str) -> (String, Options) {
    let extra = text.lines().find_map(|l| l.strip_prefix("// options: ")).unwrap_or("").to_owned();
    let options = Options {
        use_encoding_for_memory_space: extra.contains("use-encoding"),
        allow_return_allocs_from_loops: extra.contains("allow-return-allocs"),
        ..boundaries()
    };
    (extra, options)
}

/// A model that claims that an operand aliases a value that it cannot alias.
pub struct WrongModel;

impl OpModel for WrongModel {
    fn use_of<'c>(&self, _op: Op<'c>, _operand: usize, _callees: &Callees<'c>) -> UseModel<'c> {
        UseModel::READ
    }
    fn aliases<'c>(&self, op: Op<'c>, _operand: usize, _callees: &Callees<'c>) -> Vec<AliasModel<'c>> {
        let first = op.block().and_then(|b| b.first_op()).expect("a block with an op");
        vec![AliasModel::equivalent(first.result(0))]
    }
    fn rewrite<'c>(
        &self,
        _op: Op<'c>,
        _: &Buffers<'c, '_>,
        _: &mut ConversionRewriter<'c>,
        _: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        Err(Declined::no_match("never rewritten"))
    }
}

/// The given programs of `tests/programs`, by file name.
pub fn programs() -> Vec<(String, String)> {
    programs_in(".")
}

/// Those of a folder in it.
pub fn programs_in(folder: &str) -> Vec<(String, String)> {
    let folder = format!("{}/tests/programs/{folder}", env!("CARGO_MANIFEST_DIR"));
    let mut found: Vec<_> = std::fs::read_dir(folder)
        .expect("folder exists")
        .map(|e| e.expect("entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "mlir"))
        .map(|p| {
            (
                p.file_stem().expect("named").to_string_lossy().into_owned(),
                std::fs::read_to_string(&p).expect("readable"),
            )
        })
        .collect();
    found.sort();
    found
}
