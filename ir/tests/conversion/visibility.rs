//! Operands as a pattern sees them: the original ones beside the converted ones, never folded.

use super::lower::{CAST, assert_ir, converter, create, retarget};
use super::{check, parse, rename};
use monopour_ir::conversion::{ConversionTarget, Mode, PatternSet};
use monopour_ir::{Attr, Op, Type, Value};
use std::cell::RefCell;

/// The types of an op's operands: the original ones, then the adaptor's.
fn seen(op: Op, new: &[Value]) -> String {
    let types = |values: &[Value]| values.iter().map(|v| v.ty().to_string()).collect::<Vec<_>>().join(", ");
    format!("{}: {} | {}", op.name(), types(&op.operands()), types(new))
}

#[test]
fn original_types_are_seen_beside_the_new_ones_at_every_use() {
    let module = parse(
        r#"
%0 = "t.a"() : () -> memref<4x8xf32>
%1 = "t.a"() : () -> complex<f32>
%2 = "t.a"() : () -> none
"t.b"(%0, %1, %2, %0) : (memref<4x8xf32>, complex<f32>, none, memref<4x8xf32>) -> ()
"#,
    );
    let mut converter = converter(module.context());
    converter.add(|ty| {
        let memref = ty.as_memref()?;
        Some(monopour_ir::conversion::TypeConversion::one(Type::memref(&[32], memref.element, None)))
    });
    let log = RefCell::new(vec![]);
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a").illegal_op("t.b");
    let mut patterns = PatternSet::with_converter(&converter);
    retarget(&mut patterns, &converter, "t.a", "n.a");
    patterns.add_one_to_many_fn("t.b", |op, adaptor, rw| {
        assert!(!adaptor.is_one_to_one());
        log.borrow_mut().push(seen(op, adaptor.operands()));
        let counts: Vec<usize> = (0..4).map(|i| adaptor.operand_values(i).len()).collect();
        assert_eq!(counts, [1, 2, 0, 1]);
        // The static shape of the original operand is still readable.
        let shape = op.operand(3).ty().as_memref().expect("a memref").shape;
        let rows = Attr::dense_i64(op.context(), &shape);
        let spec = monopour_ir::OpSpec::new("n.b", op.location()).operands(adaptor.operands()).attr("shape", rows);
        rw.create(spec)?;
        rw.erase(op);
        Ok(())
    });
    check(module, &target, &patterns, Mode::Full).expect("converts");
    assert_eq!(
        *log.borrow(),
        ["t.b: memref<4x8xf32>, complex<f32>, none, memref<4x8xf32> | memref<32xf32>, f32, f32, memref<32xf32>"]
    );
    assert_ir(
        module,
        r#"
%0 = "n.a"() : () -> memref<32xf32>
%1:2 = "n.a"() : () -> (f32, f32)
"n.a"() : () -> ()
"n.b"(%0, %1#0, %1#1, %0) {shape = array<i64: 4, 8>} : (memref<32xf32>, f32, f32, memref<32xf32>) -> ()
"#,
    );
}

#[test]
fn original_types_are_seen_behind_a_block_argument_whose_type_changed() {
    let module = parse(
        r#"
func.func @f(%a: memref<4x8xf32>, %b: complex<f32>) {
  cf.br ^bb1(%a, %b : memref<4x8xf32>, complex<f32>)
^bb1(%c: memref<4x8xf32>, %d: complex<f32>):
  "t.b"(%c, %d, %a) : (memref<4x8xf32>, complex<f32>, memref<4x8xf32>) -> ()
  return
}
"#,
    );
    let mut converter = converter(module.context());
    converter.add(|ty| {
        let memref = ty.as_memref()?;
        let is_flat = memref.shape.len() == 1;
        (!is_flat).then(|| monopour_ir::conversion::TypeConversion::one(Type::memref(&[32], memref.element, None)))
    });
    let log = RefCell::new(vec![]);
    let mut target = ConversionTarget::new();
    target.illegal_op("t.b");
    super::lower::functions_target(&mut target, &converter);
    let mut patterns = PatternSet::with_converter(&converter);
    super::lower::functions(&mut patterns, &converter);
    patterns.add_one_to_many_fn("t.b", |op, adaptor, rw| {
        log.borrow_mut().push(seen(op, adaptor.operands()));
        // A block argument converts to a block argument.
        assert!(adaptor.operands().iter().all(|value| value.as_block_arg().is_some()));
        create(rw, "n.b", op, adaptor.operands(), &[])?;
        rw.erase(op);
        Ok(())
    });
    check(module, &target, &patterns, Mode::Full).expect("converts");
    assert_eq!(
        *log.borrow(),
        ["t.b: memref<4x8xf32>, complex<f32>, memref<4x8xf32> | memref<32xf32>, f32, f32, memref<32xf32>"]
    );
    assert_ir(
        module,
        r#"
func.func @f(%arg0: memref<32xf32>, %arg1: f32, %arg2: f32) {
  cf.br ^bb1(%arg0, %arg1, %arg2 : memref<32xf32>, f32, f32)
^bb1(%0: memref<32xf32>, %1: f32, %2: f32):  // pred: ^bb0
  "n.b"(%0, %1, %2, %arg0) : (memref<32xf32>, f32, f32, memref<32xf32>) -> ()
  return
}
"#,
    );
}

#[test]
fn the_op_that_made_an_operand_is_found_behind_its_cast() {
    // Constants are converted before their users, which still read the number.
    let module = parse("%0 = arith.constant 5 : index\n\"t.b\"(%0) : (index) -> ()\n");
    let converter = converter(module.context());
    let mut target = ConversionTarget::new();
    target.illegal_op("t.b").dynamically_legal_op("arith.constant", |op| !op.result(0).ty().is_index());
    let mut patterns = PatternSet::with_converter(&converter);
    patterns.add_fn("arith.constant", |op, _, rw| {
        let (wide, number) = (Type::integer(op.context(), 64), op.result(0).constant_int().expect("a number"));
        let spec = monopour_ir::OpSpec::new("arith.constant", op.location()).results(&[wide]);
        let new = rw.create(spec.attr("value", Attr::int(wide, number)))?;
        rw.replace_op(op, &new.results());
        Ok(())
    });
    patterns.add_fn("t.b", |op, adaptor, rw| {
        assert_eq!(op.operand(0).constant_int(), None, "a cast defines it");
        let number = adaptor.operand(0).constant_int().expect("a constant");
        let spec = monopour_ir::OpSpec::new("n.b", op.location()).attr("number", Attr::i64(op.context(), number));
        rw.create(spec)?;
        rw.erase(op);
        Ok(())
    });
    check(module, &target, &patterns, Mode::Full).expect("converts");
    assert_ir(
        module,
        r#"
%c5_i64 = arith.constant 5 : i64
"n.b"() {number = 5 : i64} : () -> ()
"#,
    );
}

/// Each of these would fold to one of its operands, or to a constant.
const FOLDABLE: &str = r#"
func.func @f(%x: i64, %c: i1, %y: index) -> (i64, i64, index, i64) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %0 = arith.addi %x, %c0 : i64
  %1 = arith.muli %c1, %c0 : i64
  %2 = arith.select %c, %0, %0 : i64
  %i0 = arith.constant 0 : index
  %3 = arith.addi %y, %i0 : index
  %true = arith.constant true
  cf.cond_br %true, ^bb1, ^bb2
^bb1:
  %4 = "t.b"(%2) : (i64) -> i64
  cf.br ^bb2
^bb2:
  return %0, %1, %3, %2 : i64, i64, index, i64
}
"#;

