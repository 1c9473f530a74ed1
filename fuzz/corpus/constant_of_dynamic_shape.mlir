%w = arith.constant dense_resource<w0> : tensor<4x?xf32>
func.func @f(%t: tensor<8xf32>) -> tensor<8xf32> {
  return %t : tensor<8xf32>
}
