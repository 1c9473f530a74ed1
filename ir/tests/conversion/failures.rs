//! Conversions that cannot succeed, and patterns that break their contract.

use super::{Rename, check, make, parse, rename};
use monopour_ir::conversion::{ConversionTarget, Declined, Mode, PatternSet};
use monopour_ir::{Attr, Diagnostic, Diagnostics};

fn fails<'c>(text: &str, target: &ConversionTarget<'c, '_>, patterns: &PatternSet<'c, '_>, mode: Mode) -> Diagnostics {
    let module = parse(text);
    let errors = check(module, target, patterns, mode).expect_err("cannot be converted");
    module.op().verify_with_diagnostics().expect("what is left is valid");
    errors
}

#[test]
fn a_created_illegal_op_without_a_pattern_shows_its_chain() {
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a").illegal_op("t.b").illegal_op("t.c");
    let mut patterns = PatternSet::new();
    patterns.add(rename("t.a", "t.b")).add(rename("t.b", "t.c"));
    let errors = fails("\"t.a\"() : () -> ()\n", &target, &patterns, Mode::Partial);
    assert_eq!(
        errors.to_string(),
        "\
error[I0010]: 't.c' is illegal in the conversion target and no pattern converts it
  --> test.mlir:1:1
  note: no pattern has 't.c' as its root
  note: created or changed by pattern 'rename to t.c' on 't.b'
  note: created or changed by pattern 'rename to t.b' on 't.a'"
    );
}

#[test]
fn every_pattern_that_declined_says_why_and_all_ops_are_reported() {
    let mut target = ConversionTarget::new();
    target.illegal_dialect("t");
    let mut patterns = PatternSet::new();
    patterns.add(Rename { declines: true, ..rename("t.a", "n.a") });
    let errors = fails("\"t.a\"() : () -> ()\n\"t.b\"() : () -> ()\n", &target, &patterns, Mode::Partial);
    assert_eq!(errors.0.len(), 2);
    assert_eq!(errors.0[0].notes, ["pattern 'rename to n.a' declined: it is told to"]);
    assert_eq!(errors.0[1].location, "test.mlir:2:1");
}

#[test]
fn unknown_ops_remain_in_partial_mode_only() {
    let mut target = ConversionTarget::new();
    target.unknown_is_legal(false).legal_dialect("builtin");
    let patterns = PatternSet::new();
    let module = parse("\"t.a\"() : () -> ()\n");
    check(module, &target, &patterns, Mode::Partial).expect("may remain");
    let errors = fails("\"t.a\"() : () -> ()\n", &target, &patterns, Mode::Full);
    assert_eq!(
        errors.0[0].message,
        "'t.a' is not known to be legal in the conversion target and no pattern converts it"
    );
}

#[test]
fn patterns_that_undo_each_other_are_stopped() {
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a").illegal_op("t.b");
    let mut patterns = PatternSet::new();
    patterns.add(rename("t.a", "t.b")).add(rename("t.b", "t.a"));
    let errors = fails("\"t.a\"() : () -> ()\n", &target, &patterns, Mode::Partial);
    assert_eq!(errors.0[0].code, "I0011");
    assert_eq!(
        errors.0[0].notes[..2],
        [
            "created or changed by pattern 'rename to t.b' on 't.a'",
            "created or changed by pattern 'rename to t.a' on 't.b'",
        ]
    );
}

#[test]
fn a_pattern_that_touches_nothing_may_not_report_success() {
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a");
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |_, _, _| Ok(()));
    let errors = fails("\"t.a\"() : () -> ()\n", &target, &patterns, Mode::Partial);
    assert_eq!(errors.0[0].code, "I0012");
    assert_eq!(
        errors.0[0].message,
        "pattern 'convert t.a' reports success but has not replaced, erased or changed 't.a'"
    );
}

#[test]
fn a_pattern_that_touched_the_ir_may_not_decline() {
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a");
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        make(rw, "t.b", op, &[])?;
        Err(Declined::no_match("changed its mind"))
    });
    let errors = fails("\"t.a\"() : () -> ()\n", &target, &patterns, Mode::Partial);
    assert_eq!(
        errors.0[0].message,
        "pattern 'convert t.a' declines (changed its mind) after it changed the IR around 't.a'"
    );
}

#[test]
fn invalid_ir_is_noticed_after_the_pattern_that_made_it() {
    let module = parse("\"t.a\"() : () -> ()\n");
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a");
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        rw.create(monopour_ir::OpSpec::new("func.func", op.location()).attr("sym_name", Attr::unit(op.context())))?;
        rw.erase(op);
        Ok(())
    });
    let errors = check(module, &target, &patterns, Mode::Partial).expect_err("invalid");
    assert!(errors.has_errors());
}

#[test]
fn a_failing_pattern_stops_the_conversion_with_its_own_diagnostics() {
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a");
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, _| Err(Diagnostic::error("I0010", op.location(), "no such thing").into()));
    patterns.add(rename("t.a", "t.b"));
    let errors = fails("\"t.a\"() : () -> ()\n", &target, &patterns, Mode::Partial);
    assert_eq!(errors.0[0].message, "no such thing");
}
