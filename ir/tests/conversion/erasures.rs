//! Erasing: which ops a pattern may erase, and that no erased op is visible afterwards.

use super::lower::{assert_ir, create, fails_with, snapshot};
use super::{check, parse, rename};
use monopour_ir::conversion::{ConversionTarget, Mode, PatternSet, convert, on_clone};
use monopour_ir::{Module, Op, Region};

/// The illegal ops.
fn target<'c>() -> ConversionTarget<'c, 'static> {
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a").illegal_op("t.b").illegal_op("t.late");
    target
}

/// `t.a` erases the picked op and then itself: refused, and neither op nor its body is erased.
#[track_caller]
fn may_not_erase<'c>(text: &str, pick: impl Fn(Op<'c>) -> Op<'c>, what: &str, at: &str) {
    let module = parse(text);
    let before = snapshot(module);
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        rw.erase(pick(op));
        rw.erase(op);
        Ok(())
    });
    patterns.add(rename("t.b", "n.b")).add(rename("t.late", "n.late"));
    let target = target();
    on_clone(module.op(), |clone| convert(clone, &target, &patterns, Mode::Partial)).expect_err("cannot be converted");
    assert_eq!(snapshot(module), before);
    let count = |module: &Module<'c>| module.op().nested(monopour_ir::WalkOrder::Pre).len();
    let ops = count(module);
    let expected =
        format!("error[I0012]: pattern 'convert t.a' erases {what}, while it rewrites 't.a'\n  --> test.mlir:{at}");
    fails_with(module, &target, &patterns, &expected);
    // Only its own op may be erased.
    assert!(count(module) >= ops - 1);
}

fn nth<'c>(op: Op<'c>, n: usize) -> Op<'c> {
    op.block().expect("in a block").ops()[n]
}

#[test]
fn an_op_that_is_used() {
    may_not_erase(
        "%0 = \"t.def\"() : () -> i32\n\"t.use\"(%0) : (i32) -> ()\n\"t.a\"() : () -> ()\n",
        |op| nth(op, 0),
        "'t.def', which 't.use' still uses",
        "3:1",
    );
}

#[test]
fn an_op_that_is_not_used() {
    may_not_erase(
        "%0 = \"t.def\"() : () -> i32\n\"t.a\"() : () -> ()\n",
        |op| nth(op, 0),
        "'t.def', which it neither matched nor made",
        "2:1",
    );
}

#[test]
fn the_op_that_defines_its_operand() {
    may_not_erase(
        "%0 = \"t.def\"() : () -> i32\n\"t.a\"(%0) : (i32) -> ()\n",
        |op| nth(op, 0),
        "'t.def', which 't.a' still uses",
        "2:1",
    );
}

#[test]
fn an_op_that_was_converted_before() {
    may_not_erase(
        "\"t.b\"() : () -> ()\n\"t.a\"() : () -> ()\n",
        |op| nth(op, 0),
        "'n.b', which it neither matched nor made",
        "2:1",
    );
}

#[test]
fn an_op_that_is_yet_to_be_visited() {
    may_not_erase(
        "\"t.a\"() : () -> ()\n\"t.late\"() : () -> ()\n",
        |op| nth(op, 1),
        "'t.late', which it neither matched nor made",
        "1:1",
    );
}

#[test]
fn an_op_inside_another() {
    may_not_erase(
        "\"t.a\"() : () -> ()\n\"t.other\"() ({\n  \"t.inner\"() : () -> ()\n}) : () -> ()\n",
        |op| nth(op, 1).body().expect("a body").ops()[0],
        "'t.inner', which it neither matched nor made",
        "1:1",
    );
}

#[test]
fn the_op_around_it() {
    may_not_erase(
        "\"t.other\"() ({\n  \"t.a\"() : () -> ()\n}) : () -> ()\n",
        |op| op.parent().expect("a parent"),
        "'t.other', which it neither matched nor made",
        "2:3",
    );
}

