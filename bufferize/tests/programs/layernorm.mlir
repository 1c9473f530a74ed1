func.func @main(%x: tensor<4096x1024xf32>, %g: tensor<1024xf32>, %b: tensor<1024xf32>) -> tensor<4096x1024xf32> {
  %z = arith.constant 0.0 : f32
  %n = arith.constant 1024.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %e = tensor.empty() : tensor<4096x1024xf32>
  %er = tensor.empty() : tensor<4096xf32>
  %zr = linalg.fill ins(%z : f32) outs(%er : tensor<4096xf32>) -> tensor<4096xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4096x1024xf32>) outs(%zr : tensor<4096xf32>) {
  ^bb0(%p0: f32, %o: f32):
    %s = arith.addf %p0, %o : f32
    linalg.yield %s : f32
  } -> tensor<4096xf32>
  %xc = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x, %sum : tensor<4096x1024xf32>, tensor<4096xf32>) outs(%e : tensor<4096x1024xf32>) {
  ^bb0(%p0: f32, %p1: f32, %o: f32):
    %m = arith.divf %p1, %n : f32
    %s = arith.subf %p0, %m : f32
    linalg.yield %s : f32
  } -> tensor<4096x1024xf32>
  %sq = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%xc : tensor<4096x1024xf32>) outs(%zr : tensor<4096xf32>) {
  ^bb0(%p0: f32, %o: f32):
    %m = arith.mulf %p0, %p0 : f32
    %s = arith.addf %m, %o : f32
    linalg.yield %s : f32
  } -> tensor<4096xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%xc, %sq, %g, %b : tensor<4096x1024xf32>, tensor<4096xf32>, tensor<1024xf32>, tensor<1024xf32>) outs(%e : tensor<4096x1024xf32>) {
  ^bb0(%p0: f32, %p1: f32, %p2: f32, %p3: f32, %o: f32):
    %v = arith.divf %p1, %n : f32
    %ve = arith.addf %v, %eps : f32
    %rs = math.rsqrt %ve : f32
    %m = arith.mulf %p0, %rs : f32
    %mg = arith.mulf %m, %p2 : f32
    %s = arith.addf %mg, %p3 : f32
    linalg.yield %s : f32
  } -> tensor<4096x1024xf32>
  return %y : tensor<4096x1024xf32>
}
