// The insert must be copied: the old element is read after it.
func.func @f(%t: tensor<8xf32>, %x: f32, %i: index) -> (tensor<8xf32>, f32) {
  %a = tensor.insert %x into %t[%i] : tensor<8xf32>
  %b = tensor.extract %t[%i] : tensor<8xf32>
  return %a, %b : tensor<8xf32>, f32
}
