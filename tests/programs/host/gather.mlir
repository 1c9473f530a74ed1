#m = affine_map<(d0) -> (d0)>
func.func @main(%x: tensor<9xf32>, %ix: tensor<5xindex>) -> tensor<5xf32> {
  %e = tensor.empty() : tensor<5xf32>
  %g = linalg.generic {indexing_maps=[#m,#m],iterator_types=["parallel"]} ins(%ix : tensor<5xindex>) outs(%e : tensor<5xf32>) {
  ^bb0(%p: index, %o: f32): %s = tensor.extract %x[%p] : tensor<9xf32>
    linalg.yield %s : f32 } -> tensor<5xf32>
  return %g : tensor<5xf32>
}
