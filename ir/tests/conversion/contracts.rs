//! Patterns that break their contract: each is stopped with a diagnostic, on valid IR; a clone keeps the input unchanged.

use super::lower::{create, fails_with, snapshot};
use super::{make, parse, rename};
use monopour_ir::conversion::{
    ConversionOptions, ConversionTarget, Declined, Mode, PatternSet, convert, convert_with, on_clone,
};
use monopour_ir::{Attr, Builder, Diagnostic, OpSpec, Type};

/// The illegal ops.
fn target<'c>() -> ConversionTarget<'c, 'static> {
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a").illegal_op("t.b").illegal_op("t.c");
    target
}

/// The conversion fails with these diagnostics, in place and on a clone.
#[track_caller]
pub(crate) fn stops(text: &str, patterns: &PatternSet<'_, '_>, expected: &str) {
    let module = parse(text);
    let before = snapshot(module);
    let options = ConversionOptions { verify_each: true, fingerprint: true, ..Default::default() };
    let on_copy =
        on_clone(module.op(), |clone| convert_with(clone, &target(), patterns, Mode::Partial, options)).map(|_| ());
    assert_eq!(snapshot(module), before, "the input is as it was");
    let in_place = fails_with(module, &target(), patterns, expected);
    assert_eq!(on_copy.expect_err("cannot be converted").to_string(), in_place.to_string());
}

pub(crate) const TEXT: &str = r#"
%0 = "t.def"() : () -> i32
%1 = "t.a"(%0) {key} : (i32) -> i32
"t.use"(%1) : (i32) -> ()
"#;

const ON_SECOND_THOUGHTS: &str = "\
error[I0012]: pattern 'convert t.a' declines (on second thoughts) after it changed the IR around 't.a'
  --> test.mlir:3:6";

#[test]
fn declines_after_it_created_an_op() {
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        make(rw, "n.a", op, &[])?;
        Err(Declined::no_match("on second thoughts"))
    });
    stops(TEXT, &patterns, ON_SECOND_THOUGHTS);
}

#[test]
fn declines_after_it_changed_an_operand() {
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        let user = op.result(0).uses()[0].op;
        rw.set_operand(user, 0, op.operand(0));
        Err(Declined::no_match("on second thoughts"))
    });
    stops(TEXT, &patterns, ON_SECOND_THOUGHTS);
}

#[test]
fn declines_after_it_changed_an_attribute() {
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        rw.remove_attr(op, "key");
        Err(Declined::no_match("on second thoughts"))
    });
    // The next pattern is not tried.
    patterns.add(rename("t.a", "n.a"));
    stops(TEXT, &patterns, ON_SECOND_THOUGHTS);
}

#[test]
fn declines_after_it_replaced_uses() {
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        rw.replace_all_uses(op.result(0), op.operand(0));
        Err(Declined::no_match("on second thoughts"))
    });
    stops(TEXT, &patterns, ON_SECOND_THOUGHTS);
}

#[test]
fn declines_after_it_replaced_uses_by_values_of_another_type() {
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        let old = op.result(0);
        rw.replace_all_uses_with_many(old, &[op.operand(0), op.operand(0)]);
        Err(Declined::no_match("on second thoughts"))
    });
    stops(TEXT, &patterns, ON_SECOND_THOUGHTS);
}

#[test]
fn declines_after_it_changed_the_ir_around_the_rewriter() {
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, _| {
        Builder::before(op).create(OpSpec::new("n.a", op.location()))?;
        Err(Declined::no_match("on second thoughts"))
    });
    patterns.add(rename("t.a", "n.a"));
    stops(
        TEXT,
        &patterns,
        r#"
error[I0012]: pattern 'convert t.a' declines (on second thoughts) after it changed the IR, without the rewriter, around 't.a'
  --> test.mlir:3:6
"#,
    );
}

#[test]
fn asking_for_casts_is_no_change() {
    let mut patterns = PatternSet::new();
    for width in [8, 16] {
        patterns.add_fn("t.a", move |op, adaptor, rw| {
            let ty = Type::integer(op.context(), width);
            let narrow = rw.cast(adaptor.operand(0), ty);
            rw.cast(op.result(0), ty);
            Err(Declined::no_match(format!("does not like {}", narrow.ty())))
        });
    }
    stops(
        TEXT,
        &patterns,
        r#"
error[I0010]: 't.a' is illegal in the conversion target and no pattern converts it
  --> test.mlir:3:6
  note: pattern 'convert t.a' declined: does not like i8
  note: pattern 'convert t.a' declined: does not like i16
"#,
    );
}

