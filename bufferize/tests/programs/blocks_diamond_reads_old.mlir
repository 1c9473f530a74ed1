// differs: upstream takes the write as done to the argument of its own block only, and the old contents are lost
func.func @main(%c: i1, %t: tensor<8xf32>, %x: f32, %i: index) -> (tensor<8xf32>, f32) {
  cf.cond_br %c, ^left(%t : tensor<8xf32>), ^right
^left(%a: tensor<8xf32>):
  cf.br ^join(%a : tensor<8xf32>)
^right:
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%x : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  cf.br ^join(%f : tensor<8xf32>)
^join(%b: tensor<8xf32>):
  %w = tensor.insert %x into %b[%i] : tensor<8xf32>
  %y = tensor.extract %t[%i] : tensor<8xf32>
  return %w, %y : tensor<8xf32>, f32
}
