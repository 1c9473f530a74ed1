// Each branch fills a tensor of its own, which goes into a slice of the input. Donated: arg0. Possible without a copy or an allocation.
func.func @main(%d: tensor<2048xf32>, %c: i1, %f: f32, %g: f32) -> tensor<2048xf32> {
  %r = scf.if %c -> tensor<1024xf32> {
    %e = tensor.empty() : tensor<1024xf32>
    %a = linalg.fill ins(%f : f32) outs(%e : tensor<1024xf32>) -> tensor<1024xf32>
    scf.yield %a : tensor<1024xf32>
  } else {
    %e = tensor.empty() : tensor<1024xf32>
    %b = linalg.fill ins(%g : f32) outs(%e : tensor<1024xf32>) -> tensor<1024xf32>
    scf.yield %b : tensor<1024xf32>
  }
  %o = tensor.insert_slice %r into %d[512][1024][1] : tensor<1024xf32> into tensor<2048xf32>
  return %o : tensor<2048xf32>
}
