// An element is read after it was written, but its old value is asked for. Donated: arg0. Possible without a copy: the read can come first.
func.func @main(%t: tensor<1024xf32>, %f: f32, %i: index) -> (tensor<1024xf32>, f32) {
  %w = tensor.insert %f into %t[%i] : tensor<1024xf32>
  %old = tensor.extract %t[%i] : tensor<1024xf32>
  return %w, %old : tensor<1024xf32>, f32
}
