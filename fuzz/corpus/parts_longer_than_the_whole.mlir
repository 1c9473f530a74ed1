func.func @f1(%a: tensor<10xf32>, %b: tensor<?xf32>) -> tensor<8xf32> {
  %c = tensor.concat dim(0) %a, %b : (tensor<10xf32>, tensor<?xf32>) -> tensor<8xf32>
  return %c : tensor<8xf32>
}
