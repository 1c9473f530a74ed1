// Tensors without elements: computed, joined, reduced over.
func.func @main(%x: tensor<0x4xf32>, %y: tensor<3x4xf32>, %k: tensor<4x0xf32>) -> (tensor<0x4xf32>, tensor<3x4xf32>, tensor<4x4xf32>) {
  %0 = arith.addf %x, %x : tensor<0x4xf32>
  %1 = tensor.concat dim(0) %x, %y : (tensor<0x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %z = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %m = linalg.matmul ins(%k, %x : tensor<4x0xf32>, tensor<0x4xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0, %1, %m : tensor<0x4xf32>, tensor<3x4xf32>, tensor<4x4xf32>
}
