// A read in one branch and a write in the other one never meet.
func.func @f(%t: tensor<8xf32>, %x: f32, %c: i1, %i: index) -> f32 {
  %r = scf.if %c -> f32 {
    %s = tensor.insert %x into %t[%i] : tensor<8xf32>
    %y = tensor.extract %s[%i] : tensor<8xf32>
    scf.yield %y : f32
  } else {
    %y = tensor.extract %t[%i] : tensor<8xf32>
    scf.yield %y : f32
  }
  return %r : f32
}
