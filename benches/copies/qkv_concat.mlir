// Three products side by side in one tensor.
func.func @main(%x: tensor<256x256xf32>, %a: tensor<256x256xf32>, %b: tensor<256x256xf32>, %c: tensor<256x256xf32>) -> tensor<256x768xf32> {
  %zero = arith.constant 0.0 : f32
  %eq = tensor.empty() : tensor<256x256xf32>
  %zq = linalg.fill ins(%zero : f32) outs(%eq : tensor<256x256xf32>) -> tensor<256x256xf32>
  %q = linalg.matmul ins(%x, %a : tensor<256x256xf32>, tensor<256x256xf32>) outs(%zq : tensor<256x256xf32>) -> tensor<256x256xf32>
  %ek = tensor.empty() : tensor<256x256xf32>
  %zk = linalg.fill ins(%zero : f32) outs(%ek : tensor<256x256xf32>) -> tensor<256x256xf32>
  %k = linalg.matmul ins(%x, %b : tensor<256x256xf32>, tensor<256x256xf32>) outs(%zk : tensor<256x256xf32>) -> tensor<256x256xf32>
  %ev = tensor.empty() : tensor<256x256xf32>
  %zv = linalg.fill ins(%zero : f32) outs(%ev : tensor<256x256xf32>) -> tensor<256x256xf32>
  %v = linalg.matmul ins(%x, %c : tensor<256x256xf32>, tensor<256x256xf32>) outs(%zv : tensor<256x256xf32>) -> tensor<256x256xf32>
  %y = tensor.concat dim(1) %q, %k, %v : (tensor<256x256xf32>, tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x768xf32>
  return %y : tensor<256x768xf32>
}
