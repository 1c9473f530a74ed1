// A region with two ways out.
// options: extensions or-error
// values: 9 1
func.func @main() -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %one = arith.constant 1.0 : f32
  %nine = arith.constant 9.0 : f32
  %t_empty = tensor.empty() : tensor<4xf32>
  %t = linalg.fill ins(%one : f32) outs(%t_empty : tensor<4xf32>) -> tensor<4xf32>
  %c = arith.constant true
  %r = scf.execute_region -> tensor<4xf32> {
    cf.cond_br %c, ^written, ^kept
  ^written:
    %w = tensor.insert %nine into %t[%c0] : tensor<4xf32>
    scf.yield %w : tensor<4xf32>
  ^kept:
    scf.yield %t : tensor<4xf32>
  }
  %new = tensor.extract %r[%c0] : tensor<4xf32>
  %old = tensor.extract %t[%c0] : tensor<4xf32>
  return %new, %old : f32, f32
}
