//! Which ops are converted, by which pattern, and how often.

use super::lower::{assert_ir, create, fails_with};
use super::{Rename, check, parse, rename};
use monopour_ir::Attr;
use monopour_ir::conversion::{
    Adaptor, ConversionPattern, ConversionRewriter, ConversionTarget, Declined, Legality, Mode, PatternSet,
};
use monopour_ir::{Op, OpSpec};

/// Wraps any op in a `t.wrap`, as a fallback.
struct Wrap {
    benefit: u32,
}

impl<'c> ConversionPattern<'c> for Wrap {
    fn root(&self) -> &str {
        "*"
    }
    fn benefit(&self) -> u32 {
        self.benefit
    }
    fn name(&self) -> String {
        "wrap anything".to_owned()
    }
    fn rewrite(&self, op: Op<'c>, adaptor: &Adaptor<'c, '_>, rw: &mut ConversionRewriter<'c>) -> Result<(), Declined> {
        let types: Vec<_> = op.results().iter().map(|r| r.ty()).collect();
        let spec = OpSpec::new("t.wrap", op.location()).operands(adaptor.operands()).results(&types);
        let new = rw.create(spec.attr("op", Attr::string(op.context(), op.name())))?;
        rw.replace_op(op, &new.results());
        Ok(())
    }
}

const THREE: &str = "\"t.a\"() : () -> ()\n\"t.b\"() : () -> ()\n\"u.a\"() : () -> ()\n";

#[test]
fn a_generic_pattern_takes_what_nobody_else_does() {
    let module = parse(THREE);
    let mut target = ConversionTarget::new();
    target.illegal_dialect("t").illegal_dialect("u").legal_op("t.wrap");
    let mut patterns = PatternSet::new();
    // Registered first, tried last.
    patterns.add(Wrap { benefit: 0 });
    patterns.add(Rename { declines: true, ..rename("t.a", "n.never") });
    patterns.add(rename("t.b", "n.b"));
    check(module, &target, &patterns, Mode::Full).expect("converts");
    assert_ir(
        module,
        r#"
"t.wrap"() {op = "t.a"} : () -> ()
"n.b"() : () -> ()
"t.wrap"() {op = "u.a"} : () -> ()
"#,
    );
}

#[test]
fn a_generic_pattern_of_high_benefit_comes_first() {
    let module = parse(THREE);
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a");
    let mut patterns = PatternSet::new();
    patterns.add(Rename { benefit: 5, ..rename("t.a", "n.a") });
    patterns.add(Wrap { benefit: 6 });
    check(module, &target, &patterns, Mode::Full).expect("converts");
    assert_ir(
        module,
        r#"
"t.wrap"() {op = "t.a"} : () -> ()
"t.b"() : () -> ()
"u.a"() : () -> ()
"#,
    );
}

#[test]
fn patterns_are_tried_by_benefit_then_by_registration() {
    let module = parse(THREE);
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a");
    let mut patterns = PatternSet::new();
    let says = |benefit, to| Rename { benefit, declines: true, ..rename("t.a", to) };
    patterns.add(says(1, "third")).add(says(7, "first")).add(says(1, "fourth")).add(says(2, "second"));
    fails_with(
        module,
        &target,
        &patterns,
        r#"
error[I0010]: 't.a' is illegal in the conversion target and no pattern converts it
  --> test.mlir:1:1
  note: pattern 'rename to first' declined: it is told to
  note: pattern 'rename to second' declined: it is told to
  note: pattern 'rename to third' declined: it is told to
  note: pattern 'rename to fourth' declined: it is told to
"#,
    );
}

#[test]
fn an_expansion_of_an_expansion_is_converted_where_it_stands() {
    let module = parse("\"t.four\"() : () -> ()\n\"t.x\"() : () -> ()\n\"t.two\"() : () -> ()\n");
    let mut target = ConversionTarget::new();
    target.illegal_op("t.four").illegal_op("t.two").illegal_op("t.one");
    let mut patterns = PatternSet::new();
    for (from, to) in [("t.four", "t.two"), ("t.two", "t.one")] {
        patterns.add_fn(from, move |op, _, rw| {
            create(rw, to, op, &[], &[])?;
            create(rw, "t.x", op, &[], &[])?;
            create(rw, to, op, &[], &[])?;
            rw.erase(op);
            Ok(())
        });
    }
    patterns.add(rename("t.one", "n.one"));
    let stats = check(module, &target, &patterns, Mode::Full).expect("converts");
    assert_eq!(stats.patterns_applied, 1 + 3 + 6);
    assert_ir(
        module,
        r#"
"n.one"() : () -> ()
"t.x"() : () -> ()
"n.one"() : () -> ()
"t.x"() : () -> ()
"n.one"() : () -> ()
"t.x"() : () -> ()
"n.one"() : () -> ()
"t.x"() : () -> ()
"n.one"() : () -> ()
"t.x"() : () -> ()
"n.one"() : () -> ()
"#,
    );
}

