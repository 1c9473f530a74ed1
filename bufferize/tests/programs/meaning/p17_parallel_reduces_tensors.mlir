// A parallel loop that reduces tensors.
// options: extensions or-error
// values: 28 1
func.func @main() -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %one = arith.constant 1.0 : f32
  %nine = arith.constant 9.0 : f32
  %t_empty = tensor.empty() : tensor<4xf32>
  %t = linalg.fill ins(%one : f32) outs(%t_empty : tensor<4xf32>) -> tensor<4xf32>
  %r = scf.parallel (%i) = (%c0) to (%c3) step (%c1) init(%t) -> tensor<4xf32> {
    %part_empty = tensor.empty() : tensor<4xf32>
    %part = linalg.fill ins(%nine : f32) outs(%part_empty : tensor<4xf32>) -> tensor<4xf32>
    scf.reduce(%part : tensor<4xf32>) {
    ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
      %s = linalg.add ins(%a, %b : tensor<4xf32>, tensor<4xf32>) outs(%a : tensor<4xf32>) -> tensor<4xf32>
      scf.reduce.return %s : tensor<4xf32>
    }
  }
  %sum = tensor.extract %r[%c0] : tensor<4xf32>
  %old = tensor.extract %t[%c0] : tensor<4xf32>
  return %sum, %old : f32, f32
}
