// A generic reads a captured tensor element by element.
func.func @f(%t: tensor<8xf32>, %ix: tensor<8xindex>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%ix : tensor<8xindex>) outs(%e : tensor<8xf32>) {
  ^bb0(%p: index, %o: f32):
    %s = tensor.extract %t[%p] : tensor<8xf32>
    linalg.yield %s : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}
