// A chain of elementwise ops, each with a tensor of its own. Donated: nothing. Possible without a copy, in one allocation.
#m = affine_map<(d0) -> (d0)>
func.func @main(%x: tensor<65536xf32> {bufferization.writable = false}) -> tensor<65536xf32> {
  %e0 = tensor.empty() : tensor<65536xf32>
  %v0 = linalg.generic {indexing_maps=[#m,#m],iterator_types=["parallel"]} ins(%x : tensor<65536xf32>) outs(%e0 : tensor<65536xf32>) { ^bb0(%i: f32, %o: f32): %s = arith.addf %i, %i : f32
    linalg.yield %s : f32 } -> tensor<65536xf32>
  %e1 = tensor.empty() : tensor<65536xf32>
  %v1 = linalg.generic {indexing_maps=[#m,#m],iterator_types=["parallel"]} ins(%v0 : tensor<65536xf32>) outs(%e1 : tensor<65536xf32>) { ^bb0(%i: f32, %o: f32): %s = arith.mulf %i, %i : f32
    linalg.yield %s : f32 } -> tensor<65536xf32>
  %e2 = tensor.empty() : tensor<65536xf32>
  %v2 = linalg.generic {indexing_maps=[#m,#m],iterator_types=["parallel"]} ins(%v1 : tensor<65536xf32>) outs(%e2 : tensor<65536xf32>) { ^bb0(%i: f32, %o: f32): %s = arith.addf %i, %i : f32
    linalg.yield %s : f32 } -> tensor<65536xf32>
  %e3 = tensor.empty() : tensor<65536xf32>
  %v3 = linalg.generic {indexing_maps=[#m,#m],iterator_types=["parallel"]} ins(%v2 : tensor<65536xf32>) outs(%e3 : tensor<65536xf32>) { ^bb0(%i: f32, %o: f32): %s = arith.mulf %i, %i : f32
    linalg.yield %s : f32 } -> tensor<65536xf32>
  return %v3 : tensor<65536xf32>
}
