//! `mlir-opt` of the pinned version answers.

use monopour_testkit::oracle::{decisions, mlir_opt, verifies};

const TWO_READERS: &str = "func.func @main(%t: tensor<4xf32>, %f: f32, %i: index) -> (tensor<4xf32>, f32) {
  %a = tensor.insert %f into %t[%i] : tensor<4xf32>
  %b = tensor.extract %t[%i] : tensor<4xf32>
  return %a, %b : tensor<4xf32>, f32
}
";

#[test]
fn decisions_are_read_from_its_output() {
    let out = mlir_opt("-one-shot-bufferize=\"test-analysis-only bufferize-function-boundaries\"", TWO_READERS)
        .expect("runs");
    let decisions = decisions(&out).expect("parses");
    assert_eq!(decisions[0], "tensor.insert [none, false, none]");
    assert!(decisions[1].starts_with("tensor.extract [true"), "{decisions:?}");
}

#[test]
fn what_does_not_verify_is_reported() {
    verifies(TWO_READERS).expect("verifies");
    verifies("%0 = \"their.op\"() {a} : () -> i32").expect("unregistered ops pass");
    assert!(verifies("func.func @f() -> i32 { return }").expect_err("is refused").contains("error"));
}
