// An insert of the whole does not read its destination.
func.func @f(%t: tensor<4xf32>, %s: tensor<4xf32>, %x: f32) -> (tensor<4xf32>, tensor<4xf32>) {
  %f = linalg.fill ins(%x : f32) outs(%t : tensor<4xf32>) -> tensor<4xf32>
  %r = tensor.insert_slice %s into %f[0] [4] [1] : tensor<4xf32> into tensor<4xf32>
  %g = linalg.fill ins(%x : f32) outs(%r : tensor<4xf32>) -> tensor<4xf32>
  return %g, %s : tensor<4xf32>, tensor<4xf32>
}
