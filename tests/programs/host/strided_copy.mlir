func.func @main(%x: tensor<6x8xf32>, %y: tensor<3x4xf32>, %i: index, %j: index) -> (tensor<6x8xf32>, tensor<3x4xf32>) {
  %0 = tensor.insert_slice %y into %x[%i, %j] [3, 4] [1, 2] : tensor<3x4xf32> into tensor<6x8xf32>
  %1 = tensor.extract_slice %x[%j, %i] [3, 4] [2, 1] : tensor<6x8xf32> to tensor<3x4xf32>
  return %0, %1 : tensor<6x8xf32>, tensor<3x4xf32>
}
