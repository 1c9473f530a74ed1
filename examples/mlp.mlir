// A perceptron of three layers for 64 images of 28 x 28: a product, a bias and a relu each, no relu after the last.
// Its weights lie in mlp.safetensors beside it (examples/make_mlp.py wrote them); they are mapped, never copied into the IR.
//
//   monopour run examples/mlp.mlir --random 1 --stats
#all = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
module attributes {monopour.weights = "mlp.safetensors"} {
  func.func @main(%image: tensor<64x784xf32> {monopour.name = "image"}) -> (tensor<64x10xf32> {monopour.name = "scores"}) {
    %zero = arith.constant 0.0 : f32
    %w0 = arith.constant dense_resource<w0> : tensor<784x512xf32>
    %b0 = arith.constant dense_resource<b0> : tensor<512xf32>
    %w1 = arith.constant dense_resource<w1> : tensor<512x256xf32>
    %b1 = arith.constant dense_resource<b1> : tensor<256xf32>
    %w2 = arith.constant dense_resource<w2> : tensor<256x10xf32>
    %b2 = arith.constant dense_resource<b2> : tensor<10xf32>

    %e0 = tensor.empty() : tensor<64x512xf32>
    %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<64x512xf32>) -> tensor<64x512xf32>
    %m0 = linalg.matmul ins(%image, %w0 : tensor<64x784xf32>, tensor<784x512xf32>) outs(%f0 : tensor<64x512xf32>) -> tensor<64x512xf32>
    %x1 = linalg.generic {indexing_maps = [#all, #column, #all], iterator_types = ["parallel", "parallel"]}
        ins(%m0, %b0 : tensor<64x512xf32>, tensor<512xf32>) outs(%e0 : tensor<64x512xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %s = arith.addf %p, %q : f32
      %r = arith.maximumf %s, %zero : f32
      linalg.yield %r : f32
    } -> tensor<64x512xf32>

    %e1 = tensor.empty() : tensor<64x256xf32>
    %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<64x256xf32>) -> tensor<64x256xf32>
    %m1 = linalg.matmul ins(%x1, %w1 : tensor<64x512xf32>, tensor<512x256xf32>) outs(%f1 : tensor<64x256xf32>) -> tensor<64x256xf32>
    %x2 = linalg.generic {indexing_maps = [#all, #column, #all], iterator_types = ["parallel", "parallel"]}
        ins(%m1, %b1 : tensor<64x256xf32>, tensor<256xf32>) outs(%e1 : tensor<64x256xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %s = arith.addf %p, %q : f32
      %r = arith.maximumf %s, %zero : f32
      linalg.yield %r : f32
    } -> tensor<64x256xf32>

    %e2 = tensor.empty() : tensor<64x10xf32>
    %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<64x10xf32>) -> tensor<64x10xf32>
    %m2 = linalg.matmul ins(%x2, %w2 : tensor<64x256xf32>, tensor<256x10xf32>) outs(%f2 : tensor<64x10xf32>) -> tensor<64x10xf32>
    %scores = linalg.generic {indexing_maps = [#all, #column, #all], iterator_types = ["parallel", "parallel"]}
        ins(%m2, %b2 : tensor<64x10xf32>, tensor<10xf32>) outs(%e2 : tensor<64x10xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %s = arith.addf %p, %q : f32
      linalg.yield %s : f32
    } -> tensor<64x10xf32>
    return %scores : tensor<64x10xf32>
  }
}
