// Extract, fill, insert into the same slice: all in place.
func.func @f(%t: tensor<16x16xf32>, %i: index, %x: f32) -> tensor<16x16xf32> {
  %s = tensor.extract_slice %t[%i, 0] [4, 16] [1, 1] : tensor<16x16xf32> to tensor<4x16xf32>
  %f = linalg.fill ins(%x : f32) outs(%s : tensor<4x16xf32>) -> tensor<4x16xf32>
  %r = tensor.insert_slice %f into %t[%i, 0] [4, 16] [1, 1] : tensor<4x16xf32> into tensor<16x16xf32>
  return %r : tensor<16x16xf32>
}
