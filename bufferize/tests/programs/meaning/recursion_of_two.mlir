// Two functions that call each other; only one of them writes.
// options: extensions
// values: 1 9 19
func.func private @even(%t: tensor<4xf32>, %n: index) -> (tensor<4xf32>, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v = tensor.extract %t[%c0] : tensor<4xf32>
  %done = arith.cmpi eq, %n, %c0 : index
  %r:2 = scf.if %done -> (tensor<4xf32>, f32) {
    scf.yield %t, %v : tensor<4xf32>, f32
  } else {
    %m = arith.subi %n, %c1 : index
    %s:2 = func.call @odd(%t, %m) : (tensor<4xf32>, index) -> (tensor<4xf32>, f32)
    %after = tensor.extract %t[%c0] : tensor<4xf32>
    %sum = arith.addf %s#1, %after : f32
    scf.yield %s#0, %sum : tensor<4xf32>, f32
  }
  return %r#0, %r#1 : tensor<4xf32>, f32
}
func.func private @odd(%t: tensor<4xf32>, %n: index) -> (tensor<4xf32>, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %nine = arith.constant 9.0 : f32
  %w = tensor.insert %nine into %t[%c0] : tensor<4xf32>
  %done = arith.cmpi eq, %n, %c0 : index
  %r:2 = scf.if %done -> (tensor<4xf32>, f32) {
    scf.yield %w, %nine : tensor<4xf32>, f32
  } else {
    %m = arith.subi %n, %c1 : index
    %s:2 = func.call @even(%w, %m) : (tensor<4xf32>, index) -> (tensor<4xf32>, f32)
    scf.yield %s#0, %s#1 : tensor<4xf32>, f32
  }
  return %r#0, %r#1 : tensor<4xf32>, f32
}
func.func @main() -> (f32, f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %one = arith.constant 1.0 : f32
  %nine = arith.constant 9.0 : f32
  %t_empty = tensor.empty() : tensor<4xf32>
  %t = linalg.fill ins(%one : f32) outs(%t_empty : tensor<4xf32>) -> tensor<4xf32>
  %r:2 = call @even(%t, %c3) : (tensor<4xf32>, index) -> (tensor<4xf32>, f32)
  %old = tensor.extract %t[%c0] : tensor<4xf32>
  %new = tensor.extract %r#0[%c0] : tensor<4xf32>
  return %old, %new, %r#1 : f32, f32, f32
}