#[test]
fn creates_an_illegal_op_that_no_pattern_takes() {
    let mut patterns = PatternSet::new();
    patterns.add(rename("t.a", "t.b"));
    patterns.add_fn("t.b", |op, _, rw| {
        let inner = make(rw, "t.c", op, &[])?;
        rw.replace_op(op, &inner.results());
        Ok(())
    });
    stops(
        TEXT,
        &patterns,
        r#"
error[I0010]: 't.c' is illegal in the conversion target and no pattern converts it
  --> test.mlir:3:6
  note: no pattern has 't.c' as its root
  note: created or changed by pattern 'convert t.b' on 't.b'
  note: created or changed by pattern 'rename to t.b' on 't.a'
"#,
    );
}

#[test]
fn fails_with_its_own_words_after_it_changed_the_ir() {
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        make(rw, "n.a", op, &[])?;
        Err(Diagnostic::error("I0010", op.location(), "the moon is in the wrong phase").into())
    });
    stops(
        TEXT,
        &patterns,
        r#"
error[I0010]: the moon is in the wrong phase
  --> test.mlir:3:6
"#,
    );
}

#[test]
fn reports_success_without_having_touched_its_op() {
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        // Other modified ops do not count.
        rw.set_attr(op.result(0).uses()[0].op, "key", Attr::unit(op.context()));
        Ok(())
    });
    stops(
        TEXT,
        &patterns,
        r#"
error[I0012]: pattern 'convert t.a' reports success but has not replaced, erased or changed 't.a'
  --> test.mlir:3:6
"#,
    );
}

#[test]
fn gives_too_few_values() {
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        rw.replace_op(op, &[]);
        Ok(())
    });
    stops(
        TEXT,
        &patterns,
        r#"
error[I0012]: pattern 'convert t.a' gives 0 replacements for 1 result of 't.a', while it rewrites 't.a'
  --> test.mlir:3:6
"#,
    );
}

#[test]
fn gives_too_many_lists_of_values() {
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        rw.replace_op_with_many(op, &[op.operands(), op.operands()]);
        Ok(())
    });
    stops(
        TEXT,
        &patterns,
        r#"
error[I0012]: pattern 'convert t.a' gives 2 replacements for 1 result of 't.a', while it rewrites 't.a'
  --> test.mlir:3:6
"#,
    );
}

#[test]
fn is_not_asked_where_an_operand_became_several_values_that_it_does_not_accept() {
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        let parts = [create(rw, "n.lo", op, &[], &[])?, create(rw, "n.hi", op, &[], &[])?];
        assert!(parts.iter().all(|part| part.num_results() == 0));
        rw.replace_op_with_many(op, &[vec![]]);
        Ok(())
    });
    patterns
        .add_fn("t.b", |_, adaptor, _| Err(Declined::no_match(format!("is asked for {}", adaptor.operand(0).ty()))));
    stops(
        "%0 = \"t.a\"() : () -> i32\n\"t.b\"(%0) : (i32) -> ()\n",
        &patterns,
        r#"
error[I0010]: 't.b' is illegal in the conversion target and no pattern converts it
  --> test.mlir:2:1
  note: pattern 'convert t.b' declined: an operand became several values, or none, which the pattern does not accept
"#,
    );
}

/// Debug builds always verify the ops that a pattern created; release builds only on request.
#[test]
fn creates_invalid_ir() {
    let module = parse(TEXT);
    let before = snapshot(module);
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        let wrong = create(rw, "arith.addi", op, &[op.operand(0)], &[op.result(0).ty()])?;
        rw.replace_op(op, &wrong.results());
        Ok(())
    });
    let target = target();
    let errors = on_clone(module.op(), |clone| {
        if cfg!(debug_assertions) {
            return convert(clone, &target, &patterns, Mode::Partial);
        }
        let options = ConversionOptions { verify_each: true, ..Default::default() };
        convert_with(clone, &target, &patterns, Mode::Partial, options)
    })
    .expect_err("the IR is invalid");
    let lines: Vec<String> = errors.0.iter().map(|e| format!("{}: {}", e.code, e.message)).collect();
    assert_eq!(
        lines,
        [
            "I0001: 'arith.addi' op expected 2 operands, but found 1",
            "I0012: the IR is invalid after pattern 'convert t.a' on 't.a'"
        ]
    );
    assert_eq!(snapshot(module), before);
}