#[test]
fn the_module() {
    may_not_erase(
        "\"t.a\"() : () -> ()\n",
        |op| op.parent().expect("a module"),
        "'builtin.module', which hangs in no block and is its owner's",
        "1:1",
    );
}

#[test]
fn the_module_as_its_own_op() {
    let module = parse("\"t.a\"() : () -> ()\n");
    let mut target = ConversionTarget::new();
    target.illegal_op("builtin.module");
    let mut patterns = PatternSet::new();
    patterns.add_fn("builtin.module", |op, _, rw| {
        rw.erase(op);
        Ok(())
    });
    fails_with(
        module,
        &target,
        &patterns,
        r#"
error[I0012]: pattern 'convert builtin.module' erases 'builtin.module', which hangs in no block and is its owner's, while it rewrites 'builtin.module'
  --> test.mlir:0:0
"#,
    );
    assert_ir(module, r#""t.a"() : () -> ()"#);
}

#[test]
fn an_op_of_a_function_that_is_in_no_module() {
    let module = parse("func.func @f() {\n  \"t.other\"() : () -> ()\n  \"t.a\"() : () -> ()\n  return\n}\n");
    let function = module.functions()[0];
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        rw.erase(nth(op, 0));
        rw.erase(op);
        Ok(())
    });
    // A copy of the function is detached.
    let copy = monopour_ir::Rewriter::new(module.context()).clone_op(function, |value| value);
    let errors = convert(copy, &target(), &patterns, Mode::Partial).expect_err("cannot be converted");
    assert_eq!(
        errors.0[0].message,
        "pattern 'convert t.a' erases 't.other', which it neither matched nor made, while it rewrites 't.a'"
    );
    assert_eq!(copy.find_all("t.other").len(), 1);
}

#[test]
fn its_own_op_while_it_is_used() {
    let module = parse("%0 = \"t.a\"() : () -> i32\n\"t.use\"(%0) : (i32) -> ()\n");
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        rw.erase(op);
        Ok(())
    });
    fails_with(
        module,
        &target(),
        &patterns,
        r#"
error[I0012]: pattern 'convert t.a' erases 't.a', which 't.use' still uses, while it rewrites 't.a'
  --> test.mlir:1:6
"#,
    );
    assert_eq!(module.op().find_all("t.a").len(), 1);
}

#[test]
fn what_it_holds_and_what_it_made_may_go() {
    let module = parse(
        r#"
"t.a"() ({
  %0 = "t.late"() : () -> i32
  "t.b"(%0) ({
    "t.late"() : () -> ()
  }) : (i32) -> ()
}) : () -> ()
"t.b"() : () -> ()
"#,
    );
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        let made = create(rw, "t.late", op, &[], &[])?;
        let inner = op.body().expect("a body").ops();
        rw.erase(inner[1]);
        rw.erase(inner[0]);
        rw.erase(made);
        // At the erased op's position: the insertion point moved on.
        create(rw, "n.made", op, &[], &[])?;
        rw.erase(op);
        Ok(())
    });
    patterns.add(rename("t.b", "n.b"));
    check(module, &target(), &patterns, Mode::Full).expect("nobody visits a t.late");
    assert_ir(
        module,
        r#"
"n.made"() : () -> ()
"n.b"() : () -> ()
"#,
    );
}

#[test]
fn what_it_took_out_of_its_op_may_go() {
    let module = parse(
        r#"
"t.a"() ({
  "t.late"() : () -> ()
  "t.b"() : () -> ()
}) : () -> ()
"#,
    );
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        let body = Region::new();
        rw.take_region(body, op.region(0));
        let new = rw.create(monopour_ir::OpSpec::new("n.a", op.location()).region(body))?;
        rw.erase(op);
        rw.erase(new.body().expect("a body").ops()[0]);
        Ok(())
    });
    patterns.add(rename("t.b", "n.b"));
    check(module, &target(), &patterns, Mode::Full).expect("nobody visits a t.late");
    assert_ir(
        module,
        r#"
"n.a"() ({
  "n.b"() : () -> ()
}) : () -> ()
"#,
    );
}

