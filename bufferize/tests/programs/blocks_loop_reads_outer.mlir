// differs: upstream writes in place, so that iterations read what others wrote
// Each iteration reads the tensor that it overwrites a copy of.
func.func @main(%t: tensor<8xf32>, %x: f32, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  cf.br ^head(%c0, %x : index, f32)
^head(%i: index, %s: f32):
  %goes = arith.cmpi slt, %i, %n : index
  cf.cond_br %goes, ^body, ^end
^body:
  %w = tensor.insert %s into %t[%i] : tensor<8xf32>
  %y = tensor.extract %w[%c0] : tensor<8xf32>
  %next = arith.addi %i, %c1 : index
  cf.br ^head(%next, %y : index, f32)
^end:
  return %s : f32
}
