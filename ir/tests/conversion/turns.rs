//! Terminators replaced by others: by one shim call, or step by step if casts are live.

use super::lower::{assert_ir, fails_with};
use super::{check, parse};
use monopour_ir::conversion::{ConversionRewriter, ConversionTarget, Declined, Mode, PatternSet};
use monopour_ir::{InsertionPoint, Location, Op, OpParts, OpSpec, OpTemplate, Type};

/// `t.end` becomes a branch to the next block, with the op's first operand prepended.
fn turn<'c>(op: Op<'c>, rw: &mut ConversionRewriter<'c>) -> Result<(), Declined> {
    let branch = OpTemplate::new(op.context(), OpSpec::new("cf.br", op.location())).expect("builds");
    let region = op.block().and_then(|block| block.region()).expect("t.end is in a region");
    let next = region.last().expect("there are blocks");
    rw.set_point(InsertionPoint::Before(op));
    let (location, first) = (op.location().to_string(), op.operand(0));
    let end = rw.turn_into(op, &branch, &[first], &[next]);
    assert_eq!((end.location().to_string(), end.next()), (location, None));
    Ok(())
}

const TEXT: &str = r#"
func.func @f(%x: i32, %y: i32) {
  %0 = "t.wide"() : () -> i32
  "n.use"(%0) : (i32) -> ()
  "t.end"(%x, %y)[^bb1] : (i32, i32) -> ()
^bb1(%a: i32, %b: i32, %c: i32):
  return
}
"#;

fn patterns<'c>(is_cast: bool) -> PatternSet<'c, 'static> {
    let mut patterns = PatternSet::new();
    patterns.add_op_fn("t.end", turn);
    patterns.add_op_fn("t.wide", move |op, rw| {
        let ty = if is_cast { Type::integer(rw.context(), 64) } else { op.result(0).ty() };
        let new = rw.create(OpSpec::new("n.wide", op.location()).results(&[ty]))?;
        rw.replace_op(op, &new.results());
        Ok(())
    });
    patterns
}

fn target<'c>() -> ConversionTarget<'c, 'static> {
    let mut target = ConversionTarget::new();
    target.illegal_dialect("t");
    target
}

#[test]
fn a_terminator_turns_into_a_branch() {
    let module = parse(TEXT);
    check(module, &target(), &patterns(false), Mode::Partial).expect("converts");
    assert_ir(
        module,
        r#"
func.func @f(%arg0: i32, %arg1: i32) {
  %0 = "n.wide"() : () -> i32
  "n.use"(%0) : (i32) -> ()
  cf.br ^bb1(%arg0, %arg0, %arg1 : i32, i32, i32)
^bb1(%1: i32, %2: i32, %3: i32):  // pred: ^bb0
  return
}
"#,
    );
}

#[test]
fn and_so_it_does_while_a_cast_is_alive() {
    let module = parse(TEXT);
    let stats = check(module, &target(), &patterns(true), Mode::Partial).expect("converts");
    assert_eq!(stats.casts_left, 1);
    assert_ir(
        module,
        r#"
func.func @f(%arg0: i32, %arg1: i32) {
  %0 = "n.wide"() : () -> i64
  %1 = builtin.unrealized_conversion_cast %0 : i64 to i32
  "n.use"(%1) : (i32) -> ()
  cf.br ^bb1(%arg0, %arg0, %arg1 : i32, i32, i32)
^bb1(%2: i32, %3: i32, %4: i32):  // pred: ^bb0
  return
}
"#,
    );
}

#[test]
fn an_op_whose_own_result_replaces_another_is_still_read() {
    let module = parse(
        "func.func @f(%x: i32) {\n  %0:2 = \"t.two\"() : () -> (i32, i32)\n  \"n.use\"(%0#0, %0#1) : (i32, i32) -> ()\n  return\n}\n",
    );
    let mut patterns = PatternSet::new();
    patterns.add_op_fn("t.two", |op, rw| {
        let arg = op.block().expect("it is in a block").arg(0);
        rw.replace_op(op, &[arg, op.result(0)]);
        Ok(())
    });
    fails_with(
        module,
        &target(),
        &patterns,
        r#"
error[I0012]: pattern 'convert t.two' erases 't.two', which 'n.use' still uses, while it rewrites 't.two'
  --> test.mlir:2:10
"#,
    );
}

#[test]
fn what_is_not_the_patterns_own_does_not_turn() {
    let module = parse("func.func @f() {\n  \"t.a\"() : () -> ()\n  return\n}\n");
    let mut patterns = PatternSet::new();
    patterns.add_op_fn("t.a", |op, rw| {
        let end = op.block().and_then(|block| block.last_op()).expect("the block ends");
        let other = OpTemplate::new(op.context(), OpSpec::new("func.return", op.location())).expect("builds");
        rw.turn_into(end, &other, &[], &[]);
        rw.erase(op);
        Ok(())
    });
    fails_with(
        module,
        &target(),
        &patterns,
        r#"
error[I0012]: pattern 'convert t.a' erases 'func.return', which it neither matched nor made, while it rewrites 't.a'
  --> test.mlir:2:3
"#,
    );
}

/// Ops erased with so many illegal ops in their bodies, last first; ops are created and erased meanwhile.
fn held_ops_are_forgotten(count: usize) {
    let held = "    \"t.in\"() : () -> ()\n".repeat(count);
    let outer = format!("  \"t.out\"() ({{\n{held}  }}) : () -> ()\n");
    let module = parse(&format!("func.func @f() {{\n{}  return\n}}\n", outer.repeat(3)));
    let cx = module.op().context();
    let staying = OpTemplate::new(cx, OpSpec::new("n.staying", Location::unknown(cx))).expect("builds");
    let mut patterns = PatternSet::new();
    patterns.add_op_fn("t.out", move |op, rw| {
        for _ in 0..2 {
            let made = rw.create_like(&staying, op.location(), OpParts::default());
            rw.erase(made);
        }
        for inner in op.body().expect("there is a block").ops().into_iter().rev() {
            rw.erase(inner);
        }
        // At an erased op's position.
        rw.create_like(&staying, op.location(), OpParts::default());
        rw.create_like(&staying, op.location(), OpParts::default());
        rw.erase(op);
        Ok(())
    });
    patterns.add_op_fn("t.in", |op, _| panic!("{} is gone before its turn comes", op.name()));
    let stats = check(module, &target(), &patterns, Mode::Full).expect("converts");
    assert_eq!(stats.patterns_applied, 3);
    assert_ir(module, &format!("func.func @f() {{\n{}  return\n}}\n", "  \"n.staying\"() : () -> ()\n".repeat(6)));
}

#[test]
fn what_is_made_or_held_and_goes_at_once_is_forgotten() {
    held_ops_are_forgotten(2);
}

#[test]
fn and_so_is_much_of_it() {
    held_ops_are_forgotten(40);
}
