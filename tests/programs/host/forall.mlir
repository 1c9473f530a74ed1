func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %r = scf.forall (%i) in (4) shared_outs(%o = %e) -> tensor<8xf32> {
    %k = affine.apply affine_map<(d0) -> (d0 * 2)>(%i)
    %s = tensor.extract_slice %x[%k] [2] [1] : tensor<8xf32> to tensor<2xf32>
    %d = arith.addf %s, %s : tensor<2xf32>
    scf.forall.in_parallel { tensor.parallel_insert_slice %d into %o[%k] [2] [1] : tensor<2xf32> into tensor<8xf32> }
  }
  return %r : tensor<8xf32>
}
