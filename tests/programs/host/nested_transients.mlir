// Transients before a loop, in each iteration, and in the branches of one: only the carried tensor outlives an iteration.
#id = affine_map<(i, j) -> (i, j)>
#turned = affine_map<(i, j) -> (7 - i, j)>
func.func @main(%x: tensor<8x16xf32> {monopour.donate}, %n: index, %c: i1) -> tensor<8x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<8x16xf32>
  %before = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = arith.addf %p, %p : f32
    linalg.yield %s : f32
  } -> tensor<8x16xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %x) -> (tensor<8x16xf32>) {
    %f = tensor.empty() : tensor<8x16xf32>
    %a = linalg.generic {indexing_maps = [#turned, #id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%t, %before : tensor<8x16xf32>, tensor<8x16xf32>) outs(%f : tensor<8x16xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %s = arith.mulf %p, %q : f32
      linalg.yield %s : f32
    } -> tensor<8x16xf32>
    %b = scf.if %c -> (tensor<8x16xf32>) {
      %g = tensor.empty() : tensor<8x16xf32>
      %h = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]}
          ins(%a : tensor<8x16xf32>) outs(%g : tensor<8x16xf32>) {
      ^bb0(%p: f32, %o: f32):
        %s = math.sqrt %p : f32
        linalg.yield %s : f32
      } -> tensor<8x16xf32>
      scf.yield %h : tensor<8x16xf32>
    } else {
      %g = tensor.empty() : tensor<8x16xf32>
      %h = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]}
          ins(%before : tensor<8x16xf32>) outs(%g : tensor<8x16xf32>) {
      ^bb0(%p: f32, %o: f32):
        %s = arith.negf %p : f32
        linalg.yield %s : f32
      } -> tensor<8x16xf32>
      scf.yield %h : tensor<8x16xf32>
    }
    %sum = linalg.generic {indexing_maps = [#turned, #id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%b, %a : tensor<8x16xf32>, tensor<8x16xf32>) outs(%t : tensor<8x16xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %u = arith.addf %p, %q : f32
      %s = arith.addf %u, %o : f32
      linalg.yield %s : f32
    } -> tensor<8x16xf32>
    scf.yield %sum : tensor<8x16xf32>
  }
  return %r : tensor<8x16xf32>
}
