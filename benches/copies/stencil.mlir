// Three neighbours, summed, into another tensor.
func.func @main(%x: tensor<4096xf32>, %y: tensor<4096xf32> {monopour.donate}) -> tensor<4096xf32> {
  %l = tensor.extract_slice %x[0] [4094] [1] : tensor<4096xf32> to tensor<4094xf32>
  %m = tensor.extract_slice %x[1] [4094] [1] : tensor<4096xf32> to tensor<4094xf32>
  %h = tensor.extract_slice %x[2] [4094] [1] : tensor<4096xf32> to tensor<4094xf32>
  %e = tensor.empty() : tensor<4094xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%l, %m, %h : tensor<4094xf32>, tensor<4094xf32>, tensor<4094xf32>) outs(%e : tensor<4094xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
    %ab = arith.addf %a, %b : f32
    %r = arith.addf %ab, %c : f32
    linalg.yield %r : f32
  } -> tensor<4094xf32>
  %n = tensor.insert_slice %s into %y[1] [4094] [1] : tensor<4094xf32> into tensor<4096xf32>
  return %n : tensor<4096xf32>
}
