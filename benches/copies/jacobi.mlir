// Ten rounds of a stencil between two tensors that change places.
func.func @main(%x: tensor<4096xf32> {monopour.donate}, %y: tensor<4096xf32> {monopour.donate}) -> (tensor<4096xf32>, tensor<4096xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %f:2 = scf.for %i = %c0 to %c10 step %c1 iter_args(%u = %x, %v = %y) -> (tensor<4096xf32>, tensor<4096xf32>) {
    %l = tensor.extract_slice %u[0] [4094] [1] : tensor<4096xf32> to tensor<4094xf32>
    %m = tensor.extract_slice %u[1] [4094] [1] : tensor<4096xf32> to tensor<4094xf32>
    %h = tensor.extract_slice %u[2] [4094] [1] : tensor<4096xf32> to tensor<4094xf32>
    %e = tensor.empty() : tensor<4094xf32>
    %s = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
        ins(%l, %m, %h : tensor<4094xf32>, tensor<4094xf32>, tensor<4094xf32>) outs(%e : tensor<4094xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
      %ab = arith.addf %a, %b : f32
      %r = arith.addf %ab, %c : f32
      linalg.yield %r : f32
    } -> tensor<4094xf32>
    %n = tensor.insert_slice %s into %v[1] [4094] [1] : tensor<4094xf32> into tensor<4096xf32>
    scf.yield %n, %u : tensor<4096xf32>, tensor<4096xf32>
  }
  return %f#0, %f#1 : tensor<4096xf32>, tensor<4096xf32>
}
