// A loop of blocks updates what it is passed in place.
func.func @main(%t: tensor<8xf32>, %x: f32, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  cf.br ^head(%c0, %t : index, tensor<8xf32>)
^head(%i: index, %a: tensor<8xf32>):
  %goes = arith.cmpi slt, %i, %n : index
  cf.cond_br %goes, ^body, ^end(%a : tensor<8xf32>)
^body:
  %w = tensor.insert %x into %a[%i] : tensor<8xf32>
  %next = arith.addi %i, %c1 : index
  cf.br ^head(%next, %w : index, tensor<8xf32>)
^end(%r: tensor<8xf32>):
  return %r : tensor<8xf32>
}
