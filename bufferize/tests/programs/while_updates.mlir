func.func @main(%t: tensor<8xf32>, %eps: f32, %h: f32, %n: index) -> (tensor<8xf32>, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.while (%a = %t, %i = %c0) : (tensor<8xf32>, index) -> (tensor<8xf32>, index) {
    %e = tensor.extract %a[%c0] : tensor<8xf32>
    %c = arith.cmpf ogt, %e, %eps : f32
    scf.condition(%c) %a, %i : tensor<8xf32>, index
  } do {
  ^bb0(%b: tensor<8xf32>, %j: index):
    %e = tensor.extract %b[%c0] : tensor<8xf32>
    %d = arith.mulf %e, %h : f32
    %w = tensor.insert %d into %b[%c0] : tensor<8xf32>
    %k = arith.addi %j, %c1 : index
    scf.yield %w, %k : tensor<8xf32>, index
  }
  return %r#0, %r#1 : tensor<8xf32>, index
}
