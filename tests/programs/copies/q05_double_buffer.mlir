// Two tensors change places in every iteration. Donated: arg0, arg1. Possible without a copy: handles are exchanged.
#m = affine_map<(d0) -> (d0)>
func.func @main(%x: tensor<1024xf32>, %y: tensor<1024xf32>, %n: index) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %y) -> (tensor<1024xf32>, tensor<1024xf32>) {
    %w = linalg.generic {indexing_maps=[#m,#m],iterator_types=["parallel"]} ins(%a : tensor<1024xf32>) outs(%b : tensor<1024xf32>) {
    ^bb0(%p: f32, %o: f32): %s = arith.addf %p, %p : f32
      linalg.yield %s : f32 } -> tensor<1024xf32>
    scf.yield %w, %a : tensor<1024xf32>, tensor<1024xf32>
  }
  return %r#0, %r#1 : tensor<1024xf32>, tensor<1024xf32>
}
