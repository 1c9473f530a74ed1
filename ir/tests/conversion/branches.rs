//! Branches to blocks whose signatures change.

use super::lower::{
    assert_ir, convert_function, converter, converts_fully, fails_with, functions, functions_target, retarget,
};
use super::{check, parse};
use monopour_ir::conversion::{ConversionTarget, Mode, PatternSet};
use monopour_ir::{Attr, Op, OpSpec, Type};

/// Changes whole functions, all blocks with them, and `t` ops to `n` ops.
#[track_caller]
fn becomes(text: &str, expected: &str) {
    let module = parse(text);
    let converter = converter(module.context());
    let mut target = ConversionTarget::new();
    target.illegal_dialect("t");
    functions_target(&mut target, &converter);
    let mut patterns = PatternSet::with_converter(&converter);
    retarget(&mut patterns, &converter, "t.a", "n.a");
    functions(&mut patterns, &converter);
    converts_fully(module, &target, &patterns);
    assert_ir(module, expected);
}

#[test]
fn a_branch_hands_over_what_its_block_takes_now() {
    becomes(
        r#"
func.func @f(%x: complex<f32>, %y: none, %z: index) -> complex<f32> {
  cf.br ^bb1(%z, %x, %y : index, complex<f32>, none)
^bb1(%a: index, %b: complex<f32>, %c: none):
  %d = "t.a"(%a, %c) : (index, none) -> complex<f32>
  cf.br ^bb2(%c, %d : none, complex<f32>)
^bb2(%e: none, %f: complex<f32>):
  return %f : complex<f32>
}
"#,
        r#"
func.func @f(%arg0: f32, %arg1: f32, %arg2: i64) -> (f32, f32) {
  cf.br ^bb1(%arg2, %arg0, %arg1 : i64, f32, f32)
^bb1(%0: i64, %1: f32, %2: f32):  // pred: ^bb0
  %3:2 = "n.a"(%0) : (i64) -> (f32, f32)
  cf.br ^bb2(%3#0, %3#1 : f32, f32)
^bb2(%4: f32, %5: f32):  // pred: ^bb1
  return %4, %5 : f32, f32
}
"#,
    );
}

#[test]
fn a_conditional_branch_to_one_block_twice() {
    becomes(
        r#"
func.func @f(%c: i1, %x: complex<f32>, %y: complex<f32>, %z: index) -> complex<f32> {
  cf.cond_br %c, ^bb1(%x, %z : complex<f32>, index), ^bb1(%y, %z : complex<f32>, index)
^bb1(%a: complex<f32>, %b: index):
  %d = "t.a"(%b) : (index) -> i1
  cf.cond_br %d, ^bb1(%a, %b : complex<f32>, index), ^bb2
^bb2:
  return %a : complex<f32>
}
"#,
        r#"
func.func @f(%arg0: i1, %arg1: f32, %arg2: f32, %arg3: f32, %arg4: f32, %arg5: i64) -> (f32, f32) {
  cf.cond_br %arg0, ^bb1(%arg1, %arg2, %arg5 : f32, f32, i64), ^bb1(%arg3, %arg4, %arg5 : f32, f32, i64)
^bb1(%0: f32, %1: f32, %2: i64):  // 3 preds: ^bb0, ^bb0, ^bb1
  %3 = "n.a"(%2) : (i64) -> i1
  cf.cond_br %3, ^bb1(%0, %1, %2 : f32, f32, i64), ^bb2
^bb2:  // pred: ^bb1
  return %0, %1 : f32, f32
}
"#,
    );
}

#[test]
fn a_block_that_branches_to_itself() {
    becomes(
        r#"
func.func @f(%x: complex<f32>, %y: none, %z: index) {
  cf.br ^bb1(%x, %y, %z, %z : complex<f32>, none, index, index)
^bb1(%a: complex<f32>, %b: none, %c: index, %d: index):
  cf.br ^bb1(%a, %b, %d, %c : complex<f32>, none, index, index)
}
"#,
        r#"
func.func @f(%arg0: f32, %arg1: f32, %arg2: i64) {
  cf.br ^bb1(%arg0, %arg1, %arg2, %arg2 : f32, f32, i64, i64)
^bb1(%0: f32, %1: f32, %2: i64, %3: i64):  // 2 preds: ^bb0, ^bb1
  cf.br ^bb1(%0, %1, %3, %2 : f32, f32, i64, i64)
}
"#,
    );
}

#[test]
fn a_switch_hands_over_to_each_case() {
    becomes(
        r#"
func.func @f(%k: i32, %x: complex<f32>, %y: none, %z: index) -> index {
  cf.switch %k : i32, [
    default: ^bb1(%x, %z : complex<f32>, index),
    3: ^bb2(%y : none),
    4: ^bb1(%x, %z : complex<f32>, index),
    5: ^bb2(%y : none)
  ]
^bb1(%a: complex<f32>, %b: index):
  return %b : index
^bb2(%c: none):
  %d = "t.a"(%c) : (none) -> index
  return %d : index
}
"#,
        r#"
func.func @f(%arg0: i32, %arg1: f32, %arg2: f32, %arg3: i64) -> i64 {
  cf.switch %arg0 : i32, [
    default: ^bb1(%arg1, %arg2, %arg3 : f32, f32, i64),
    3: ^bb2,
    4: ^bb1(%arg1, %arg2, %arg3 : f32, f32, i64),
    5: ^bb2
  ]
^bb1(%0: f32, %1: f32, %2: i64):  // 2 preds: ^bb0, ^bb0
  return %2 : i64
^bb2:  // 2 preds: ^bb0, ^bb0
  %3 = "n.a"() : () -> i64
  return %3 : i64
}
"#,
    );
}

#[test]
fn blocks_in_a_circle_swap_what_they_hand_over() {
    becomes(
        r#"
func.func @f(%c: i1, %x: complex<f32>, %y: complex<f32>) -> complex<f32> {
  cf.br ^bb1(%x, %y : complex<f32>, complex<f32>)
^bb1(%a: complex<f32>, %b: complex<f32>):
  cf.cond_br %c, ^bb2(%b, %a : complex<f32>, complex<f32>), ^bb3(%a : complex<f32>)
^bb2(%d: complex<f32>, %e: complex<f32>):
  cf.cond_br %c, ^bb1(%e, %a : complex<f32>, complex<f32>), ^bb3(%e : complex<f32>)
^bb3(%r: complex<f32>):
  return %r : complex<f32>
}
"#,
        r#"
func.func @f(%arg0: i1, %arg1: f32, %arg2: f32, %arg3: f32, %arg4: f32) -> (f32, f32) {
  cf.br ^bb1(%arg1, %arg2, %arg3, %arg4 : f32, f32, f32, f32)
^bb1(%0: f32, %1: f32, %2: f32, %3: f32):  // 2 preds: ^bb0, ^bb2
  cf.cond_br %arg0, ^bb2(%2, %3, %0, %1 : f32, f32, f32, f32), ^bb3(%0, %1 : f32, f32)
^bb2(%4: f32, %5: f32, %6: f32, %7: f32):  // pred: ^bb1
  cf.cond_br %arg0, ^bb1(%6, %7, %0, %1 : f32, f32, f32, f32), ^bb3(%6, %7 : f32, f32)
^bb3(%8: f32, %9: f32):  // 2 preds: ^bb1, ^bb2
  return %8, %9 : f32, f32
}
"#,
    );
}

const UNKNOWN_BRANCH: &str = r#"
func.func @f(%a: index) {
  "t.br"(%a)[^bb2] : (index) -> ()
^bb1(%b: index):
  cf.br ^bb2(%b : index)
^bb2(%c: index):
  "t.use"(%c) : (index) -> ()
  return
}
"#;

#[test]
fn a_branch_that_does_not_say_what_it_hands_over_keeps_the_signature() {
    let module = parse(UNKNOWN_BRANCH);
    let before = module.op().to_string();
    let converter = converter(module.context());
    let mut target = ConversionTarget::new();
    target.illegal_op("func.func");
    let mut patterns = PatternSet::with_converter(&converter);
    patterns.add_fn("func.func", |op, _, rw| convert_function(rw, &converter, op));
    fails_with(
        module,
        &target,
        &patterns,
        r#"
error[I0010]: 'func.func' is illegal in the conversion target and no pattern converts it
  --> test.mlir:2:1
  note: pattern 'convert func.func' declined: 't.br' does not say what it hands to a block whose signature changes
"#,
    );
    assert_eq!(module.op().to_string(), before);
}

#[test]
fn a_block_whose_signature_stays_may_be_reached_by_any_branch() {
    let module = parse(UNKNOWN_BRANCH);
    let mut target = ConversionTarget::new();
    target.dynamically_legal_op("func.func", |op| op.attr("done").is_some());
    let mut patterns = PatternSet::new();
    patterns.add_fn("func.func", |op, _, rw| {
        let wide = Type::integer(op.context(), 64);
        for (i, block) in op.region(0).blocks().into_iter().enumerate() {
            rw.convert_block_signature(block, &[vec![if i == 1 { wide } else { Type::index(op.context()) }]])?;
        }
        rw.set_attr(op, "done", Attr::unit(op.context()));
        Ok(())
    });
    check(module, &target, &patterns, Mode::Partial).expect("converts");
    assert_ir(
        module,
        r#"
func.func @f(%arg0: index) attributes {done} {
  "t.br"(%arg0)[^bb2] : (index) -> ()
^bb1(%0: i64):  // no predecessors
  %1 = builtin.unrealized_conversion_cast %0 : i64 to index
  cf.br ^bb2(%1 : index)
^bb2(%2: index):  // 2 preds: ^bb0, ^bb1
  "t.use"(%2) : (index) -> ()
  return
}
"#,
    );
}

#[test]
fn a_branch_to_its_own_block_reads_the_adaptor_after_it_converted_the_block() {
    let module = parse(
        r#"
func.func @f(%c: i1, %a: complex<f32>, %z: none, %i: index) {
  cf.cond_br %c, ^bb1(%a, %z, %i, %i : complex<f32>, none, index, index), ^bb2
^bb1(%b: complex<f32>, %n: none, %j: index, %k: index):
  cf.br ^bb1(%b, %n, %k, %j : complex<f32>, none, index, index)
^bb2:
  return
}
"#,
    );
    let converter = converter(module.context());
    let mut target = ConversionTarget::new();
    target.illegal_op("cf.br");
    let mut patterns = PatternSet::with_converter(&converter);
    patterns.add_one_to_many_fn("cf.br", |op: Op, adaptor, rw| {
        let to = op.successors()[0];
        let types = |i| adaptor.operand_values(i).iter().map(|value| value.ty()).collect();
        let types: Vec<Vec<Type>> = (0..op.num_operands()).map(types).collect();
        rw.convert_block_signature(to, &types)?;
        rw.create(OpSpec::new("llvm.br", op.location()).operands(adaptor.operands()).successor(to))?;
        rw.erase(op);
        Ok(())
    });
    check(module, &target, &patterns, Mode::Partial).expect("converts");
    assert_ir(
        module,
        r#"
func.func @f(%arg0: i1, %arg1: complex<f32>, %arg2: none, %arg3: index) {
  %0:2 = builtin.unrealized_conversion_cast %arg1 : complex<f32> to f32, f32
  %1 = builtin.unrealized_conversion_cast %arg3 : index to i64
  cf.cond_br %arg0, ^bb1(%0#0, %0#1, %1, %1 : f32, f32, i64, i64), ^bb2
^bb1(%2: f32, %3: f32, %4: i64, %5: i64):  // 2 preds: ^bb0, ^bb1
  llvm.br ^bb1(%2, %3, %5, %4 : f32, f32, i64, i64)
^bb2:  // pred: ^bb0
  return
}
"#,
    );
}

/// `cf.br` becomes `llvm.br`, and its successor is converted with it: neither waits for the function.
fn branch_with_block(patterns: &mut PatternSet<'_, '_>) {
    patterns.add_fn("cf.br", |op: Op, adaptor, rw| {
        let to = op.successors()[0];
        let types: Vec<Vec<Type>> = adaptor.operands().iter().map(|value| vec![value.ty()]).collect();
        rw.convert_block_signature(to, &types)?;
        rw.create(OpSpec::new("llvm.br", op.location()).operands(adaptor.operands()).successor(to))?;
        rw.erase(op);
        Ok(())
    });
}

#[test]
fn a_branch_converts_the_block_that_it_goes_to() {
    let module = parse(
        r#"
func.func @f(%c: i1, %a: index) {
  cf.cond_br %c, ^bb1(%a : index), ^bb2
^bb1(%b: index):
  cf.br ^bb1(%b : index)
^bb2:
  return
}
"#,
    );
    let converter = converter(module.context());
    let mut target = ConversionTarget::new();
    target.illegal_op("cf.br");
    let mut patterns = PatternSet::with_converter(&converter);
    branch_with_block(&mut patterns);
    check(module, &target, &patterns, Mode::Partial).expect("converts");
    assert_ir(
        module,
        r#"
func.func @f(%arg0: i1, %arg1: index) {
  %0 = builtin.unrealized_conversion_cast %arg1 : index to i64
  cf.cond_br %arg0, ^bb1(%0 : i64), ^bb2
^bb1(%1: i64):  // 2 preds: ^bb0, ^bb1
  llvm.br ^bb1(%1 : i64)
^bb2:  // pred: ^bb0
  return
}
"#,
    );
}
