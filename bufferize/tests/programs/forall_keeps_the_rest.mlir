// differs: upstream takes what the insert does not overwrite as not needed, and the upper half is lost
func.func @main(%t: tensor<8xf32>, %x: f32) -> tensor<8xf32> {
  %r = scf.forall (%i) in (1) shared_outs(%o = %t) -> tensor<8xf32> {
    %f = linalg.fill ins(%x : f32) outs(%o : tensor<8xf32>) -> tensor<8xf32>
    %h = tensor.extract_slice %f[0] [4] [1] : tensor<8xf32> to tensor<4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %h into %o[0] [4] [1] : tensor<4xf32> into tensor<8xf32>
    }
  }
  return %r : tensor<8xf32>
}
