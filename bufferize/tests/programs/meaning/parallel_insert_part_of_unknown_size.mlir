// As insert_part_of_unknown_size, of a loop's output and a size that is not the output's.
func.func @main(%s: tensor<3xf32>, %x: f32) -> (tensor<9xf32>, tensor<9xf32>) {
  %n = arith.constant 3 : index
  %e = tensor.empty() : tensor<9xf32>
  %f = linalg.fill ins(%x : f32) outs(%e : tensor<9xf32>) -> tensor<9xf32>
  %c = tensor.cast %f : tensor<9xf32> to tensor<?xf32>
  %p = tensor.cast %s : tensor<3xf32> to tensor<?xf32>
  %i = scf.forall (%k) in (1) shared_outs(%o = %c) -> tensor<?xf32> {
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[0] [%n] [1] : tensor<?xf32> into tensor<?xf32>
    }
  }
  %r = tensor.cast %i : tensor<?xf32> to tensor<9xf32>
  return %r, %f : tensor<9xf32>, tensor<9xf32>
}