#[test]
fn what_a_new_op_holds_is_converted_too() {
    let module = parse("\"t.a\"() ({\n  \"t.b\"() : () -> ()\n}) : () -> ()\n");
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a").illegal_op("t.b").illegal_op("t.copy");
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        let inner = op.body().expect("a body").ops()[0];
        for _ in 0..2 {
            let body = monopour_ir::Region::new();
            let block = monopour_ir::Block::new(&[]);
            body.append(block);
            rw.set_point(monopour_ir::InsertionPoint::End(block));
            let copy = rw.clone_op(inner, |value| value);
            rw.insert(copy);
            rw.set_point(monopour_ir::InsertionPoint::Before(op));
            rw.create(OpSpec::new("t.copy", op.location()).region(body))?;
        }
        rw.erase(op);
        Ok(())
    });
    // Outside in: the copy is converted before its body.
    patterns.add_fn("t.copy", |op, _, rw| {
        assert!(op.body().expect("a body").ops()[0].is("t.b"));
        let body = monopour_ir::Region::new();
        rw.take_region(body, op.region(0));
        rw.create(OpSpec::new("n.copy", op.location()).region(body))?;
        rw.erase(op);
        Ok(())
    });
    patterns.add(rename("t.b", "n.b"));
    check(module, &target, &patterns, Mode::Full).expect("converts");
    assert_ir(
        module,
        r#"
"n.copy"() ({
  "n.b"() : () -> ()
}) : () -> ()
"n.copy"() ({
  "n.b"() : () -> ()
}) : () -> ()
"#,
    );
}

#[test]
fn a_rule_for_an_op_wins_over_one_for_its_dialect_and_the_last_for_a_name_wins() {
    let module = parse(THREE);
    let op = |name: &str| module.op().find_all(name)[0];
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a").legal_dialect("t").illegal_dialect("u").legal_dialect("u");
    let ask = |target: &ConversionTarget<'_, '_>| ["t.a", "t.b", "u.a"].map(|name| target.legality(op(name)));
    assert_eq!(ask(&target), [Legality::Illegal, Legality::Legal, Legality::Legal]);
    target.legal_op("t.a").illegal_dialect("t");
    assert_eq!(ask(&target), [Legality::Legal, Legality::Illegal, Legality::Legal]);
    let mut target = ConversionTarget::new();
    target
        .unknown_is_legal(false)
        .dynamically_legal_dialect("t", |op| op.is("t.b"))
        .dynamically_legal_op("u.a", |_| false);
    assert_eq!(ask(&target), [Legality::Illegal, Legality::Legal, Legality::Illegal]);
    assert_eq!(target.legality(module.op()), Legality::Unknown);
    target.unknown_dynamically_legal(|op| op.is("builtin.module"));
    assert_eq!(target.legality(module.op()), Legality::Legal);
}

#[test]
fn a_predicate_decides_op_by_op() {
    let module =
        parse("\"t.a\"() {keep} : () -> ()\n\"t.a\"() : () -> ()\n\"t.b\"() {keep} : () -> ()\n\"t.b\"() : () -> ()\n");
    let mut target = ConversionTarget::new();
    target.dynamically_legal_dialect("t", |op| op.attr("keep").is_some());
    let mut patterns = PatternSet::new();
    patterns.add(rename("t.a", "n.a")).add(rename("t.b", "n.b"));
    check(module, &target, &patterns, Mode::Full).expect("converts");
    assert_ir(
        module,
        r#"
"t.a"() {keep} : () -> ()
"n.a"() : () -> ()
"t.b"() {keep} : () -> ()
"n.b"() : () -> ()
"#,
    );
}

#[test]
fn an_unknown_op_is_converted_if_a_pattern_can_and_stays_if_none_does() {
    let module = parse(THREE);
    let mut target = ConversionTarget::new();
    target.unknown_is_legal(false).legal_dialect("n").legal_dialect("builtin");
    let mut patterns = PatternSet::new();
    patterns.add(rename("t.a", "n.a"));
    patterns.add(Rename { declines: true, ..rename("t.b", "n.b") });
    let stats = check(module, &target, &patterns, Mode::Partial).expect("converts");
    assert_eq!(stats.patterns_applied, 1);
    assert_ir(
        module,
        r#"
"n.a"() : () -> ()
"t.b"() : () -> ()
"u.a"() : () -> ()
"#,
    );
    let errors = check(module, &target, &patterns, Mode::Full).expect_err("two ops are not known");
    assert_eq!(
        errors.to_string(),
        r#"
error[I0010]: 't.b' is not known to be legal in the conversion target and no pattern converts it
  --> test.mlir:2:1
  note: pattern 'rename to n.b' declined: it is told to
error[I0010]: 'u.a' is not known to be legal in the conversion target and no pattern converts it
  --> test.mlir:3:1
  note: no pattern has 'u.a' as its root"#
            .trim_start()
    );
}

