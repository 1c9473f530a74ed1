// A loop of blocks carries a tensor and writes it; the first tensor stays as it was.
// values: 1 28
func.func @main() -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %one = arith.constant 1.0 : f32
  %nine = arith.constant 9.0 : f32
  %t_empty = tensor.empty() : tensor<4xf32>
  %t = linalg.fill ins(%one : f32) outs(%t_empty : tensor<4xf32>) -> tensor<4xf32>
  cf.br ^loop(%c0, %t : index, tensor<4xf32>)
^loop(%i: index, %a: tensor<4xf32>):
  %r = tensor.extract %a[%c0] : tensor<4xf32>
  %s = arith.addf %r, %nine : f32
  %w = tensor.insert %s into %a[%c0] : tensor<4xf32>
  %next = arith.addi %i, %c1 : index
  %more = arith.cmpi ult, %next, %c3 : index
  cf.cond_br %more, ^loop(%next, %w : index, tensor<4xf32>), ^done(%w : tensor<4xf32>)
^done(%d: tensor<4xf32>):
  %old = tensor.extract %t[%c0] : tensor<4xf32>
  %new = tensor.extract %d[%c0] : tensor<4xf32>
  return %old, %new : f32, f32
}
