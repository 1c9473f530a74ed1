// x + relu(x w) w, x donated.
func.func @main(%x: tensor<256x256xf32> {monopour.donate}, %w: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %zero = arith.constant 0.0 : f32
  %ep = tensor.empty() : tensor<256x256xf32>
  %zp = linalg.fill ins(%zero : f32) outs(%ep : tensor<256x256xf32>) -> tensor<256x256xf32>
  %p = linalg.matmul ins(%x, %w : tensor<256x256xf32>, tensor<256x256xf32>) outs(%zp : tensor<256x256xf32>) -> tensor<256x256xf32>
  %e = tensor.empty() : tensor<256x256xf32>
  %h = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.maximumf %a, %zero : f32
    linalg.yield %r : f32
  } -> tensor<256x256xf32>
  %eq = tensor.empty() : tensor<256x256xf32>
  %zq = linalg.fill ins(%zero : f32) outs(%eq : tensor<256x256xf32>) -> tensor<256x256xf32>
  %q = linalg.matmul ins(%h, %w : tensor<256x256xf32>, tensor<256x256xf32>) outs(%zq : tensor<256x256xf32>) -> tensor<256x256xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %q : tensor<256x256xf32>, tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<256x256xf32>
  return %y : tensor<256x256xf32>
}
