func.func @main(%t: tensor<17x?xf32>, %n: index, %m: index) -> (tensor<17x?xf32>, tensor<17x4x?xf32>) {
  %s = tensor.extract_slice %t[0, 0] [17, %n] [1, 1] : tensor<17x?xf32> to tensor<17x?xf32>
  %e = tensor.empty(%n) : tensor<68x?xf32>
  %f = tensor.empty(%n) : tensor<17x4x?xf32>
  %g = tensor.expand_shape %e [[0, 1], [2]] output_shape [17, 4, %n] : tensor<68x?xf32> into tensor<17x4x?xf32>
  %h = tensor.extract_slice %g[0, 2, 0] [17, 2, %m] [1, 1, 1] : tensor<17x4x?xf32> to tensor<17x2x?xf32>
  %i = tensor.insert_slice %h into %f[0, 0, %m] [17, 2, %m] [1, 1, 1] : tensor<17x2x?xf32> into tensor<17x4x?xf32>
  return %s, %i : tensor<17x?xf32>, tensor<17x4x?xf32>
}
