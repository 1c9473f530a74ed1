// A cast passes the buffer on.
func.func @f(%t: tensor<?xf32>, %x: f32, %i: index) -> (tensor<?xf32>, f32) {
  %c = tensor.cast %t : tensor<?xf32> to tensor<8xf32>
  %a = tensor.insert %x into %c[%i] : tensor<8xf32>
  %d = tensor.cast %a : tensor<8xf32> to tensor<?xf32>
  %y = tensor.extract %t[%i] : tensor<?xf32>
  return %d, %y : tensor<?xf32>, f32
}