const NESTED: &str = r#"
"t.a"() : () -> ()
"t.box"() ({
  "t.a"() : () -> ()
  "t.box"() ({
    "t.a"() : () -> ()
  }) {open} : () -> ()
}) : () -> ()
"t.box"() ({
  "t.a"() : () -> ()
  "t.box"() ({
    "t.a"() : () -> ()
  }) : () -> ()
}) {open} : () -> ()
"#;

#[test]
fn what_a_recursively_legal_op_holds_stays() {
    let module = parse(NESTED);
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a").recursively_legal_op_if("t.box", |op| op.attr("open").is_none());
    let mut patterns = PatternSet::new();
    patterns.add(rename("t.a", "n.a"));
    let stats = check(module, &target, &patterns, Mode::Full).expect("converts");
    assert_eq!(stats.patterns_applied, 2);
    assert_ir(
        module,
        r#"
"n.a"() : () -> ()
"t.box"() ({
  "t.a"() : () -> ()
  "t.box"() ({
    "t.a"() : () -> ()
  }) {open} : () -> ()
}) : () -> ()
"t.box"() ({
  "n.a"() : () -> ()
  "t.box"() ({
    "t.a"() : () -> ()
  }) : () -> ()
}) {open} : () -> ()
"#,
    );
}

#[test]
fn an_illegal_op_is_not_recursively_legal() {
    let module = parse("\"t.box\"() ({\n  \"t.a\"() : () -> ()\n}) : () -> ()\n");
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a").illegal_op("t.box").recursively_legal_op("t.box");
    assert!(!target.is_recursively_legal(module.op().find_all("t.box")[0]));
    let mut patterns = PatternSet::new();
    patterns.add(rename("t.a", "n.a"));
    fails_with(
        module,
        &target,
        &patterns,
        r#"
error[I0010]: 't.box' is illegal in the conversion target and no pattern converts it
  --> test.mlir:1:1
  note: no pattern has 't.box' as its root
"#,
    );
    assert_eq!(module.op().find_all("n.a").len(), 1);
}

#[test]
fn what_is_created_in_a_recursively_legal_op_stays() {
    let module = parse("\"t.box\"() ({\n  \"t.x\"() : () -> ()\n}) : () -> ()\n\"t.b\"() : () -> ()\n");
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a").illegal_op("t.b").recursively_legal_op("t.box");
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.b", |op, _, rw| {
        let first = op.block().expect("in a block").ops()[0];
        rw.set_point(monopour_ir::InsertionPoint::Start(first.body().expect("a body")));
        create(rw, "t.a", op, &[], &[])?;
        rw.erase(op);
        Ok(())
    });
    check(module, &target, &patterns, Mode::Full).expect("converts");
    assert_ir(
        module,
        r#"
"t.box"() ({
  "t.a"() : () -> ()
  "t.x"() : () -> ()
}) : () -> ()
"#,
    );
}

#[test]
fn an_op_that_closes_keeps_what_it_holds() {
    let module = parse("\"t.box\"() ({\n  \"t.a\"() : () -> ()\n}) {open} : () -> ()\n\"t.b\"() : () -> ()\n");
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a").illegal_op("t.b").recursively_legal_op_if("t.box", |op| op.attr("open").is_none());
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.b", |op, _, rw| {
        rw.remove_attr(op.block().expect("in a block").ops()[0], "open");
        rw.erase(op);
        Ok(())
    });
    check(module, &target, &patterns, Mode::Full).expect("what stays illegal stays in a box");
    assert_ir(
        module,
        r#"
"t.box"() ({
  "t.a"() : () -> ()
}) : () -> ()
"#,
    );
}

/// An op that becomes recursively legal, or ceases to be: its body is visited according to its present legality.
#[test]
fn an_op_that_opens_shows_what_it_holds() {
    let module = parse("\"t.box\"() ({\n  \"t.a\"() : () -> ()\n}) : () -> ()\n\"t.b\"() : () -> ()\n");
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a").illegal_op("t.b").recursively_legal_op_if("t.box", |op| op.attr("open").is_none());
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.b", |op, _, rw| {
        rw.set_attr(op.block().expect("in a block").ops()[0], "open", Attr::unit(op.context()));
        rw.erase(op);
        Ok(())
    });
    patterns.add(rename("t.a", "n.a"));
    check(module, &target, &patterns, Mode::Full).expect("converts");
    assert_ir(
        module,
        r#"
"t.box"() ({
  "n.a"() : () -> ()
}) {open} : () -> ()
"#,
    );
}
