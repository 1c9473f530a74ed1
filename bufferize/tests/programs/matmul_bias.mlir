#map = affine_map<(d0) -> (d0 * 16)>
func.func @main(%x: tensor<64x784xf32>, %w: tensor<784x1024xf32>, %b: tensor<1024xf32>) -> tensor<64x1024xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x1024xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<64x1024xf32>) -> tensor<64x1024xf32>
  %m = linalg.matmul ins(%x, %w : tensor<64x784xf32>, tensor<784x1024xf32>) outs(%f : tensor<64x1024xf32>) -> tensor<64x1024xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(i,j)->(j)>, affine_map<(i,j)->(i,j)>], iterator_types = ["parallel","parallel"]} ins(%b: tensor<1024xf32>) outs(%m: tensor<64x1024xf32>) { ^bb0(%p: f32, %o: f32): %s = arith.addf %p, %o : f32
   linalg.yield %s : f32 } -> tensor<64x1024xf32>
  return %g : tensor<64x1024xf32>
}
