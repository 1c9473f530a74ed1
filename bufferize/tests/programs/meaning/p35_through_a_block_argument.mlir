// The same, with the tensor passed to the later block.
// values: 1 9
func.func @main() -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %one = arith.constant 1.0 : f32
  %nine = arith.constant 9.0 : f32
  %t_empty = tensor.empty() : tensor<4xf32>
  %t = linalg.fill ins(%one : f32) outs(%t_empty : tensor<4xf32>) -> tensor<4xf32>
  cf.br ^later(%t : tensor<4xf32>)
^later(%a: tensor<4xf32>):
  cf.br ^last
^last:
  %w = tensor.insert %nine into %a[%c0] : tensor<4xf32>
  %old = tensor.extract %a[%c0] : tensor<4xf32>
  %new = tensor.extract %w[%c0] : tensor<4xf32>
  return %old, %new : f32, f32
}