#[test]
fn nothing_is_folded_on_the_way() {
    let module = parse(FOLDABLE);
    let mut target = ConversionTarget::new();
    target.illegal_op("t.b");
    let mut patterns = PatternSet::new();
    patterns.add(rename("t.b", "n.b"));
    let before = module.op().to_string();
    check(module, &target, &patterns, Mode::Full).expect("converts");
    assert_eq!(module.op().to_string(), before.replace("t.b", "n.b"));
}

#[test]
fn illegal_ops_are_not_folded_instead_of_being_converted() {
    let module = parse(FOLDABLE);
    let before = module.op().to_string();
    let mut target = ConversionTarget::new();
    target.illegal_op("arith.addi").illegal_op("arith.muli");
    let errors = check(module, &target, &PatternSet::new(), Mode::Partial).expect_err("no pattern");
    let lines: Vec<String> = errors.0.iter().map(|e| format!("{} {}", e.location, e.message)).collect();
    let text = "is illegal in the conversion target and no pattern converts it";
    assert_eq!(
        lines,
        [
            format!("test.mlir:5:8 'arith.addi' {text}"),
            format!("test.mlir:6:8 'arith.muli' {text}"),
            format!("test.mlir:9:8 'arith.addi' {text}")
        ]
    );
    assert_eq!(module.op().to_string(), before);
}

