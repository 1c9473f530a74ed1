// A switch whose cases go to one block, with other arguments.
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
  %flag = arith.constant 0 : i32
  %five = arith.constant 5.0 : f32
  %w = tensor.insert %nine into %t[%c0] : tensor<4xf32>
  %f = tensor.insert %five into %t[%c0] : tensor<4xf32>
  %old = tensor.extract %t[%c0] : tensor<4xf32>
  cf.switch %flag : i32, [
    default: ^joined(%f, %five : tensor<4xf32>, f32),
    0: ^joined(%t, %nine : tensor<4xf32>, f32),
    1: ^joined(%w, %old : tensor<4xf32>, f32)
  ]
^joined(%a: tensor<4xf32>, %b: f32):
  %v = tensor.extract %a[%c0] : tensor<4xf32>
  return %v, %b : f32, f32
}
