// Three transients of two dynamic sizes, of which two are never alive together, and one of static size.
#id = affine_map<(i, j) -> (i, j)>
#turned = affine_map<(i, j) -> (i, 15 - j)>
#rows = affine_map<(i, j) -> (i, 0)>
#other = affine_map<(i, j) -> (j, 0)>
func.func @main(%x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x16xf32>
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty(%n) : tensor<?x16xf32>
  %a = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x16xf32>) outs(%e0 : tensor<?x16xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = arith.addf %p, %p : f32
    linalg.yield %s : f32
  } -> tensor<?x16xf32>
  %e1 = tensor.empty() : tensor<16x16xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<16x16xf32>) -> tensor<16x16xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (k, i)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %a : tensor<?x16xf32>, tensor<?x16xf32>) outs(%z1 : tensor<16x16xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<16x16xf32>
  %e2 = tensor.empty(%n) : tensor<?x16xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<?x16xf32>) -> tensor<?x16xf32>
  %b = linalg.matmul ins(%a, %g : tensor<?x16xf32>, tensor<16x16xf32>) outs(%z2 : tensor<?x16xf32>) -> tensor<?x16xf32>
  %e3 = tensor.empty(%n) : tensor<?x16xf32>
  %d = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]}
      ins(%b : tensor<?x16xf32>) outs(%e3 : tensor<?x16xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.sqrt %p : f32
    linalg.yield %s : f32
  } -> tensor<?x16xf32>
  %e4 = tensor.empty(%n) : tensor<?x16xf32>
  %z4 = linalg.fill ins(%zero : f32) outs(%e4 : tensor<?x16xf32>) -> tensor<?x16xf32>
  %r = linalg.matmul ins(%d, %g : tensor<?x16xf32>, tensor<16x16xf32>) outs(%z4 : tensor<?x16xf32>) -> tensor<?x16xf32>
  return %r : tensor<?x16xf32>
}
