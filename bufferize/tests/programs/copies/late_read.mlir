// The old value is read after the write, in program order.
func.func @main(%t: tensor<1024xf32> {bufferization.writable = true}, %f: f32, %i: index) -> (tensor<1024xf32>, f32) {
  %w = tensor.insert %f into %t[%i] : tensor<1024xf32>
  %old = tensor.extract %t[%i] : tensor<1024xf32>
  return %w, %old : tensor<1024xf32>, f32
}
