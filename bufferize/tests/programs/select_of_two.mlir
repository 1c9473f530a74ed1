// A select may be either tensor.
func.func @f(%t: tensor<8xf32>, %u: tensor<8xf32>, %x: f32, %c: i1, %i: index) -> (tensor<8xf32>, f32) {
  %s = arith.select %c, %t, %u : tensor<8xf32>
  %w = tensor.insert %x into %s[%i] : tensor<8xf32>
  %y = tensor.extract %u[%i] : tensor<8xf32>
  return %w, %y : tensor<8xf32>, f32
}
