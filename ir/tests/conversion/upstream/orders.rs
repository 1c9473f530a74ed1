//! The order of conversions does not change the result.

use super::generate::Options;
use super::{
    ALL, ARITH, FUNCTIONS, SCF_TO_CF, STRUCTURED, TO_LLVM, UNSTRUCTURED, for_each_module, for_each_program, same,
};
use crate::lowerings::{scf_to_cf, to_llvm};
use monopour_ir::conversion::{
    ConversionOptions, ConversionStats, Mode, PatternSet, Stage, WorklistOrder, convert_in_stages, convert_with,
};
use monopour_ir::{Diagnostics, Module, Op};

/// `scf` to `cf` first, LLVM second, as one sequence of stages.
fn in_two_stages(root: Op) -> Result<ConversionStats, Diagnostics> {
    let converter = to_llvm::type_converter(root.context());
    let (blocks, llvm) = (scf_to_cf::patterns(root.context()), to_llvm::patterns(root.context(), &converter));
    let (to_cf, to_llvm) = (scf_to_cf::target(), to_llvm::target());
    let stages = [
        Stage { name: "scf to cf", target: &to_cf, patterns: &blocks, mode: Mode::Full },
        Stage { name: "to llvm", target: &to_llvm, patterns: &llvm, mode: Mode::Full },
    ];
    Ok(convert_in_stages(root, &stages, ConversionOptions::default)?[1])
}

#[test]
fn both_conversions_as_stages() {
    let check = |module: &Module| same(module, in_two_stages, &[SCF_TO_CF, TO_LLVM]);
    assert_eq!(for_each_module(STRUCTURED, check), 16);
    for_each_program(100..110, ALL, check);
}

/// All patterns in one conversion: ops that one creates, another converts.
fn at_once(root: Op, options: ConversionOptions<'_>) -> Result<ConversionStats, Diagnostics> {
    let converter = to_llvm::type_converter(root.context());
    let mut patterns = to_llvm::patterns(root.context(), &converter);
    scf_to_cf::add_patterns(&mut patterns, root.context());
    let mut target = to_llvm::target();
    target.illegal_dialect("scf");
    convert_with(root, &target, &patterns, Mode::Full, options)
}

#[test]
fn both_conversions_at_once() {
    let check =
        |module: &Module| same(module, |root| at_once(root, ConversionOptions::default()), &[SCF_TO_CF, TO_LLVM]);
    assert_eq!(for_each_module(STRUCTURED, check), 16);
    for_each_program(200..210, ALL, check);
}

/// A call of a function that is already converted has no valid callee: only its own conversion makes it valid again.
fn has_symbol_uses(root: Op) -> bool {
    ["func.call", "func.constant", "cf.assert"].iter().any(|name| !root.find_all(name).is_empty())
}

#[test]
fn every_step_is_valid_and_no_pattern_works_around_the_rewriter() {
    let check = |module: &Module| {
        let verify_each = !has_symbol_uses(module.op());
        let strict = || ConversionOptions { verify_each, fingerprint: true, ..Default::default() };
        same(module, |root| at_once(root, strict()), &[SCF_TO_CF, TO_LLVM]);
    };
    for text in [STRUCTURED, FUNCTIONS, ARITH] {
        for_each_module(text, check);
    }
}

#[test]
fn the_order_of_the_worklist_does_not_matter() {
    for order in [WorklistOrder::LastFirst, WorklistOrder::Shuffled(1), WorklistOrder::Shuffled(2)] {
        let options = || ConversionOptions { worklist_order: order, ..Default::default() };
        let check = |module: &Module| same(module, |root| at_once(root, options()), &[SCF_TO_CF, TO_LLVM]);
        // A nest of loops that a pattern creates must be converted from the outside in, whatever the order.
        let sequential = |module: &Module| {
            if module.op().find_all("scf.parallel").is_empty() {
                check(module);
            }
        };
        for_each_module(STRUCTURED, sequential);
        for_each_program(300..305, Options { parallel: false, ..ALL }, check);
    }
}

/// One dialect after the other. The last stage reconciles the remaining casts.
fn one_by_one(root: Op, dialects: [&str; 3]) -> Result<ConversionStats, Diagnostics> {
    let cx = root.context();
    let converter = to_llvm::type_converter(cx);
    let verify_each = !has_symbol_uses(root);
    let mut stats = ConversionStats::default();
    for (i, dialect) in dialects.into_iter().enumerate() {
        let mut patterns = PatternSet::with_converter(&converter);
        match dialect {
            "arith" => to_llvm::add_arith(&mut patterns, cx, &converter),
            "func" => to_llvm::add_func(&mut patterns, cx, &converter),
            _ => to_llvm::add_cf(&mut patterns, cx, &converter),
        }
        let mut target = to_llvm::target_without(&[dialect]);
        let mut mode = Mode::Partial;
        if i == 2 {
            target.illegal_op(to_llvm::CAST);
            to_llvm::add_reconcile(&mut patterns);
            mode = Mode::Full;
        }
        let name = format!("{dialect} to llvm");
        let stage = [Stage { name: &name, target: &target, patterns: &patterns, mode }];
        let options = || ConversionOptions { verify_each, ..Default::default() };
        stats = convert_in_stages(root, &stage, options)?[0];
    }
    Ok(stats)
}

/// Functions and branches change the same block arguments: the first one changes them, and both orders work.
#[test]
fn dialects_in_any_order() {
    for order in [
        ["func", "cf", "arith"],
        ["cf", "func", "arith"],
        ["arith", "func", "cf"],
        ["arith", "cf", "func"],
        ["func", "arith", "cf"],
        ["cf", "arith", "func"],
    ] {
        let check = |module: &Module| same(module, |root| one_by_one(root, order), &[TO_LLVM]);
        for_each_module(FUNCTIONS, check);
        for_each_module(ARITH, check);
    }
}

#[test]
fn random_programs_with_functions_before_and_after_branches() {
    for order in [["func", "cf", "arith"], ["cf", "func", "arith"]] {
        let check = |module: &Module| same(module, |root| one_by_one(root, order), &[TO_LLVM]);
        for_each_program(400..405, UNSTRUCTURED, check);
    }
}
