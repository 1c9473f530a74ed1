func.func @main(%x0: tensor<64x784xf32>, %w0: tensor<784x1024xf32>, %b0: tensor<1024xf32>, %w1: tensor<1024x1024xf32>, %b1: tensor<1024xf32>, %w2: tensor<1024x10xf32>, %b2: tensor<10xf32>) -> tensor<64x10xf32> {
  %z = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<64x1024xf32>
  %f0 = linalg.fill ins(%z : f32) outs(%e0 : tensor<64x1024xf32>) -> tensor<64x1024xf32>
  %m0 = linalg.matmul ins(%x0, %w0 : tensor<64x784xf32>, tensor<784x1024xf32>) outs(%f0 : tensor<64x1024xf32>) -> tensor<64x1024xf32>
  %a0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%m0, %b0 : tensor<64x1024xf32>, tensor<1024xf32>) outs(%e0 : tensor<64x1024xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<64x1024xf32>
  %x1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%a0 : tensor<64x1024xf32>) outs(%e0 : tensor<64x1024xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = arith.maximumf %p, %z : f32
    linalg.yield %s : f32
  } -> tensor<64x1024xf32>
  %e1 = tensor.empty() : tensor<64x1024xf32>
  %f1 = linalg.fill ins(%z : f32) outs(%e1 : tensor<64x1024xf32>) -> tensor<64x1024xf32>
  %m1 = linalg.matmul ins(%x1, %w1 : tensor<64x1024xf32>, tensor<1024x1024xf32>) outs(%f1 : tensor<64x1024xf32>) -> tensor<64x1024xf32>
  %a1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%m1, %b1 : tensor<64x1024xf32>, tensor<1024xf32>) outs(%e1 : tensor<64x1024xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<64x1024xf32>
  %x2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%a1 : tensor<64x1024xf32>) outs(%e1 : tensor<64x1024xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = arith.maximumf %p, %z : f32
    linalg.yield %s : f32
  } -> tensor<64x1024xf32>
  %e2 = tensor.empty() : tensor<64x10xf32>
  %f2 = linalg.fill ins(%z : f32) outs(%e2 : tensor<64x10xf32>) -> tensor<64x10xf32>
  %m2 = linalg.matmul ins(%x2, %w2 : tensor<64x1024xf32>, tensor<1024x10xf32>) outs(%f2 : tensor<64x10xf32>) -> tensor<64x10xf32>
  %a2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%m2, %b2 : tensor<64x10xf32>, tensor<10xf32>) outs(%e2 : tensor<64x10xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<64x10xf32>
  return %a2 : tensor<64x10xf32>
}
