// Contents read from the slice are written back to it, as by a write that only overwrites it.
func.func @main(%f: f32, %a: tensor<10xf32>, %i: index) -> tensor<10xf32> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %s = tensor.extract_slice %a[2] [4] [1] : tensor<10xf32> to tensor<4xf32>
  %w = linalg.fill ins(%f : f32) outs(%s : tensor<4xf32>) -> tensor<4xf32>
  %r = vector.transfer_read %w[%c0], %f : tensor<4xf32>, vector<4xf32>
  %0 = vector.transfer_write %r, %a[%c2] {in_bounds = [true]} : vector<4xf32>, tensor<10xf32>
  return %0 : tensor<10xf32>
}