#[test]
fn what_a_pattern_creates_is_not_folded_either() {
    let module = parse("func.func @f(%x: i64) -> i64 {\n  %0 = \"t.b\"(%x) : (i64) -> i64\n  return %0 : i64\n}\n");
    let mut target = ConversionTarget::new();
    target.illegal_op("t.b");
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.b", |op, adaptor, rw| {
        let ty = op.result(0).ty();
        let spec = monopour_ir::OpSpec::new("arith.constant", op.location()).results(&[ty]);
        let zero = rw.create(spec.attr("value", Attr::int(ty, 0)))?.result(0);
        let sum = create(rw, "arith.addi", op, &[adaptor.operand(0), zero], &[ty])?;
        // Casts there and back fold, because they are the driver's.
        let narrow = rw.cast(sum.result(0), Type::integer(op.context(), 8));
        assert_eq!(rw.cast(narrow, ty), sum.result(0));
        rw.replace_op(op, &sum.results());
        Ok(())
    });
    check(module, &target, &patterns, Mode::Full).expect("converts");
    assert_ir(
        module,
        r#"
func.func @f(%arg0: i64) -> i64 {
  %c0_i64 = arith.constant 0 : i64
  %0 = arith.addi %arg0, %c0_i64 : i64
  return %0 : i64
}
"#,
    );
    assert!(module.op().find_all(CAST).is_empty());
}

#[test]
fn results_are_seen_with_the_users_that_they_have() {
    // Both patterns read the users of their op: the first sees an illegal op, the second a converted one.
    let module =
        parse("%0 = \"t.a\"() : () -> i32\n%1 = \"t.b\"(%0) : (i32) -> i32\n\"t.keep\"(%1, %0) : (i32, i32) -> ()\n");
    let log = RefCell::new(vec![]);
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a").illegal_op("t.b");
    let mut patterns = PatternSet::new();
    for (from, to) in [("t.a", "n.a"), ("t.b", "n.b")] {
        let log = &log;
        patterns.add_fn(from, move |op, adaptor, rw| {
            let users: Vec<&str> = op.result(0).uses().iter().map(|user| user.op.name()).collect();
            let defs: Vec<&str> = adaptor.operands().iter().filter_map(|v| v.defining_op()).map(|d| d.name()).collect();
            log.borrow_mut().push(format!("{from} of {defs:?} for {users:?}"));
            let new = create(rw, to, op, adaptor.operands(), &[op.result(0).ty()])?;
            rw.replace_op(op, &new.results());
            Ok(())
        });
    }
    check(module, &target, &patterns, Mode::Full).expect("converts");

    assert_eq!(*log.borrow(), [r#"t.a of [] for ["t.b", "t.keep"]"#, r#"t.b of ["n.a"] for ["t.keep"]"#]);
}
