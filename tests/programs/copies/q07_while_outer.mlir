// The condition of a loop reads the tensor that its body updates. Donated: arg0. Possible without a copy or an allocation.
func.func @main(%t: tensor<1024xf32>, %eps: f32, %h: f32) -> tensor<1024xf32> {
  %c0 = arith.constant 0 : index
  %r = scf.while (%a = %t) : (tensor<1024xf32>) -> tensor<1024xf32> {
    %e = tensor.extract %a[%c0] : tensor<1024xf32>
    %c = arith.cmpf ogt, %e, %eps : f32
    scf.condition(%c) %a : tensor<1024xf32>
  } do {
  ^bb0(%b: tensor<1024xf32>):
    %e = tensor.extract %b[%c0] : tensor<1024xf32>
    %d = arith.mulf %e, %h : f32
    %w = tensor.insert %d into %b[%c0] : tensor<1024xf32>
    scf.yield %w : tensor<1024xf32>
  }
  return %r : tensor<1024xf32>
}
