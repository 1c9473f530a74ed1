#m = affine_map<(d0) -> (d0)>
func.func @main(%x: tensor<64xf32>, %y: tensor<16xf32>) -> (tensor<64xf32>, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %z = arith.constant 0.0 : f32
  %r:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x, %acc = %z) -> (tensor<64xf32>, f32) {
    %o = affine.apply affine_map<(d0) -> (d0 * 16)>(%i)
    %s = tensor.extract_slice %a[%o] [16] [1] : tensor<64xf32> to tensor<16xf32>
    %g = linalg.generic {indexing_maps=[#m,#m],iterator_types=["parallel"]} ins(%y : tensor<16xf32>) outs(%s : tensor<16xf32>) {
    ^bb0(%p: f32, %q: f32): %t = arith.addf %p, %q : f32
      linalg.yield %t : f32 } -> tensor<16xf32>
    %b = tensor.insert_slice %g into %a[%o] [16] [1] : tensor<16xf32> into tensor<64xf32>
    %v = tensor.extract %b[%o] : tensor<64xf32>
    %acc2 = arith.addf %acc, %v : f32
    scf.yield %b, %acc2 : tensor<64xf32>, f32
  }
  return %r#0, %r#1 : tensor<64xf32>, f32
}
