// A tensor of unknown rank that would have to be copied.
// options: extensions or-error
// values: 1 9
func.func @main() -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %one = arith.constant 1.0 : f32
  %nine = arith.constant 9.0 : f32
  %t_empty = tensor.empty() : tensor<4xf32>
  %t = linalg.fill ins(%one : f32) outs(%t_empty : tensor<4xf32>) -> tensor<4xf32>
  %u = tensor.cast %t : tensor<4xf32> to tensor<*xf32>
  %back = tensor.cast %u : tensor<*xf32> to tensor<4xf32>
  %w = tensor.insert %nine into %back[%c0] : tensor<4xf32>
  %again = tensor.cast %u : tensor<*xf32> to tensor<4xf32>
  %old = tensor.extract %again[%c0] : tensor<4xf32>
  %new = tensor.extract %w[%c0] : tensor<4xf32>
  return %old, %new : f32, f32
}
