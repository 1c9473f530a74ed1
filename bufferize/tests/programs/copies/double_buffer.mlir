// Two tensors change places in every iteration.
func.func @main(%x: tensor<1024xf32> {bufferization.writable = true}, %y: tensor<1024xf32> {bufferization.writable = true}, %n: index) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %y) -> (tensor<1024xf32>, tensor<1024xf32>) {
    %w = linalg.add ins(%a, %a : tensor<1024xf32>, tensor<1024xf32>) outs(%b : tensor<1024xf32>) -> tensor<1024xf32>
    scf.yield %w, %a : tensor<1024xf32>, tensor<1024xf32>
  }
  return %r#0, %r#1 : tensor<1024xf32>, tensor<1024xf32>
}
