// The offset of each part is the sum of the sizes before it.
func.func @main(%f: tensor<8x?xf32>, %g: tensor<8x?xf32>, %h: tensor<8x2xf32>, %k: tensor<8x?xf32>) -> (tensor<8x10xf32>, tensor<8x?xf32>, tensor<8x?xf32>) {
  %0 = tensor.concat dim(1) %f, %g, %h : (tensor<8x?xf32>, tensor<8x?xf32>, tensor<8x2xf32>) -> tensor<8x10xf32>
  %1 = tensor.concat dim(1) %f, %g, %h, %g : (tensor<8x?xf32>, tensor<8x?xf32>, tensor<8x2xf32>, tensor<8x?xf32>) -> tensor<8x?xf32>
  %2 = tensor.concat dim(1) %f, %g, %k, %h : (tensor<8x?xf32>, tensor<8x?xf32>, tensor<8x?xf32>, tensor<8x2xf32>) -> tensor<8x?xf32>
  return %0, %1, %2 : tensor<8x10xf32>, tensor<8x?xf32>, tensor<8x?xf32>
}
