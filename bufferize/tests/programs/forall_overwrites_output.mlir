// An output that is wholly overwritten is not read, though its size is dynamic.
func.func @main(%t: tensor<?xf32>, %x: f32) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %t, %c0 : tensor<?xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %t) -> tensor<?xf32> {
    %f = linalg.fill ins(%x : f32) outs(%o : tensor<?xf32>) -> tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %f into %o[0] [%d] [1] : tensor<?xf32> into tensor<?xf32>
    }
  }
  return %r : tensor<?xf32>
}
