// Arithmetic on whole tensors.
// options: extensions or-error
func.func @main(%a: tensor<4xf32> {bufferization.writable = false}, %b: tensor<4xf32> {bufferization.writable = false}) -> tensor<4xf32> {
  %s = arith.addf %a, %b : tensor<4xf32>
  %r = arith.mulf %s, %a : tensor<4xf32>
  return %r : tensor<4xf32>
}
