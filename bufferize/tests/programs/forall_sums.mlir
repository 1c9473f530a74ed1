// Parallel iterations write their own slices; a captured tensor is only read.
func.func @f(%t: tensor<64xf32>, %u: tensor<64xf32>) -> tensor<64xf32> {
  %r = scf.forall (%i) in (8) shared_outs(%o = %t) -> tensor<64xf32> {
    %a = affine.apply affine_map<(d0) -> (d0 * 8)>(%i)
    %s = tensor.extract_slice %u[%a] [8] [1] : tensor<64xf32> to tensor<8xf32>
    %d = tensor.extract_slice %o[%a] [8] [1] : tensor<64xf32> to tensor<8xf32>
    %x = linalg.add ins(%s, %d : tensor<8xf32>, tensor<8xf32>) outs(%d : tensor<8xf32>) -> tensor<8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %x into %o[%a] [8] [1] : tensor<8xf32> into tensor<64xf32>
    }
  }
  return %r : tensor<64xf32>
}
