// Queries, keys and values of one input.
func.func @main(%x: tensor<96x80xf32>, %wq: tensor<80x64xf32>, %wk: tensor<80x64xf32>, %wv: tensor<80x64xf32>) -> (tensor<96x64xf32>, tensor<96x64xf32>, tensor<96x64xf32>) {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<96x64xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<96x64xf32>) -> tensor<96x64xf32>
  %q = linalg.matmul ins(%x, %wq : tensor<96x80xf32>, tensor<80x64xf32>) outs(%f : tensor<96x64xf32>) -> tensor<96x64xf32>
  %k = linalg.matmul ins(%x, %wk : tensor<96x80xf32>, tensor<80x64xf32>) outs(%f : tensor<96x64xf32>) -> tensor<96x64xf32>
  %v = linalg.matmul ins(%x, %wv : tensor<96x80xf32>, tensor<80x64xf32>) outs(%f : tensor<96x64xf32>) -> tensor<96x64xf32>
  return %q, %k, %v : tensor<96x64xf32>, tensor<96x64xf32>, tensor<96x64xf32>
}
