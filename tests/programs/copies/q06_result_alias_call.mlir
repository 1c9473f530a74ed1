// A callee returns its argument beside something it made. Donated: nothing. Possible with one allocation and no copy.
#m = affine_map<(d0) -> (d0)>
func.func private @f(%a: tensor<1024xf32>, %b: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %e = tensor.empty() : tensor<1024xf32>
  %w = linalg.generic {indexing_maps=[#m,#m,#m],iterator_types=["parallel"]} ins(%a, %b : tensor<1024xf32>, tensor<1024xf32>) outs(%e : tensor<1024xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32): %s = arith.addf %p, %q : f32
    linalg.yield %s : f32 } -> tensor<1024xf32>
  return %a, %w : tensor<1024xf32>, tensor<1024xf32>
}
func.func @main(%x: tensor<1024xf32>, %y: tensor<1024xf32>, %i: index) -> (f32, f32) {
  %r:2 = call @f(%x, %y) : (tensor<1024xf32>, tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>)
  %u = tensor.extract %r#0[%i] : tensor<1024xf32>
  %v = tensor.extract %r#1[%i] : tensor<1024xf32>
  return %u, %v : f32, f32
}
