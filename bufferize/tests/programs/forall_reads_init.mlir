// The iterations read the tensor that they were given while others write.
func.func @f(%t: tensor<64xf32>) -> tensor<64xf32> {
  %r = scf.forall (%i) in (8) shared_outs(%o = %t) -> tensor<64xf32> {
    %a = affine.apply affine_map<(d0) -> (d0 * 8)>(%i)
    %b = affine.apply affine_map<(d0) -> (56 - d0 * 8)>(%i)
    %s = tensor.extract_slice %t[%b] [8] [1] : tensor<64xf32> to tensor<8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %o[%a] [8] [1] : tensor<8xf32> into tensor<64xf32>
    }
  }
  return %r : tensor<64xf32>
}
