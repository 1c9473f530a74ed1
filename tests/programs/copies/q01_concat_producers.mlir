// Two results computed apart and joined. Donated: nothing. Possible without a copy: each part is computed in its place.
#m = affine_map<(d0) -> (d0)>
func.func @main(%x: tensor<1024xf32>, %y: tensor<1024xf32>) -> tensor<2048xf32> {
  %e0 = tensor.empty() : tensor<1024xf32>
  %a = linalg.generic {indexing_maps=[#m,#m],iterator_types=["parallel"]} ins(%x : tensor<1024xf32>) outs(%e0 : tensor<1024xf32>) {
  ^bb0(%i: f32, %o: f32): %s = arith.addf %i, %i : f32
    linalg.yield %s : f32 } -> tensor<1024xf32>
  %e1 = tensor.empty() : tensor<1024xf32>
  %b = linalg.generic {indexing_maps=[#m,#m],iterator_types=["parallel"]} ins(%y : tensor<1024xf32>) outs(%e1 : tensor<1024xf32>) {
  ^bb0(%i: f32, %o: f32): %s = arith.mulf %i, %i : f32
    linalg.yield %s : f32 } -> tensor<1024xf32>
  %r = tensor.concat dim(0) %a, %b : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<2048xf32>
  return %r : tensor<2048xf32>
}
