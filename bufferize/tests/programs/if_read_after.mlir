// The branch's write is seen by a read after the if.
func.func @f(%t: tensor<8xf32>, %x: f32, %c: i1, %i: index) -> (tensor<8xf32>, f32) {
  %r = scf.if %c -> tensor<8xf32> {
    %s = tensor.insert %x into %t[%i] : tensor<8xf32>
    scf.yield %s : tensor<8xf32>
  } else {
    scf.yield %t : tensor<8xf32>
  }
  %y = tensor.extract %t[%i] : tensor<8xf32>
  return %r, %y : tensor<8xf32>, f32
}
