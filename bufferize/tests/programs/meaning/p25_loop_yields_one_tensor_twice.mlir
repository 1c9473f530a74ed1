// A loop yields one new tensor for two arguments; the next round writes one and reads the other.
// options: allow-return-allocs-from-loops
// values: 28 28
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
  %y = linalg.fill ins(%one : f32) outs(%y_empty : tensor<4xf32>) -> tensor<4xf32>
  %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x, %b = %y) -> (tensor<4xf32>, tensor<4xf32>) {
    %w = tensor.insert %nine into %a[%c0] : tensor<4xf32>
    %old = tensor.extract %b[%c0] : tensor<4xf32>
    %z = tensor.extract %w[%c0] : tensor<4xf32>
    %s = arith.addf %old, %z : f32
    %e = tensor.empty() : tensor<4xf32>
    %n = linalg.fill ins(%s : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %n, %n : tensor<4xf32>, tensor<4xf32>
  }
  %u = tensor.extract %r#0[%c0] : tensor<4xf32>
  %v = tensor.extract %r#1[%c1] : tensor<4xf32>
  return %u, %v : f32, f32
}
