// The first region of a loop writes its argument, which after a round is a tensor of outside.
// options: allow-return-allocs-from-loops
// values: 2 9
func.func @main() -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %one = arith.constant 1.0 : f32
  %nine = arith.constant 9.0 : f32
  %two = arith.constant 2.0 : f32
  %t_empty = tensor.empty() : tensor<4xf32>
  %t = linalg.fill ins(%two : f32) outs(%t_empty : tensor<4xf32>) -> tensor<4xf32>
  %init_empty = tensor.empty() : tensor<4xf32>
  %init = linalg.fill ins(%one : f32) outs(%init_empty : tensor<4xf32>) -> tensor<4xf32>
  %r:2 = scf.while (%a = %init, %i = %c0) : (tensor<4xf32>, index) -> (tensor<4xf32>, index) {
    %w = tensor.insert %nine into %a[%c0] : tensor<4xf32>
    %more = arith.cmpi ult, %i, %c2 : index
    scf.condition(%more) %w, %i : tensor<4xf32>, index
  } do {
  ^bb0(%b: tensor<4xf32>, %i: index):
    %next = arith.addi %i, %c1 : index
    scf.yield %t, %next : tensor<4xf32>, index
  }
  %old = tensor.extract %t[%c0] : tensor<4xf32>
  %new = tensor.extract %r#0[%c0] : tensor<4xf32>
  return %old, %new : f32, f32
}
