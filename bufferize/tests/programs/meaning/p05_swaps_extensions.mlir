// Loop arguments are swapped: extensions need no flag for it.
// options: extensions
// values: 4 3
func.func @main() -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %one = arith.constant 1.0 : f32
  %nine = arith.constant 9.0 : f32
  %x_empty = tensor.empty() : tensor<4xf32>
  %x = linalg.fill ins(%one : f32) outs(%x_empty : tensor<4xf32>) -> tensor<4xf32>
  %y_empty = tensor.empty() : tensor<4xf32>
  %y = linalg.fill ins(%nine : f32) outs(%y_empty : tensor<4xf32>) -> tensor<4xf32>
  %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x, %b = %y) -> (tensor<4xf32>, tensor<4xf32>) {
    %s = tensor.extract %a[%c0] : tensor<4xf32>
    %d = arith.addf %s, %one : f32
    %w = tensor.insert %d into %b[%c0] : tensor<4xf32>
    scf.yield %w, %a : tensor<4xf32>, tensor<4xf32>
  }
  %u = tensor.extract %r#0[%c0] : tensor<4xf32>
  %v = tensor.extract %r#1[%c0] : tensor<4xf32>
  return %u, %v : f32, f32
}
