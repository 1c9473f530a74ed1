// Four layers, each with a tensor of its own. Donated: nothing. Possible without a copy, in two buffers by turns.
func.func @main(%x: tensor<256x256xf32>, %w0: tensor<256x256xf32>, %w1: tensor<256x256xf32>, %w2: tensor<256x256xf32>, %w3: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %z = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<256x256xf32>
  %f0 = linalg.fill ins(%z : f32) outs(%e0 : tensor<256x256xf32>) -> tensor<256x256xf32>
  %m0 = linalg.matmul ins(%x, %w0 : tensor<256x256xf32>, tensor<256x256xf32>) outs(%f0 : tensor<256x256xf32>) -> tensor<256x256xf32>
  %e1 = tensor.empty() : tensor<256x256xf32>
  %f1 = linalg.fill ins(%z : f32) outs(%e1 : tensor<256x256xf32>) -> tensor<256x256xf32>
  %m1 = linalg.matmul ins(%m0, %w1 : tensor<256x256xf32>, tensor<256x256xf32>) outs(%f1 : tensor<256x256xf32>) -> tensor<256x256xf32>
  %e2 = tensor.empty() : tensor<256x256xf32>
  %f2 = linalg.fill ins(%z : f32) outs(%e2 : tensor<256x256xf32>) -> tensor<256x256xf32>
  %m2 = linalg.matmul ins(%m1, %w2 : tensor<256x256xf32>, tensor<256x256xf32>) outs(%f2 : tensor<256x256xf32>) -> tensor<256x256xf32>
  %e3 = tensor.empty() : tensor<256x256xf32>
  %f3 = linalg.fill ins(%z : f32) outs(%e3 : tensor<256x256xf32>) -> tensor<256x256xf32>
  %m3 = linalg.matmul ins(%m2, %w3 : tensor<256x256xf32>, tensor<256x256xf32>) outs(%f3 : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %m3 : tensor<256x256xf32>
}
