func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<16xf32> {
  %e0 = tensor.empty() : tensor<8xf32>
  %a = linalg.exp ins(%x : tensor<8xf32>) outs(%e0 : tensor<8xf32>) -> tensor<8xf32>
  %e1 = tensor.empty() : tensor<8xf32>
  %b = linalg.log ins(%y : tensor<8xf32>) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %e = tensor.empty() : tensor<16xf32>
  %r = tensor.insert_slice %a into %e[0] [8] [1] : tensor<8xf32> into tensor<16xf32>
  %s = tensor.insert_slice %b into %r[8] [8] [1] : tensor<8xf32> into tensor<16xf32>
  return %s : tensor<16xf32>
}
