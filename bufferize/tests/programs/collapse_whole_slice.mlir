func.func @main(%x: f32) -> tensor<24xf32> {
  %e = tensor.empty() : tensor<6x6xf32>
  %t = linalg.fill ins(%x : f32) outs(%e : tensor<6x6xf32>) -> tensor<6x6xf32>
  %s = tensor.extract_slice %t[0, 0] [4, 6] [1, 1] : tensor<6x6xf32> to tensor<4x6xf32>
  %c = tensor.collapse_shape %s [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>
  return %c : tensor<24xf32>
}
