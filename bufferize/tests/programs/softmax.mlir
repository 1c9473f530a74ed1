func.func @main(%x: tensor<4096x1024xf32>) -> tensor<4096x1024xf32> {
  %sme = tensor.empty() : tensor<4096x1024xf32>
  %smr = tensor.empty() : tensor<4096xf32>
  %ninf = arith.constant 0xFF800000 : f32
  %z0 = arith.constant 0.0 : f32
  %smi = linalg.fill ins(%ninf : f32) outs(%smr : tensor<4096xf32>) -> tensor<4096xf32>
  %smz = linalg.fill ins(%z0 : f32) outs(%smr : tensor<4096xf32>) -> tensor<4096xf32>
  %mx = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4096x1024xf32>) outs(%smi : tensor<4096xf32>) {
  ^bb0(%p0: f32, %o: f32):
    %s = arith.maximumf %p0, %o : f32
    linalg.yield %s : f32
  } -> tensor<4096xf32>
  %ex = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x, %mx : tensor<4096x1024xf32>, tensor<4096xf32>) outs(%sme : tensor<4096x1024xf32>) {
  ^bb0(%p0: f32, %p1: f32, %o: f32):
    %d = arith.subf %p0, %p1 : f32
    %s = math.exp %d : f32
    linalg.yield %s : f32
  } -> tensor<4096x1024xf32>
  %sm = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%ex : tensor<4096x1024xf32>) outs(%smz : tensor<4096xf32>) {
  ^bb0(%p0: f32, %o: f32):
    %s = arith.addf %p0, %o : f32
    linalg.yield %s : f32
  } -> tensor<4096xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%ex, %sm : tensor<4096x1024xf32>, tensor<4096xf32>) outs(%sme : tensor<4096x1024xf32>) {
  ^bb0(%p0: f32, %p1: f32, %o: f32):
    %s = arith.divf %p0, %p1 : f32
    linalg.yield %s : f32
  } -> tensor<4096x1024xf32>
  return %y : tensor<4096x1024xf32>
}
