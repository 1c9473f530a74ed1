func.func @main(%t: tensor<8xf32>, %x: f32, %i: index) -> (tensor<8xf32>, f32) {
  %r, %y = scf.execute_region -> (tensor<8xf32>, f32) {
    %e = tensor.extract %t[%i] : tensor<8xf32>
    %a = tensor.insert %x into %t[%i] : tensor<8xf32>
    scf.yield %a, %e : tensor<8xf32>, f32
  }
  return %r, %y : tensor<8xf32>, f32
}
