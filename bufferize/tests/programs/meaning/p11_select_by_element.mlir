// A select that chooses element by element.
// options: extensions or-error
func.func @main(%a: tensor<4xf32> {bufferization.writable = false}, %b: tensor<4xf32> {bufferization.writable = false}) -> tensor<4xf32> {
  %c = arith.constant dense<[true, false, false, true]> : tensor<4xi1>
  %r = arith.select %c, %a, %b : tensor<4xi1>, tensor<4xf32>
  return %r : tensor<4xf32>
}
