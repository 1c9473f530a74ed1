//! Values that change their types.

use super::{check, make, parse, rename};
use monopour_ir::conversion::{ConversionRewriter, ConversionTarget, Declined, Mode, PatternSet};
use monopour_ir::{Attr, Module, Op, OpSpec, Type, Value};

fn i64_of<'c>(op: Op<'c>) -> Type<'c> {
    Type::integer(op.context(), 64)
}

fn create<'c>(
    rw: &mut ConversionRewriter<'c>,
    name: &str,
    like: Op<'c>,
    operands: &[Value<'c>],
    types: &[Type<'c>],
) -> Result<Op<'c>, Declined> {
    Ok(rw.create(OpSpec::new(name, like.location()).operands(operands).results(types))?)
}

/// `from`(index...) -> index becomes `to`(i64...) -> i64.
fn widen<'p>(patterns: &mut PatternSet<'_, 'p>, from: &'p str, to: &'p str) {
    patterns.add_fn(from, move |op, adaptor, rw| {
        let types = vec![i64_of(op); op.num_results()];
        let new = create(rw, to, op, adaptor.operands(), &types)?;
        rw.replace_op(op, &new.results());
        Ok(())
    });
}

fn casts(module: &Module) -> usize {
    module.op().find_all("builtin.unrealized_conversion_cast").len()
}

const CHAIN: &str = r#"
%0 = "t.def"() : () -> index
%1 = "t.add"(%0, %0) : (index, index) -> index
%2 = "t.add"(%1, %0) : (index, index) -> index
"t.use"(%2) : (index) -> ()
"#;

#[test]
fn a_chain_changes_type_without_a_cast_left() {
    let module = parse(CHAIN);
    let mut target = ConversionTarget::new();
    target.illegal_op("t.def").illegal_op("t.add").illegal_op("t.use");
    let mut patterns = PatternSet::new();
    widen(&mut patterns, "t.def", "n.def");
    widen(&mut patterns, "t.add", "n.add");
    widen(&mut patterns, "t.use", "n.use");
    let stats = check(module, &target, &patterns, Mode::Full).expect("converts");
    assert_eq!(casts(module), 0);
    // One per replaced value. The casts of a pattern's own operands live until it has ended: %0 and %1 beside the new %2.
    assert_eq!((stats.patterns_applied, stats.casts_created), (4, 3));
    assert_eq!(stats.max_live_casts, 3);
    assert!(module.op().find_all("n.add").iter().all(|op| op.operand(0).ty().integer_width() == Some(64)));
}

#[test]
fn original_types_are_visible_beside_the_new_ones() {
    let module = parse(CHAIN);
    let mut target = ConversionTarget::new();
    target.illegal_op("t.def").illegal_op("t.use");
    let mut patterns = PatternSet::new();
    widen(&mut patterns, "t.def", "n.def");
    patterns.add_fn("t.use", |op, adaptor, rw| {
        assert!(op.operand(0).ty().is_index());
        assert!(adaptor.operand(0).ty().is_index(), "t.add is legal and keeps its type");
        rw.erase(op);
        Ok(())
    });
    patterns.add_fn("t.add", |_, _, _| Err(Declined::no_match("legal ops are not rewritten")));
    check(module, &target, &patterns, Mode::Partial).expect("converts");
    // Both t.add read %0 through one shared cast.
    assert_eq!(casts(module), 1);
    let cast = module.op().find_all("builtin.unrealized_conversion_cast")[0];
    assert_eq!(cast.result(0).uses().len(), 3);
}

#[test]
fn a_cast_to_a_legal_user_is_an_error_in_full_mode() {
    let module = parse(CHAIN);
    let mut target = ConversionTarget::new();
    target.illegal_op("t.def");
    let mut patterns = PatternSet::new();
    widen(&mut patterns, "t.def", "n.def");
    let errors = check(module, &target, &patterns, Mode::Full).expect_err("a cast is left");
    assert_eq!(errors.0.len(), 1);
    assert_eq!(errors.0[0].code, "I0013");
    assert_eq!(errors.0[0].message, "a cast from i64 to index is left after a full conversion");
}

#[test]
fn types_that_change_twice_leave_one_cast_of_the_last() {
    // index -> i64 -> i32: the cast of the middle type folds away.
    let module = parse(CHAIN);
    let mut target = ConversionTarget::new();
    target.illegal_op("t.def").illegal_op("n.def");
    let mut patterns = PatternSet::new();
    widen(&mut patterns, "t.def", "n.def");
    patterns.add_fn("n.def", |op, _, rw| {
        let new = create(rw, "m.def", op, &[], &[Type::integer(op.context(), 32)])?;
        rw.replace_op(op, &new.results());
        Ok(())
    });
    let stats = check(module, &target, &patterns, Mode::Partial).expect("converts");
    assert_eq!((casts(module), stats.casts_created), (1, 2));
    let cast = module.op().find_all("builtin.unrealized_conversion_cast")[0];
    assert_eq!(cast.operand(0).ty().integer_width(), Some(32));
    assert!(cast.result(0).ty().is_index());
}

#[test]
fn changing_back_leaves_no_cast() {
    let module = parse(CHAIN);
    let mut target = ConversionTarget::new();
    target.illegal_op("t.def").illegal_op("n.def");
    let mut patterns = PatternSet::new();
    widen(&mut patterns, "t.def", "n.def");
    patterns.add_fn("n.def", |op, _, rw| {
        let new = create(rw, "m.def", op, &[], &[Type::index(op.context())])?;
        rw.replace_op(op, &new.results());
        Ok(())
    });
    check(module, &target, &patterns, Mode::Full).expect("converts");
    assert_eq!(casts(module), 0);
}

