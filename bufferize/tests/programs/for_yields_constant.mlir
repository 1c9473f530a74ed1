// options: allow-return-allocs-from-loops
// differs: upstream's second iteration writes to the constant
func.func @main(%t: tensor<8xf32>, %x: f32, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %t) -> tensor<8xf32> {
    %k = arith.constant dense<1.0> : tensor<8xf32>
    %b = tensor.insert %x into %a[%i] : tensor<8xf32>
    %y = tensor.extract %b[%c0] : tensor<8xf32>
    scf.yield %k : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}
