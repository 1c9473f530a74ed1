func.func @main(%c: i1, %t: tensor<8xf32>, %x: f32, %i: index) -> (tensor<8xf32>, f32) {
  %r = scf.execute_region -> tensor<8xf32> {
    cf.cond_br %c, ^write(%t : tensor<8xf32>), ^skip
  ^write(%a: tensor<8xf32>):
    %w = tensor.insert %x into %a[%i] : tensor<8xf32>
    cf.br ^end(%w : tensor<8xf32>)
  ^skip:
    %e = bufferization.alloc_tensor() : tensor<8xf32>
    cf.br ^end(%e : tensor<8xf32>)
  ^end(%b: tensor<8xf32>):
    scf.yield %b : tensor<8xf32>
  }
  %y = tensor.extract %r[%i] : tensor<8xf32>
  return %r, %y : tensor<8xf32>, f32
}
