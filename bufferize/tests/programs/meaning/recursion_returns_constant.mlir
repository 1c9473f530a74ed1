// A recursive function may return a constant, which the caller writes.
// options: extensions
// values: 9 2
func.func private @pick(%t: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c = arith.constant dense<2.0> : tensor<4xf32>
  %done = arith.cmpi eq, %n, %c0 : index
  %r = scf.if %done -> tensor<4xf32> {
    scf.yield %c : tensor<4xf32>
  } else {
    %m = arith.subi %n, %c1 : index
    %s = func.call @pick(%t, %m) : (tensor<4xf32>, index) -> tensor<4xf32>
    scf.yield %s : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
func.func @main() -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %one = arith.constant 1.0 : f32
  %nine = arith.constant 9.0 : f32
  %t_empty = tensor.empty() : tensor<4xf32>
  %t = linalg.fill ins(%one : f32) outs(%t_empty : tensor<4xf32>) -> tensor<4xf32>
  %r = call @pick(%t, %c3) : (tensor<4xf32>, index) -> tensor<4xf32>
  %w = tensor.insert %nine into %r[%c0] : tensor<4xf32>
  %new = tensor.extract %w[%c0] : tensor<4xf32>
  %s = call @pick(%t, %c2) : (tensor<4xf32>, index) -> tensor<4xf32>
  %again = tensor.extract %s[%c0] : tensor<4xf32>
  return %new, %again : f32, f32
}
