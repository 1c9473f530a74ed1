func.func @main(%d: tensor<32xf32>, %c: i1, %f: f32, %g: f32) -> tensor<32xf32> {
  %r = scf.if %c -> tensor<8xf32> {
    %e = tensor.empty() : tensor<8xf32>
    %a = linalg.fill ins(%f : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %a : tensor<8xf32>
  } else {
    %e = tensor.empty() : tensor<8xf32>
    %b = linalg.fill ins(%g : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %b : tensor<8xf32>
  }
  %o = tensor.insert_slice %r into %d[5] [8] [1] : tensor<8xf32> into tensor<32xf32>
  return %o : tensor<32xf32>
}