#[test]
fn an_op_may_be_created_where_its_own_op_was() {
    let module = parse("\"t.a\"() : () -> ()\n\"t.x\"() : () -> ()\n\"t.a\"() : () -> ()\n");
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        let location = op.location();
        rw.erase(op);
        rw.create(monopour_ir::OpSpec::new("n.first", location))?;
        rw.create(monopour_ir::OpSpec::new("n.second", location))?;
        Ok(())
    });
    check(module, &target(), &patterns, Mode::Full).expect("converts");
    assert_ir(
        module,
        r#"
"n.first"() : () -> ()
"n.second"() : () -> ()
"t.x"() : () -> ()
"n.first"() : () -> ()
"n.second"() : () -> ()
"#,
    );
}

/// A later pattern walks the use chains: it finds converted ops, casts and ops of its own kind, none erased.
#[test]
fn erased_and_replaced_ops_are_never_visible_to_later_patterns() {
    let mut text = "%0 = \"t.a\"() : () -> index\n".to_owned();
    for i in 0..20 {
        text += &format!("%{} = \"t.b\"(%{i}, %0) : (index, index) -> index\n", i + 1);
        text += &format!("\"t.keep\"(%{i}) : (index) -> ()\n");
    }
    let module = parse(&text);
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", move |op, _, rw| {
        let new = create(rw, "n.a", op, &[], &[monopour_ir::Type::integer(op.context(), 64)])?;
        rw.replace_op(op, &new.results());
        Ok(())
    });
    patterns.add_fn("t.b", move |op, adaptor, rw| {
        for (i, value) in adaptor.operands().iter().enumerate() {
            let def = value.defining_op().expect("an op");
            assert!(["n.a", "n.b"].contains(&def.name()), "{} defines it", def.name());
            let cast = op.operand(i).defining_op().expect("a cast");
            assert_eq!((cast.name(), cast.operand(0)), (super::lower::CAST, *value));
            let seen: Vec<_> = value.uses().iter().chain(&op.operand(i).uses()).map(|u| u.op.name()).collect();
            let known = ["n.b", "t.b", "t.keep", super::lower::CAST];
            assert!(seen.iter().all(|name| known.contains(name)), "{seen:?}");
        }
        // The ops before this one have been converted, casts aside.
        let before = op.block().expect("a block").ops().into_iter().take_while(|other| *other != op);
        assert!(before.into_iter().all(|other| !["t.a", "t.b"].contains(&other.name())));
        let new = create(rw, "n.b", op, adaptor.operands(), &[monopour_ir::Type::integer(op.context(), 64)])?;
        rw.replace_op(op, &new.results());
        Ok(())
    });
    let stats = check(module, &target(), &patterns, Mode::Partial).expect("converts");
    assert_eq!((stats.patterns_applied, stats.casts_left), (21, 20));
}

#[test]
fn what_a_region_holds_is_not_overwritten() {
    let module = parse(
        "\"t.a\"() ({\n  \"t.b\"() : () -> ()\n}) : () -> ()\n\"t.other\"() ({\n  \"t.late\"() : () -> ()\n}) : () -> ()\n",
    );
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        rw.take_region(nth(op, 1).region(0), op.region(0));
        rw.erase(op);
        Ok(())
    });
    patterns.add(rename("t.late", "n.late"));
    fails_with(
        module,
        &target(),
        &patterns,
        r#"
error[I0012]: pattern 'convert t.a' moves blocks into a region of 't.other' that is not empty, while it rewrites 't.a'
  --> test.mlir:1:1
"#,
    );
    assert_eq!(module.op().find_all("t.late").len(), 1);
}
