func.func @main(%d: tensor<4x32xf32>, %f: f32, %o: index, %n: index) -> tensor<4x32xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<8xf32>
  %a = linalg.fill ins(%f : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %a) -> tensor<8xf32> {
    %w = linalg.exp ins(%t : tensor<8xf32>) outs(%t : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %w : tensor<8xf32>
  }
  %p = arith.addi %o, %c1 : index
  %q = tensor.insert_slice %r into %d[%p, 8] [1, 8] [1, 1] : tensor<8xf32> into tensor<4x32xf32>
  return %q : tensor<4x32xf32>
}
