// Two tensors are computed and put side by side.
func.func @main(%x: tensor<1024xf32> {bufferization.writable = false}, %y: tensor<1024xf32> {bufferization.writable = false}) -> tensor<2048xf32> {
  %e0 = tensor.empty() : tensor<1024xf32>
  %a = linalg.add ins(%x, %x : tensor<1024xf32>, tensor<1024xf32>) outs(%e0 : tensor<1024xf32>) -> tensor<1024xf32>
  %e1 = tensor.empty() : tensor<1024xf32>
  %b = linalg.mul ins(%y, %y : tensor<1024xf32>, tensor<1024xf32>) outs(%e1 : tensor<1024xf32>) -> tensor<1024xf32>
  %e = tensor.empty() : tensor<2048xf32>
  %r = tensor.insert_slice %a into %e[0] [1024] [1] : tensor<1024xf32> into tensor<2048xf32>
  %s = tensor.insert_slice %b into %r[1024] [1024] [1] : tensor<1024xf32> into tensor<2048xf32>
  return %s : tensor<2048xf32>
}
