// Attention over a cache to which a row is added; the rows before it are read after the write. Donated: arg0, arg3. Possible without a copy of the cache.
#q = affine_map<(d0,d1) -> (d1)>
#k = affine_map<(d0,d1) -> (d0,d1)>
#o = affine_map<(d0,d1) -> (d0)>
func.func @main(%cache: tensor<4096x128xf32>, %kv: tensor<1x128xf32>, %q: tensor<128xf32>, %out: tensor<?xf32>, %p: index) -> (tensor<4096x128xf32>, tensor<?xf32>) {
  %hist = tensor.extract_slice %cache[0,0][%p,128][1,1] : tensor<4096x128xf32> to tensor<?x128xf32>
  %new = tensor.insert_slice %kv into %cache[%p,0][1,128][1,1] : tensor<1x128xf32> into tensor<4096x128xf32>
  %s = linalg.generic {indexing_maps=[#q,#k,#o],iterator_types=["parallel","reduction"]} ins(%q, %hist : tensor<128xf32>, tensor<?x128xf32>) outs(%out : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32): %m = arith.mulf %a, %b : f32
    %d = arith.addf %c, %m : f32
    linalg.yield %d : f32 } -> tensor<?xf32>
  return %new, %s : tensor<4096x128xf32>, tensor<?xf32>
}
