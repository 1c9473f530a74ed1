// options: allow-return-allocs-from-loops
// differs: upstream fills the slice of the outer tensor in place, which the next iteration reads as the rest of its copy
func.func @main(%t: tensor<4x6xf32>, %x: f32, %n: index) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %t) -> tensor<4x6xf32> {
    %s = tensor.extract_slice %t[%i, 0] [1, 6] [1, 1] : tensor<4x6xf32> to tensor<6xf32>
    %f = linalg.fill ins(%x : f32) outs(%s : tensor<6xf32>) -> tensor<6xf32>
    %w = tensor.insert_slice %f into %t[%i, 0] [1, 6] [1, 1] : tensor<6xf32> into tensor<4x6xf32>
    scf.yield %w : tensor<4x6xf32>
  }
  return %r, %t : tensor<4x6xf32>, tensor<4x6xf32>
}
