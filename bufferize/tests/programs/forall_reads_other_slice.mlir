func.func @f(%x: tensor<16xf32>) -> (tensor<16xf32>) {
  %f0 = arith.constant 0.0 : f32
  %r = scf.forall (%i) in (4) shared_outs(%a = %x) -> tensor<16xf32> {
    %o = affine.apply affine_map<(d0)->(d0*4)>(%i)
    %o2 = affine.apply affine_map<(d0)->(12 - d0*4)>(%i)
    %s = tensor.extract_slice %a[%o2][4][1] : tensor<16xf32> to tensor<4xf32>
    %e = tensor.extract_slice %a[%o][4][1] : tensor<16xf32> to tensor<4xf32>
    %g = linalg.fill ins(%f0 : f32) outs(%e: tensor<4xf32>) -> tensor<4xf32>
    %h = linalg.add ins(%s, %g : tensor<4xf32>, tensor<4xf32>) outs(%s: tensor<4xf32>) -> tensor<4xf32>
    scf.forall.in_parallel { tensor.parallel_insert_slice %h into %a[%o][4][1] : tensor<4xf32> into tensor<16xf32> }
  }
  return %r : tensor<16xf32>
}
