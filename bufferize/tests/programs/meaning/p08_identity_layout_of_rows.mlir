// A slice of rows that are longer than it is no contiguous buffer.
// options: identity-layout-map or-error
func.func private @last(%t: tensor<?x?xf32>, %i: index, %j: index) -> f32 {
  %v = tensor.extract %t[%i, %j] : tensor<?x?xf32>
  return %v : f32
}
func.func @main(%t: tensor<4x6xf32> {bufferization.writable = false}) -> (f32, f32) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %d = tensor.cast %t : tensor<4x6xf32> to tensor<?x?xf32>
  %s = tensor.extract_slice %d[0, 0] [%c2, %c2] [1, 1] : tensor<?x?xf32> to tensor<?x?xf32>
  %u = call @last(%s, %c1, %c1) : (tensor<?x?xf32>, index, index) -> f32
  %e = tensor.extract %t[%c1, %c1] : tensor<4x6xf32>
  return %u, %e : f32, f32
}
