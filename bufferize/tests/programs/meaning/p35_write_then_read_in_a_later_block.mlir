// A later block writes an argument of the function and then reads the old value.
func.func @main(%t: tensor<4xf32> {bufferization.writable = true}) -> (f32, f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %one = arith.constant 1.0 : f32
  %nine = arith.constant 9.0 : f32
  %first = tensor.extract %t[%c0] : tensor<4xf32>
  cf.br ^later
^later:
  %w = tensor.insert %nine into %t[%c0] : tensor<4xf32>
  %old = tensor.extract %t[%c0] : tensor<4xf32>
  %new = tensor.extract %w[%c0] : tensor<4xf32>
  return %first, %old, %new : f32, f32, f32
}
