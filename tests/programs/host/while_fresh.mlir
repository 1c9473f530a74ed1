#m = affine_map<(d0) -> (d0)>
func.func @main(%t: tensor<16xf32>, %lim: f32) -> tensor<16xf32> {
  %c0 = arith.constant 0 : index
  %r = scf.while (%a = %t) : (tensor<16xf32>) -> tensor<16xf32> {
    %e = tensor.extract %a[%c0] : tensor<16xf32>
    %c = arith.cmpf olt, %e, %lim : f32
    scf.condition(%c) %a : tensor<16xf32>
  } do {
  ^bb0(%b: tensor<16xf32>):
    %x = tensor.empty() : tensor<16xf32>
    %g = linalg.generic {indexing_maps=[affine_map<(d0)->(15-d0)>,#m,#m],iterator_types=["parallel"]} ins(%b, %b : tensor<16xf32>, tensor<16xf32>) outs(%x : tensor<16xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32): %s = arith.addf %p, %q : f32
      linalg.yield %s : f32 } -> tensor<16xf32>
    scf.yield %g : tensor<16xf32>
  }
  return %r : tensor<16xf32>
}
