// A tensor of the surroundings that every iteration writes: each needs its own.
func.func @f(%t: tensor<64xf32>, %x: f32) -> tensor<64xf32> {
  %scratch = tensor.empty() : tensor<8xf32>
  %r = scf.forall (%i) in (8) shared_outs(%o = %t) -> tensor<64xf32> {
    %a = affine.apply affine_map<(d0) -> (d0 * 8)>(%i)
    %f = linalg.fill ins(%x : f32) outs(%scratch : tensor<8xf32>) -> tensor<8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %f into %o[%a] [8] [1] : tensor<8xf32> into tensor<64xf32>
    }
  }
  return %r : tensor<64xf32>
}
