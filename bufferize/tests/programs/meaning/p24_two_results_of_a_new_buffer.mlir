// Both results of a call are one new tensor; one of them is written.
// values: 1 9
func.func private @made() -> (tensor<4xf32>, tensor<4xf32>) {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %t = linalg.fill ins(%one : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %t, %t : tensor<4xf32>, tensor<4xf32>
}
func.func @main() -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %one = arith.constant 1.0 : f32
  %nine = arith.constant 9.0 : f32
  %r:2 = call @made() : () -> (tensor<4xf32>, tensor<4xf32>)
  %w = tensor.insert %nine into %r#0[%c0] : tensor<4xf32>
  %old = tensor.extract %r#1[%c0] : tensor<4xf32>
  %new = tensor.extract %w[%c0] : tensor<4xf32>
  return %old, %new : f32, f32
}
