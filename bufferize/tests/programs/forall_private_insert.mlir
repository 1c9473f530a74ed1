func.func @main(%d: tensor<32xf32>, %x: tensor<32xf32>) -> tensor<32xf32> {
  %r = scf.forall (%i) in (4) shared_outs(%o = %d) -> tensor<32xf32> {
    %p = affine.apply affine_map<(d0) -> (d0 * 8)>(%i)
    %s = tensor.extract_slice %x[%p] [8] [1] : tensor<32xf32> to tensor<8xf32>
    %e = tensor.empty() : tensor<8xf32>
    %a = linalg.exp ins(%s : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %a into %o[%p] [8] [1] : tensor<8xf32> into tensor<32xf32>
    }
  }
  return %r : tensor<32xf32>
}
