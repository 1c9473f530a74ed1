// options: allow-return-allocs-from-loops
func.func @main(%t: tensor<8xf32>, %eps: f32, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %r = scf.while (%a = %t) : (tensor<8xf32>) -> tensor<8xf32> {
    %e = tensor.extract %a[%c0] : tensor<8xf32>
    %c = arith.cmpf ogt, %e, %eps : f32
    scf.condition(%c) %a : tensor<8xf32>
  } do {
  ^bb0(%b: tensor<8xf32>):
    %e = tensor.empty() : tensor<8xf32>
    %w = linalg.exp ins(%b : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %w : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}
