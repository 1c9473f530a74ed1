// A row goes into a donated cache; the rows before it are read.
func.func @main(%cache: tensor<1024x128xf32> {monopour.donate}, %row: tensor<1x128xf32>, %q: tensor<128xf32>)
    -> (tensor<1024x128xf32>, tensor<512xf32>) {
  %zero = arith.constant 0.0 : f32
  %new = tensor.insert_slice %row into %cache[512, 0] [1, 128] [1, 1] : tensor<1x128xf32> into tensor<1024x128xf32>
  %seen = tensor.extract_slice %cache[0, 0] [512, 128] [1, 1] : tensor<1024x128xf32> to tensor<512x128xf32>
  %e = tensor.empty() : tensor<512xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<512xf32>) -> tensor<512xf32>
  %dots = linalg.matvec ins(%seen, %q : tensor<512x128xf32>, tensor<128xf32>) outs(%z : tensor<512xf32>) -> tensor<512xf32>
  return %new, %dots : tensor<1024x128xf32>, tensor<512xf32>
}