/// A legal user of the replaced value is verified too.
#[test]
fn makes_a_user_invalid() {
    let module = parse(
        "func.func @f(%x: i32) -> i32 {\n  %0 = \"t.a\"() : () -> i32\n  %1 = arith.addi %0, %x : i32\n  return %1 : i32\n}\n",
    );
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        // Bypasses the casts.
        rw.set_type(op.result(0), Type::integer(op.context(), 8));
        Ok(())
    });
    let options = ConversionOptions { verify_each: true, ..Default::default() };
    let errors = convert_with(module.op(), &target(), &patterns, Mode::Partial, options).expect_err("invalid");
    let last = errors.0.last().expect("an error");
    assert_eq!(
        last.to_string(),
        "error[I0012]: the IR is invalid after pattern 'convert t.a' on 't.a'\n  --> test.mlir:2:8"
    );
}

/// Only the verifier of the whole root detects that a definition comes too late: `verify_each` runs it.
#[test]
fn gives_a_value_that_is_defined_after_its_users() {
    let module = parse(
        "func.func @f() -> i32 {\n  %0 = \"t.a\"() : () -> i32\n  %1 = arith.addi %0, %0 : i32\n  return %1 : i32\n}\n",
    );
    let before = snapshot(module);
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        let end = op.block().and_then(|block| block.terminator()).expect("a terminator");
        rw.set_point(monopour_ir::InsertionPoint::Before(end));
        let late = make(rw, "n.a", op, &[])?;
        rw.replace_op(op, &late.results());
        Ok(())
    });
    let options = ConversionOptions { verify_each: true, ..Default::default() };
    let target = target();
    let errors = on_clone(module.op(), |clone| convert_with(clone, &target, &patterns, Mode::Partial, options));
    let errors = errors.expect_err("the IR is invalid");
    let lines: Vec<String> = errors.0.iter().map(|e| format!("{}: {}", e.code, e.message)).collect();
    assert_eq!(
        lines,
        [
            "I0001: operand #0 does not dominate this use",
            "I0012: the IR is invalid after pattern 'convert t.a' on 't.a'"
        ]
    );
    assert_eq!(snapshot(module), before);
}

/// The pattern in the first function moves an op out of the second one, which is visited later.
#[cfg(debug_assertions)]
#[test]
fn confined_patterns_that_reach_into_another_function() {
    let module = parse(
        r#"
func.func @first() {
  "t.a"() : () -> ()
  return
}
func.func @second() {
  "t.holder"() ({
    "t.b"() : () -> ()
  }) : () -> ()
  return
}
"#,
    );
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        let first = op.parent().expect("is in a function");
        let other = first.next().expect("two functions").region(0).entry().expect("has a body").first_op();
        rw.move_before(other.expect("holds an op"), op);
        rw.erase(op);
        Ok(())
    });
    patterns.add(rename("t.b", "n.b"));
    patterns.confine();
    let expected = "\
error[I0012]: a pattern took 't.b' out of an op that came later, which confined patterns must not
  --> test.mlir:8:5";
    fails_with(module, &target(), &patterns, expected);
}

/// Erasing an op that the walk has not reached is refused, and the walk is unaffected.
#[test]
fn confined_patterns_that_erase_another_function() {
    let module = parse("func.func @first() {\n  \"t.a\"() : () -> ()\n  return\n}\nfunc.func private @second()");
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        rw.erase(op.parent().expect("is in a function").next().expect("two functions"));
        rw.erase(op);
        Ok(())
    });
    patterns.confine();
    let expected = "\
error[I0012]: pattern 'convert t.a' erases 'func.func', which it neither matched nor made, while it rewrites 't.a'
  --> test.mlir:2:3";
    fails_with(module, &target(), &patterns, expected);
}

/// The pattern of the root erases functions that were not visited.
#[test]
fn confined_patterns_of_the_root_may_erase_what_it_holds() {
    let module = parse("func.func private @first()\n\"t.a\"() : () -> ()");
    let mut target = target();
    target.dynamically_legal_op("builtin.module", |op| op.body().is_some_and(|body| body.ops().len() < 2));
    let mut patterns = PatternSet::new();
    patterns.add_fn("builtin.module", |op, _, rw| {
        rw.erase(op.body().expect("has a body").first_op().expect("holds a function"));
        rw.set_attr(op, "t.done", Attr::unit(op.context()));
        Ok(())
    });
    patterns.add(rename("t.a", "n.a"));
    patterns.confine();
    convert(module.op(), &target, &patterns, Mode::Partial).expect("converts");
    assert_eq!(module.op().to_string().trim_end(), "module attributes {t.done} {\n  \"n.a\"() : () -> ()\n}");
}
