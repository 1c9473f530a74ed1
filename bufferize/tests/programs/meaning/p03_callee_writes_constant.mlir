// A callee writes to its argument, and the caller passes a constant.
// values: 9 1
func.func private @write(%t: tensor<4xf32>, %v: f32) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
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
  %c = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %w = call @write(%c, %nine) : (tensor<4xf32>, f32) -> tensor<4xf32>
  %new = tensor.extract %w[%c0] : tensor<4xf32>
  %old = tensor.extract %c[%c0] : tensor<4xf32>
  return %new, %old : f32, f32
}
