// A gate and what it lets through: two products of one input, multiplied.
func.func @main(%x: tensor<96x80xf32>, %wg: tensor<80x64xf32>, %wu: tensor<80x64xf32>) -> tensor<96x64xf32> {
  %z = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<96x64xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<96x64xf32>) -> tensor<96x64xf32>
  %g = linalg.matmul ins(%x, %wg : tensor<96x80xf32>, tensor<80x64xf32>) outs(%f : tensor<96x64xf32>) -> tensor<96x64xf32>
  %u = linalg.matmul ins(%x, %wu : tensor<96x80xf32>, tensor<80x64xf32>) outs(%f : tensor<96x64xf32>) -> tensor<96x64xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%g, %u : tensor<96x64xf32>, tensor<96x64xf32>) outs(%e : tensor<96x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.negf %a : f32
    %p = math.exp %n : f32
    %d = arith.addf %p, %one : f32
    %s = arith.divf %a, %d : f32
    %t = arith.mulf %s, %b : f32
    linalg.yield %t : f32
  } -> tensor<96x64xf32>
  return %y : tensor<96x64xf32>
}
