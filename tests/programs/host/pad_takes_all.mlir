// More is taken away at the front than there is; what the other side adds is all that is left.
func.func @main(%x: tensor<?x3xf32>, %low: index, %high: index) -> tensor<?x3xf32> {
  %c = arith.constant 0.5 : f32
  %y = tensor.pad %x low[%low, 0] high[%high, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %c : f32
  } : tensor<?x3xf32> to tensor<?x3xf32>
  return %y : tensor<?x3xf32>
}
