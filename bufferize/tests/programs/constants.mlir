#d = #gpu.address_space<global>
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %w = arith.constant dense_resource<w0> : tensor<4x4xf32>
  %v = arith.constant dense<[[1.0,2.0,3.0,4.0],[1.0,2.0,3.0,4.0],[1.0,2.0,3.0,4.0],[1.0,2.0,3.0,4.0]]> : tensor<4x4xf32>
  %m = linalg.matmul ins(%x, %w : tensor<4x4xf32>, tensor<4x4xf32>) outs(%v : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %m : tensor<4x4xf32>
}
