// A function that calls itself and writes what it gets back.
// options: extensions
// values: 1 4
func.func private @down(%t: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %done = arith.cmpi eq, %n, %c0 : index
  %r = scf.if %done -> tensor<4xf32> {
    scf.yield %t : tensor<4xf32>
  } else {
    %m = arith.subi %n, %c1 : index
    %s = func.call @down(%t, %m) : (tensor<4xf32>, index) -> tensor<4xf32>
    %v = tensor.extract %s[%c0] : tensor<4xf32>
    %d = arith.addf %v, %one : f32
    %w = tensor.insert %d into %s[%c0] : tensor<4xf32>
    scf.yield %w : tensor<4xf32>
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
  %r = call @down(%t, %c3) : (tensor<4xf32>, index) -> tensor<4xf32>
  %old = tensor.extract %t[%c0] : tensor<4xf32>
  %new = tensor.extract %r[%c0] : tensor<4xf32>
  return %old, %new : f32, f32
}
