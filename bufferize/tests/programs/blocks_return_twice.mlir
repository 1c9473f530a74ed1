func.func @main(%c: i1, %t: tensor<8xf32>, %x: f32, %i: index) -> tensor<8xf32> {
  cf.cond_br %c, ^write, ^keep
^write:
  %w = tensor.insert %x into %t[%i] : tensor<8xf32>
  return %w : tensor<8xf32>
^keep:
  return %t : tensor<8xf32>
}
