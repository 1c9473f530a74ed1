// A write inside of a loop to a tensor defined outside, read in the next iteration.
func.func @f(%t: tensor<8xf32>, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%sum = %x) -> f32 {
    %y = tensor.extract %t[%i] : tensor<8xf32>
    %s = tensor.insert %sum into %t[%c0] : tensor<8xf32>
    %z = tensor.extract %s[%i] : tensor<8xf32>
    %w = arith.addf %y, %z : f32
    scf.yield %w : f32
  }
  return %r : f32
}
