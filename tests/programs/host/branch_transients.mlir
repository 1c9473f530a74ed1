// Each branch makes what is used behind them, in one place.
#id = affine_map<(i, j) -> (i, j)>
#turned = affine_map<(i, j) -> (7 - i, j)>
func.func @main(%x: tensor<8x16xf32>, %c: i1) -> tensor<8x16xf32> {
  %b = scf.if %c -> (tensor<8x16xf32>) {
    %g = tensor.empty() : tensor<8x16xf32>
    %h = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]}
        ins(%x : tensor<8x16xf32>) outs(%g : tensor<8x16xf32>) {
    ^bb0(%p: f32, %o: f32):
      %s = math.sqrt %p : f32
      linalg.yield %s : f32
    } -> tensor<8x16xf32>
    scf.yield %h : tensor<8x16xf32>
  } else {
    %f = tensor.empty() : tensor<8x16xf32>
    %u = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]}
        ins(%x : tensor<8x16xf32>) outs(%f : tensor<8x16xf32>) {
    ^bb0(%p: f32, %o: f32):
      %s = arith.negf %p : f32
      linalg.yield %s : f32
    } -> tensor<8x16xf32>
    %g = tensor.empty() : tensor<8x16xf32>
    %h = linalg.generic {indexing_maps = [#turned, #id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%u, %x : tensor<8x16xf32>, tensor<8x16xf32>) outs(%g : tensor<8x16xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %s = arith.mulf %p, %q : f32
      linalg.yield %s : f32
    } -> tensor<8x16xf32>
    scf.yield %h : tensor<8x16xf32>
  }
  %e = tensor.empty() : tensor<8x16xf32>
  %r = linalg.generic {indexing_maps = [#turned, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%b, %b : tensor<8x16xf32>, tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<8x16xf32>
  return %r : tensor<8x16xf32>
}
