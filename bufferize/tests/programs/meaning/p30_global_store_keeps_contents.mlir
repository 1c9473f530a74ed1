// A load of a variable returns the stored contents.
// values: 9 1
ml_program.global private mutable @state(dense<0.0> : tensor<4xf32>) : tensor<4xf32>
func.func @main() -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %one = arith.constant 1.0 : f32
  %nine = arith.constant 9.0 : f32
  %t_empty = tensor.empty() : tensor<4xf32>
  %t = linalg.fill ins(%one : f32) outs(%t_empty : tensor<4xf32>) -> tensor<4xf32>
  %w = tensor.insert %nine into %t[%c0] : tensor<4xf32>
  ml_program.global_store @state = %w : tensor<4xf32>
  %l = ml_program.global_load @state : tensor<4xf32>
  %u = tensor.extract %l[%c0] : tensor<4xf32>
  %v = tensor.extract %l[%c1] : tensor<4xf32>
  return %u, %v : f32, f32
}
