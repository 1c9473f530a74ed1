//! Upstream's conversions as patterns of ours: the same IR, op for op.
//!
//! Upstream's driver folds the ops that it visits, ours does not. So the random inputs are folded first.

mod differences;
mod generate;
mod orders;

use crate::lowerings::{scf_to_cf, to_llvm};
use generate::Options;
use monopour_ir::conversion::ConversionStats;
use monopour_ir::{Context, Diagnostics, Module, Op, WalkOrder, run_passes};

const SCF_TO_CF: &str = "builtin.module(convert-scf-to-cf)";
const TO_LLVM: &str =
    "builtin.module(convert-arith-to-llvm,convert-func-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts)";
const FOLD: &str = "builtin.module(canonicalize{region-simplify=disabled})";

const ALL: Options = Options { structured: true, parallel: true };
const UNSTRUCTURED: Options = Options { structured: false, parallel: false };

const STRUCTURED: &str = include_str!("upstream/structured.mlir");
const FUNCTIONS: &str = include_str!("upstream/functions_and_branches.mlir");
const ARITH: &str = include_str!("upstream/arith.mlir");

/// The modules of a file, each in its own context; returns their number.
fn for_each_module(text: &str, check: impl Fn(&Module)) -> usize {
    let parts = text.split("// -----\n");
    parts.map(|part| Context::scope(|cx| check(&parse(cx, part)))).count()
}

fn parse<'c>(cx: Context<'c>, text: &str) -> Module<'c> {
    Module::parse(cx, text.as_bytes(), "test.mlir").unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

/// Programs made from seeds, in which nothing folds.
fn for_each_program(seeds: std::ops::Range<u64>, options: Options, check: impl Fn(&Module)) {
    for seed in seeds {
        Context::scope(|cx| {
            let module = parse(cx, &generate::program(seed, options));
            run_passes(module.op(), FOLD).expect("folds");
            check(&module);
        });
    }
}

/// Both conversions of a module give the same text, and leave no cast.
fn same<'c>(
    module: &'c Module<'c>,
    ours: impl FnOnce(Op<'c>) -> Result<ConversionStats, Diagnostics>,
    theirs: &[&str],
) {
    let copy = module.duplicate();
    let before = module.op().to_string();
    for pipeline in theirs {
        run_passes(copy.op(), pipeline).expect("upstream converts");
    }
    let stats = ours(module.op()).unwrap_or_else(|errors| panic!("{errors}\n{before}\nNOW {}", module.op()));
    module.op().verify_with_diagnostics().expect("is valid");
    same_text(&numbered(&module.op().to_string()), &numbered(&copy.op().to_string()), &before);
    assert_eq!(stats.casts_left, 0);
    assert!(module.op().find_all(to_llvm::CAST).is_empty());
}

/// Upstream numbers assertion messages by a process-wide counter: here, by first occurrence.
fn numbered(text: &str) -> String {
    let mut seen: Vec<&str> = vec![];
    let mut parts = text.split("assert_msg_");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (number, rest) = part.split_at(part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len()));
        let position = seen.iter().position(|known| *known == number).unwrap_or_else(|| {
            seen.push(number);
            seen.len() - 1
        });
        out.push_str(&format!("assert_msg_{position}{rest}"));
    }
    out
}

/// Reports the first lines that differ instead of two texts of a thousand lines.
fn same_text(ours: &str, theirs: &str, before: &str) {
    let lines = || ours.lines().zip(theirs.lines()).enumerate();
    if let Some((number, (ours, theirs))) = lines().find(|(_, (ours, theirs))| ours != theirs) {
        panic!("line {number}:\n ours: {ours}\n theirs: {theirs}\nof\n{before}");
    }
    assert_eq!(ours, theirs, "of\n{before}");
}

#[test]
fn arithmetic_to_llvm() {
    assert_eq!(for_each_module(ARITH, |module| same(module, to_llvm::convert, &[TO_LLVM])), 10);
}

#[test]
fn functions_and_branches_to_llvm() {
    assert_eq!(for_each_module(FUNCTIONS, |module| same(module, to_llvm::convert, &[TO_LLVM])), 14);
}

#[test]
fn structured_control_flow_to_blocks_then_to_llvm() {
    let modules = for_each_module(STRUCTURED, |module| {
        same(module, scf_to_cf::convert, &[SCF_TO_CF]);
        same(module, to_llvm::convert, &[TO_LLVM]);
    });
    assert_eq!(modules, 16);
}

#[test]
fn random_functions_to_llvm() {
    for_each_program(0..40, UNSTRUCTURED, |module| same(module, to_llvm::convert, &[TO_LLVM]));
}

/// Returns change with their function; no op is converted twice.
#[test]
fn every_op_is_converted_once() {
    for_each_program(500..505, UNSTRUCTURED, |module| {
        let mut illegal = 0;
        module.op().walk(WalkOrder::Pre, |op| {
            illegal += usize::from(["arith", "func", "cf"].contains(&op.dialect()) && !op.is("func.return"));
        });
        let stats = to_llvm::convert(module.op()).expect("converts");
        assert_eq!(stats.patterns_applied, illegal);
        assert!(stats.max_live_casts <= stats.casts_created && stats.casts_created < 3 * illegal);
    });
}

#[test]
fn random_structured_programs_to_blocks_then_to_llvm() {
    for_each_program(0..40, ALL, |module| {
        same(module, scf_to_cf::convert, &[SCF_TO_CF]);
        same(module, to_llvm::convert, &[TO_LLVM]);
    });
}