const LOOP: &str = r#"
func.func @f(%n: index, %x: index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %x) -> (index) {
    %s = "t.add"(%acc, %i) : (index, index) -> index
    scf.yield %s : index
  }
  return %r : index
}
"#;

/// Carries an index loop's iter_args as i64: new op with the old body, block arguments converted in place.
fn widen_loop(patterns: &mut PatternSet<'_, '_>) {
    patterns.add_fn("scf.for", |op, adaptor, rw| {
        let i64_ty = i64_of(op);
        let mut operands = op.operands();
        for (i, operand) in operands.iter_mut().enumerate().skip(3) {
            *operand = rw.cast(adaptor.operand(i), i64_ty);
        }
        let body = monopour_ir::Region::new();
        rw.take_region(body, op.region(0));
        // The yield with its loop: in between, the loop would be invalid.
        let end = body.entry().and_then(|block| block.terminator()).expect("a loop's body ends in a yield");
        let yielded: Vec<Value> = end.operands().into_iter().map(|v| rw.cast(v, i64_ty)).collect();
        rw.set_operands(end, &yielded);
        let mut types = vec![Type::index(op.context())];
        types.resize(1 + op.num_results(), i64_ty);
        rw.convert_block_args(body.entry().expect("a loop has a body"), &types);
        let spec = OpSpec::new("scf.for", op.location()).operands(&operands).results(&types[1..]).region(body);
        let new = rw.create(spec)?;
        rw.replace_op(op, &new.results());
        Ok(())
    });
}

#[test]
fn a_loop_carries_the_new_type() {
    let module = parse(LOOP);
    let is_wide = |op: Op| op.results().iter().all(|r| !r.ty().is_index());
    let mut target = ConversionTarget::new();
    target.dynamically_legal_op("scf.for", is_wide);
    target.illegal_op("t.add");
    let mut patterns = PatternSet::new();
    widen_loop(&mut patterns);
    widen(&mut patterns, "t.add", "n.add");
    check(module, &target, &patterns, Mode::Partial).expect("converts");
    let add = module.op().find_all("n.add")[0];
    assert_eq!(add.operand(0).as_block_arg().map(|a| a.1), Some(1));
    // %x enters and %r leaves as index: two casts; none in the loop.
    assert_eq!(casts(module), 2);
    assert!(
        module
            .op()
            .find_all("builtin.unrealized_conversion_cast")
            .iter()
            .all(|c| c.parent().is_some_and(|p| p.is("func.func")))
    );
}

#[test]
fn block_signatures_change_in_place() {
    let module = parse(
        "func.func @f(%a: index) -> index {\n  cf.br ^bb1(%a : index)\n^bb1(%b: index):\n  return %b : index\n}\n",
    );
    let mut target = ConversionTarget::new();
    target.dynamically_legal_op("func.func", |op| op.function_type().is_some_and(|(i, _)| !i[0].is_index()));
    let mut patterns = PatternSet::new();
    patterns.add_fn("func.func", |op, _, rw| {
        let ty = i64_of(op);
        for block in op.region(0).blocks() {
            rw.convert_block_signature(block, &vec![vec![ty]; block.num_args()])?;
        }
        rw.set_attr(op, "function_type", Attr::ty(Type::function(op.context(), &[ty], &[ty])));
        // The return changes with its function: in between, the return would be invalid.
        for end in op.find_all("func.return") {
            let values: Vec<Value> = end.operands().into_iter().map(|v| rw.cast(v, ty)).collect();
            rw.set_operands(end, &values);
        }
        Ok(())
    });
    check(module, &target, &patterns, Mode::Full).expect("converts");
    assert_eq!(casts(module), 0);
}

#[test]
fn casts_in_the_input_are_left_alone() {
    let module = parse(
        "%0 = \"t.def\"() : () -> index\n%1 = builtin.unrealized_conversion_cast %0 : index to i8\n\"t.use\"(%1) : (i8) -> ()\n",
    );
    let mut target = ConversionTarget::new();
    target.illegal_op("t.def").illegal_op("t.use");
    let mut patterns = PatternSet::new();
    widen(&mut patterns, "t.def", "n.def");
    patterns.add(rename("t.use", "n.use"));
    check(module, &target, &patterns, Mode::Partial).expect("converts");
    // The user's cast and the driver's before it.
    assert_eq!(casts(module), 2);
    assert_eq!(module.op().find_all("n.use")[0].operand(0).ty().integer_width(), Some(8));
}

#[test]
fn a_cast_right_after_the_insertion_point_comes_before_later_ops() {
    // The insertion point is the start of the block, and the cast is of its argument: the new op must come after the cast.
    let module = parse("func.func @f(%a: index) {\n  \"t.a\"(%a) : (index) -> ()\n  return\n}\n");
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a");
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, adaptor, rw| {
        let block = op.block().expect("in a block");
        rw.set_point(monopour_ir::InsertionPoint::Start(block));
        let wide = rw.cast(adaptor.operand(0), i64_of(op));
        make(rw, "n.a", op, &[wide])?;
        rw.erase(op);
        Ok(())
    });
    check(module, &target, &patterns, Mode::Partial).expect("converts");
    assert_eq!(casts(module), 1);
}
