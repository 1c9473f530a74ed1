// An input beside what is made of it: the input must be copied.
func.func @main(%x: tensor<256x256xf32>, %a: tensor<256x256xf32>) -> tensor<256x512xf32> {
  %zero = arith.constant 0.0 : f32
  %eq = tensor.empty() : tensor<256x256xf32>
  %zq = linalg.fill ins(%zero : f32) outs(%eq : tensor<256x256xf32>) -> tensor<256x256xf32>
  %q = linalg.matmul ins(%x, %a : tensor<256x256xf32>, tensor<256x256xf32>) outs(%zq : tensor<256x256xf32>) -> tensor<256x256xf32>
  %y = tensor.concat dim(1) %x, %q : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x512xf32>
  return %y : tensor<256x512xf32>
}
