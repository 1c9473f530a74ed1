#m = affine_map<(d0) -> (d0)>
func.func @main(%t: tensor<16xf32>, %n: index, %k: index) -> (tensor<16xf32>, tensor<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %two = arith.constant 2.0 : f32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %t, %b = %t) -> (tensor<16xf32>, tensor<16xf32>) {
    %c = arith.cmpi eq, %i, %k : index
    %y = scf.if %c -> tensor<16xf32> {
      %x = tensor.empty() : tensor<16xf32>
      %g = linalg.generic {indexing_maps=[#m,#m],iterator_types=["parallel"]} ins(%a : tensor<16xf32>) outs(%x : tensor<16xf32>) {
      ^bb0(%p: f32, %o: f32): %s = arith.mulf %p, %two : f32
        linalg.yield %s : f32 } -> tensor<16xf32>
      scf.yield %g : tensor<16xf32>
    } else {
      scf.yield %b : tensor<16xf32>
    }
    scf.yield %y, %a : tensor<16xf32>, tensor<16xf32>
  }
  return %r#0, %r#1 : tensor<16xf32>, tensor<16xf32>
}
