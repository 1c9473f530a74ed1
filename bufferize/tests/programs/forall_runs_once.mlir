// A single iteration shares nothing: its bound is a constant, though not written in the loop.
func.func @main(%t: tensor<8xf32>, %u: tensor<8xf32>) -> tensor<8xf32> {
  %c1 = arith.constant 1 : index
  %r = scf.forall (%i) in (%c1) shared_outs(%o = %t) -> tensor<8xf32> {
    %e = linalg.exp ins(%u : tensor<8xf32>) outs(%o : tensor<8xf32>) -> tensor<8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %e into %o[0] [8] [1] : tensor<8xf32> into tensor<8xf32>
    }
  }
  return %r : tensor<8xf32>
}
