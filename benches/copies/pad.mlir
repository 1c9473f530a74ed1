// A product in the middle of a border.
func.func @main(%x: tensor<256x256xf32>, %a: tensor<256x256xf32>) -> tensor<258x264xf32> {
  %zero = arith.constant 0.0 : f32
  %eq = tensor.empty() : tensor<256x256xf32>
  %zq = linalg.fill ins(%zero : f32) outs(%eq : tensor<256x256xf32>) -> tensor<256x256xf32>
  %q = linalg.matmul ins(%x, %a : tensor<256x256xf32>, tensor<256x256xf32>) outs(%zq : tensor<256x256xf32>) -> tensor<256x256xf32>
  %y = tensor.pad %q low[1, 4] high[1, 4] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<256x256xf32> to tensor<258x264xf32>
  return %y : tensor<258x264xf32>
}
