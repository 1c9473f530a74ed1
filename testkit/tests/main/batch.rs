//! Batches of bufferized functions: values, forbidden writes, and crashes.

use monopour_ir::{Context, Module};
use monopour_testkit::HostTensor;
use monopour_testkit::batch::{Batch, Outcome, bits};

fn add(batch: &mut Batch, text: &str, inputs: &[HostTensor], frozen: &[bool]) {
    Context::scope(|cx| {
        let module = Module::parse(cx, text.as_bytes(), "test.mlir").expect("the test's program parses");
        batch.add(&module, inputs, frozen).expect("it can be called");
    });
}

fn f32s(values: &[f32]) -> HostTensor {
    HostTensor::from_f32(&[values.len()], values).expect("as many values as the shape says")
}

const ADDS_IN_PLACE: &str = "func.func @main(%a: memref<2xf32>) -> (memref<2xf32>, f32) {
  %c0 = arith.constant 0 : index
  %v = memref.load %a[%c0] : memref<2xf32>
  %s = arith.addf %v, %v : f32
  memref.store %s, %a[%c0] : memref<2xf32>
  return %a, %v : memref<2xf32>, f32
}";

const WRITES_A_CONSTANT: &str = "memref.global \"private\" constant @c : memref<1xf32> = dense<1.0>
func.func @main() -> f32 {
  %c0 = arith.constant 0 : index
  %nine = arith.constant 9.0 : f32
  %c = memref.get_global @c : memref<1xf32>
  %v = memref.load %c[%c0] : memref<1xf32>
  memref.store %nine, %c[%c0] : memref<1xf32>
  return %v : f32
}";

const CALLS_ITSELF: &str = "func.func private @sum(%n: index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %done = arith.cmpi eq, %n, %c0 : index
  %r = scf.if %done -> index {
    scf.yield %c0 : index
  } else {
    %m = arith.subi %n, %c1 : index
    %s = func.call @sum(%m) : (index) -> index
    %t = arith.addi %s, %n : index
    scf.yield %t : index
  }
  return %r : index
}
func.func @main() -> index {
  %c4 = arith.constant 4 : index
  %r = call @sum(%c4) : (index) -> index
  return %r : index
}";

#[test]
fn a_crash_is_that_of_one_function() {
    let mut batch = Batch::default();
    let input = f32s(&[1.5, 4.0]);
    add(&mut batch, ADDS_IN_PLACE, std::slice::from_ref(&input), &[true]);
    add(&mut batch, WRITES_A_CONSTANT, &[], &[]);
    add(&mut batch, CALLS_ITSELF, &[], &[]);
    let outcomes = batch.run().expect("runs");
    let after = f32s(&[3.0, 4.0]);
    let mut left = bits(&[after.clone(), f32s(&[1.5])]);
    left.extend(bits(&[after]));
    // The last list is the read-only argument, which changed.
    assert_ne!(left[2], bits(&[input])[0]);
    assert_eq!(outcomes[0], [Outcome::Values(left.clone()), Outcome::Values(left)]);
    assert!(matches!(outcomes[1][0], Outcome::Crash(_)), "{:?}", outcomes[1]);
    assert_eq!(outcomes[2], [Outcome::Values(vec![vec![10]]), Outcome::Values(vec![vec![10]])]);
}

#[test]
fn a_constant_that_can_be_written_differs_in_the_second_run() {
    let mut batch = Batch::with_writable_constants();
    add(&mut batch, WRITES_A_CONSTANT, &[], &[]);
    let outcomes = batch.run().expect("runs");
    let value = |v: f32| Outcome::Values(bits(&[f32s(&[v])]));
    assert_eq!(outcomes[0], [value(1.0), value(9.0)]);
}

#[test]
fn a_softmax_is_rounded_once() {
    let text = "func.func @main(%a: memref<2x2xf32>) -> memref<2x2xf32> {
      %s = memref.alloc() : memref<2x2xf32>
      linalg.softmax dimension(1) ins(%a : memref<2x2xf32>) outs(%s : memref<2x2xf32>)
      return %s : memref<2x2xf32>
    }";
    let mut batch = Batch::default();
    let input = HostTensor::from_f32(&[2, 2], &[1.0, 1.0, 2.0, 3.0]).expect("four values");
    add(&mut batch, text, &[input], &[]);
    let outcomes = batch.run().expect("runs");
    let (low, sum) = ((-1f64).exp(), (-1f64).exp() + 1.0);
    let expected = f32s(&[0.5, 0.5, (low / sum) as f32, (1.0 / sum) as f32]);
    assert_eq!(outcomes[0][0], Outcome::Values(bits(&[expected])));
}
