// The constant comes through a second function, which passes on what it gets.
// values: 9 1
func.func private @constant() -> tensor<4xf32> {
  %c = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  return %c : tensor<4xf32>
}
func.func private @same(%t: tensor<4xf32>) -> tensor<4xf32> {
  return %t : tensor<4xf32>
}
func.func @main() -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %one = arith.constant 1.0 : f32
  %nine = arith.constant 9.0 : f32
  %a = call @constant() : () -> tensor<4xf32>
  %s = call @same(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %w = tensor.insert %nine into %s[%c0] : tensor<4xf32>
  %new = tensor.extract %w[%c0] : tensor<4xf32>
  %b = call @constant() : () -> tensor<4xf32>
  %again = tensor.extract %b[%c0] : tensor<4xf32>
  return %new, %again : f32, f32
}
