// A tensor of unknown rank may have any layout.
func.func @main(%n: tensor<*xf32>, %s: tensor<?xindex>, %t: tensor<?xf32>, %k: index) -> (f32, index, index, f32) {
  %0 = tensor.cast %n : tensor<*xf32> to tensor<4x4xf32>
  %y = tensor.extract %0[%k, %k] : tensor<4x4xf32>
  %d = tensor.dim %n, %k : tensor<*xf32>
  %r = tensor.rank %n : tensor<*xf32>
  %1 = tensor.reshape %t(%s) : (tensor<?xf32>, tensor<?xindex>) -> tensor<*xf32>
  %2 = tensor.cast %1 : tensor<*xf32> to tensor<?x?xf32>
  %x = tensor.extract %2[%k, %k] : tensor<?x?xf32>
  return %y, %d, %r, %x : f32, index, index, f32
}
