//! Splits of blocks: either part may be the new block, which only the handles show.

use super::lower::{assert_ir, converts_fully};
use super::parse;
use monopour_ir::conversion::{ConversionRewriter, ConversionTarget, Declined, PatternSet};
use monopour_ir::{Block, InsertionPoint, Op, OpSpec};

/// Splits at `t.split`, which is erased; `n.end` and `n.begin` mark the two parts, a branch leads from one to the other.
fn split<'c>(op: Op<'c>, rw: &mut ConversionRewriter<'c>) -> Result<(), Declined> {
    let name = |name| OpSpec::new(name, op.location());
    rw.set_point(InsertionPoint::End(op.block().expect("t.split is in a block")));
    let (before, rest) = rw.split_block(op);
    // The insertion point is the end of the first part.
    rw.create(name("n.end"))?;
    rw.create(OpSpec::new("cf.br", op.location()).successor(rest))?;
    rw.set_point(InsertionPoint::Start(rest));
    rw.create(name("n.begin"))?;
    assert_eq!(op.block(), Some(rest));
    assert!(before != rest && before.region() == rest.region());
    rw.erase(op);
    Ok(())
}

#[track_caller]
fn becomes(text: &str, expected: &str) {
    let module = parse(text);
    let mut target = ConversionTarget::new();
    target.illegal_dialect("t");
    let mut patterns = PatternSet::new();
    patterns.add_op_fn("t.split", split);
    converts_fully(module, &target, &patterns);
    assert_ir(module, expected);
}

#[test]
fn few_ops_before_a_split_move() {
    // The entry block of the function: the part before the op is the shorter one, and has no arguments.
    becomes(
        r#"
func.func @f() {
  "n.a"() : () -> ()
  "t.split"() : () -> ()
  "n.b"() : () -> ()
  "n.c"() : () -> ()
  "t.split"() : () -> ()
  "n.d"() : () -> ()
  "n.e"() : () -> ()
  "n.f"() : () -> ()
  return
}
"#,
        r#"
func.func @f() {
  "n.a"() : () -> ()
  "n.end"() : () -> ()
  cf.br ^bb1
^bb1:  // pred: ^bb0
  "n.begin"() : () -> ()
  "n.b"() : () -> ()
  "n.c"() : () -> ()
  "n.end"() : () -> ()
  cf.br ^bb2
^bb2:  // pred: ^bb1
  "n.begin"() : () -> ()
  "n.d"() : () -> ()
  "n.e"() : () -> ()
  "n.f"() : () -> ()
  return
}
"#,
    );
}

#[test]
fn arguments_and_branches_stay_with_the_first_part() {
    // The first block has an argument; the second has two predecessors, one of them itself.
    becomes(
        r#"
func.func @f(%c: i1) {
  "t.split"() : () -> ()
  cf.br ^bb1
^bb1:
  "t.split"() : () -> ()
  "n.a"() : () -> ()
  "n.b"() : () -> ()
  "n.c"() : () -> ()
  cf.cond_br %c, ^bb1, ^bb2
^bb2:
  "n.d"() : () -> ()
  return
}
"#,
        r#"
func.func @f(%arg0: i1) {
  "n.end"() : () -> ()
  cf.br ^bb1
^bb1:  // pred: ^bb0
  "n.begin"() : () -> ()
  cf.br ^bb2
^bb2:  // 2 preds: ^bb1, ^bb3
  "n.end"() : () -> ()
  cf.br ^bb3
^bb3:  // pred: ^bb2
  "n.begin"() : () -> ()
  "n.a"() : () -> ()
  "n.b"() : () -> ()
  "n.c"() : () -> ()
  cf.cond_br %arg0, ^bb2, ^bb4
^bb4:  // pred: ^bb3
  "n.d"() : () -> ()
  return
}
"#,
    );
}

/// The shorter part becomes the new block.
#[test]
fn the_new_block_takes_fewer_ops() {
    let module = parse(
        "func.func @f() {\n  \"n.a\"() : () -> ()\n  \"n.b\"() : () -> ()\n  \"n.c\"() : () -> ()\n  return\n}\n",
    );
    let function = module.op().find_all("func.func")[0];
    let old = function.body().expect("it has a body");
    let ops = old.ops();
    let mut rw = monopour_ir::Rewriter::new(module.context());
    let (before, rest) = rw.split_block(ops[1]);
    assert_eq!((rest, function.body()), (old, Some(before)), "the op before it has moved");
    assert_eq!((before.ops(), rest.ops()), (ops[..1].to_vec(), ops[1..].to_vec()));
    let (middle, end) = rw.split_block(ops[3]);
    assert_eq!(middle, old, "the op itself has moved");
    assert_eq!((middle.ops(), end.ops()), (ops[1..3].to_vec(), ops[3..].to_vec()));
    let blocks: Vec<Block> = function.region(0).blocks();
    assert_eq!(blocks, [before, middle, end]);
}

/// A block that a pattern moved out of its op belongs to the pattern, both parts of it after a split.
#[test]
fn both_parts_of_a_block_that_was_taken_may_be_erased_from() {
    let text = r#"
func.func @f() {
  "t.around"() ({
    "n.a"() : () -> ()
    "n.gone"() : () -> ()
    "n.b"() : () -> ()
    "n.b"() : () -> ()
    "n.b"() : () -> ()
    "n.gone"() : () -> ()
    cf.br ^bb1
  ^bb1:
    "n.end"() : () -> ()
  }) : () -> ()
  return
}
"#;
    let module = parse(text);
    let mut target = ConversionTarget::new();
    target.illegal_dialect("t");
    let mut patterns = PatternSet::new();
    patterns.add_op_fn("t.around", |op, rw| {
        let (before, rest) = rw.split_block(op);
        let first = op.region(0).entry().expect("it has a block");
        let last = op.region(0).last().expect("it has two blocks");
        rw.inline_region_before(op.region(0), rest);
        let gone: Vec<Op> = first.ops().into_iter().filter(|inner| inner.is("n.gone")).collect();
        for inner in gone {
            let (head, tail) = rw.split_block(inner);
            rw.set_point(InsertionPoint::End(head));
            rw.create(OpSpec::new("cf.br", inner.location()).successor(tail))?;
            rw.erase(inner);
        }
        rw.set_point(InsertionPoint::End(last));
        rw.create(OpSpec::new("cf.br", op.location()).successor(rest))?;
        rw.set_point(InsertionPoint::End(before));
        let entry = before.region().and_then(|region| region.blocks().get(1).copied()).expect("it was split");
        rw.create(OpSpec::new("cf.br", op.location()).successor(entry))?;
        rw.erase(op);
        Ok(())
    });
    converts_fully(module, &target, &patterns);
    assert!(module.op().find_all("n.gone").is_empty());
    assert_eq!(module.op().find_all("cf.br").len(), 5);
}
