// A row is written behind the rows that are read.
func.func @main(%cache: tensor<4096x128xf32> {bufferization.writable = true}, %kv: tensor<1x128xf32> {bufferization.writable = false}, %q: tensor<128xf32> {bufferization.writable = false}, %out: tensor<?xf32> {bufferization.writable = true}, %p: index) -> (tensor<4096x128xf32>, tensor<?xf32>) {
  %hist = tensor.extract_slice %cache[0, 0] [%p, 128] [1, 1] : tensor<4096x128xf32> to tensor<?x128xf32>
  %new = tensor.insert_slice %kv into %cache[%p, 0] [1, 128] [1, 1] : tensor<1x128xf32> into tensor<4096x128xf32>
  %s = linalg.matvec ins(%hist, %q : tensor<?x128xf32>, tensor<128xf32>) outs(%out : tensor<?xf32>) -> tensor<?xf32>
  return %new, %s : tensor<4096x128xf32>, tensor<?xf32>
}
