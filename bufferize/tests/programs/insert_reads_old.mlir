func.func @main(%d: tensor<32xf32>, %x: tensor<8xf32>) -> (tensor<32xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %a = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %old = tensor.extract_slice %d[8] [8] [1] : tensor<32xf32> to tensor<8xf32>
  %f = tensor.empty() : tensor<8xf32>
  %b = linalg.add ins(%a, %old : tensor<8xf32>, tensor<8xf32>) outs(%f : tensor<8xf32>) -> tensor<8xf32>
  %r = tensor.insert_slice %a into %d[8] [8] [1] : tensor<8xf32> into tensor<32xf32>
  return %r, %b : tensor<32xf32>, tensor<8xf32>
}
