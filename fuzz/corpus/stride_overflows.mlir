func.func @f(%t: tensor<?x6xf32>, %i: index) -> tensor<4x6xf32> {
  %s = tensor.extract_slice %t[%i, 0] [4, 6] [9223372036854775807, 1] : tensor<?x6xf32> to tensor<4x6xf32>
  return %s : tensor<4x6xf32>
}
