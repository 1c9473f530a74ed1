func.func @main(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %z = arith.constant 0.0 : f32
  %v2 = tensor.empty() : tensor<64x64xf32>
  %v1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<64x64xf32>) outs(%v2 : tensor<64x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %u = math.exp %a : f32
    linalg.yield %u : f32
  } -> tensor<64x64xf32>
  %v4 = tensor.empty() : tensor<64x64xf32>
  %v3 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%v1, %y : tensor<64x64xf32>, tensor<64x64xf32>) outs(%v4 : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %u = arith.addf %a, %b : f32
    linalg.yield %u : f32
  } -> tensor<64x64xf32>
  %v6 = tensor.empty() : tensor<64x64xf32>
  %v5 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%v1, %y : tensor<64x64xf32>, tensor<64x64xf32>) outs(%v6 : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %u = arith.mulf %a, %b : f32
    linalg.yield %u : f32
  } -> tensor<64x64xf32>
  return %v3, %v5 : tensor<64x64xf32>, tensor<64x64xf32>
}
