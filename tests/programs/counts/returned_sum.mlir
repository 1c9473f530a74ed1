// The sum of a product and a bias is returned, and read by a maximum that is returned, too.
func.func @main(%x: tensor<96x80xf32>, %w: tensor<80x72xf32>, %bias: tensor<72xf32>) -> (tensor<96x72xf32>, tensor<96x72xf32>) {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<96x72xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<96x72xf32>) -> tensor<96x72xf32>
  %m = linalg.matmul ins(%x, %w : tensor<96x80xf32>, tensor<80x72xf32>) outs(%f : tensor<96x72xf32>) -> tensor<96x72xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%m, %bias : tensor<96x72xf32>, tensor<72xf32>) outs(%e : tensor<96x72xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %u = arith.addf %a, %b : f32
    linalg.yield %u : f32
  } -> tensor<96x72xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<96x72xf32>) outs(%e : tensor<96x72xf32>) {
  ^bb0(%a: f32, %o: f32):
    %u = arith.maximumf %a, %z : f32
    linalg.yield %u : f32
  } -> tensor<96x72xf32>
  return %y, %r : tensor<96x72xf32>, tensor<96x72xf32>
}
