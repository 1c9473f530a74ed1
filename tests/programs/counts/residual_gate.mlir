func.func @main(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>, %bias: tensor<64xf32>, %res: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %z = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %v2 = tensor.empty() : tensor<64x64xf32>
  %v3 = linalg.fill ins(%z : f32) outs(%v2 : tensor<64x64xf32>) -> tensor<64x64xf32>
  %v1 = linalg.matmul ins(%x, %w : tensor<64x64xf32>, tensor<64x64xf32>) outs(%v3 : tensor<64x64xf32>) -> tensor<64x64xf32>
  %v5 = tensor.empty() : tensor<64x64xf32>
  %v4 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%v1, %bias, %res : tensor<64x64xf32>, tensor<64xf32>, tensor<64x64xf32>) outs(%v5 : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
    %u = arith.addf %a, %b : f32
    %uu = arith.addf %u, %c : f32
    linalg.yield %uu : f32
  } -> tensor<64x64xf32>
  %v7 = tensor.empty() : tensor<64x64xf32>
  %v6 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%v4 : tensor<64x64xf32>) outs(%v7 : tensor<64x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    %e = math.exp %n : f32
    %s = arith.addf %e, %one : f32
    %u = arith.divf %one, %s : f32
    linalg.yield %u : f32
  } -> tensor<64x64xf32>
  %v9 = tensor.empty() : tensor<64x64xf32>
  %v8 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%v4, %v6 : tensor<64x64xf32>, tensor<64x64xf32>) outs(%v9 : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %u = arith.mulf %a, %b : f32
    linalg.yield %u : f32
  } -> tensor<64x64xf32>
  return %v8 : tensor<64x64xf32>
}
