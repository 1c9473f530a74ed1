// differs: upstream has no model of cf.switch, passes its operands on without a decision
func.func @main(%flag: i32, %t: tensor<8xf32>, %x: f32, %i: index) -> (tensor<8xf32>, f32) {
  %old = tensor.extract %t[%i] : tensor<8xf32>
  cf.switch %flag : i32, [
    default: ^same(%t : tensor<8xf32>),
    1: ^other(%t, %i : tensor<8xf32>, index)
  ]
^same(%a: tensor<8xf32>):
  return %a, %old : tensor<8xf32>, f32
^other(%b: tensor<8xf32>, %j: index):
  %w = tensor.insert %x into %b[%j] : tensor<8xf32>
  cf.br ^same(%w : tensor<8xf32>)
}
