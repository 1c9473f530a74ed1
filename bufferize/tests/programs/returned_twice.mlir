// One tensor returned twice, and the argument as well.
func.func @f(%t: tensor<8xf32>, %x: f32) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %a = linalg.fill ins(%x : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %a, %a, %t : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
