// A block that runs again reads a tensor, and a branch in it writes the tensor.
// values: 3 9
func.func @main() -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %one = arith.constant 1.0 : f32
  %nine = arith.constant 9.0 : f32
  %zero = arith.constant 0.0 : f32
  %yes = arith.constant true
  %t_empty = tensor.empty() : tensor<4xf32>
  %t = linalg.fill ins(%one : f32) outs(%t_empty : tensor<4xf32>) -> tensor<4xf32>
  cf.br ^loop(%c0, %zero, %zero : index, f32, f32)
^loop(%i: index, %sum: f32, %last: f32):
  %r = tensor.extract %t[%c0] : tensor<4xf32>
  %s = arith.addf %sum, %r : f32
  %w = scf.if %yes -> tensor<4xf32> {
    %x = tensor.insert %nine into %t[%c0] : tensor<4xf32>
    scf.yield %x : tensor<4xf32>
  } else {
    scf.yield %t : tensor<4xf32>
  }
  %v = tensor.extract %w[%c0] : tensor<4xf32>
  %next = arith.addi %i, %c1 : index
  %more = arith.cmpi ult, %next, %c3 : index
  cf.cond_br %more, ^loop(%next, %s, %v : index, f32, f32), ^done
^done:
  return %s, %v : f32, f32
}
