// A loop reads the upper half of a tensor and updates the lower one.
func.func @main(%t: tensor<2048xf32> {bufferization.writable = true}, %n: index) -> tensor<2048xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %hi = tensor.extract_slice %t[1024] [1024] [1] : tensor<2048xf32> to tensor<1024xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %t) -> tensor<2048xf32> {
    %lo = tensor.extract_slice %a[0] [1024] [1] : tensor<2048xf32> to tensor<1024xf32>
    %w = linalg.add ins(%hi, %lo : tensor<1024xf32>, tensor<1024xf32>) outs(%lo : tensor<1024xf32>) -> tensor<1024xf32>
    %b = tensor.insert_slice %w into %a[0] [1024] [1] : tensor<1024xf32> into tensor<2048xf32>
    scf.yield %b : tensor<2048xf32>
  }
  return %r : tensor<2048xf32>
}
