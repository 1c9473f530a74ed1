// A call of a function that only the program knows.
// options: extensions or-error
// values: 9 1
func.func private @write(%t: tensor<4xf32>, %v: f32) -> tensor<4xf32> {
  %c0 = arith.constant 9223372036854775807 : index
  %w = tensor.insert %v into %t[%c0] : tensor<4xf32>
  return %w : tensor<4xf32>
}
func.func @main() -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %one = arith.constant 1.0 : f32
  %nine = arith.constant 9.0 : f32
  %t_empty = tensor.empty() : tensor<4xf32>
  %t = linalg.fill ins(%one : f32) outs(%t_empty : tensor<4xf32>) -> tensor<4xf32>
  %f = constant @write : (tensor<4xf32>, f32) -> tensor<4xf32>
  %w = call_indirect %f(%t, %nine) : (tensor<4xf32>, f32) -> tensor<4xf32>
  %new = tensor.extract %w[%c0] : tensor<4xf32>
  %old = tensor.extract %t[%c0] : tensor<4xf32>
  return %new, %old : f32, f32
}
