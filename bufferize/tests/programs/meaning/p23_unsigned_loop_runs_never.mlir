// Read as unsigned, the lower bound is above the upper one.
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
  %lower = arith.constant -2 : index
  %upper = arith.constant 5 : index
  %r = scf.for unsigned %i = %lower to %upper step %c1 iter_args(%a = %t) -> tensor<4xf32> {
    %f = linalg.fill ins(%nine : f32) outs(%a : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %f : tensor<4xf32>
  }
  %w = tensor.insert %nine into %t[%c1] : tensor<4xf32>
  %v = tensor.extract %r[%c0] : tensor<4xf32>
  %u = tensor.extract %r[%c1] : tensor<4xf32>
  %x = tensor.extract %w[%c1] : tensor<4xf32>
  %kept = arith.mulf %u, %x : f32
  return %v, %kept : f32, f32
}
