// A callee returns an argument and a new tensor.
func.func private @f(%a: tensor<1024xf32>, %b: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %e = tensor.empty() : tensor<1024xf32>
  %w = linalg.add ins(%a, %b : tensor<1024xf32>, tensor<1024xf32>) outs(%e : tensor<1024xf32>) -> tensor<1024xf32>
  return %a, %w : tensor<1024xf32>, tensor<1024xf32>
}
func.func @main(%x: tensor<1024xf32> {bufferization.writable = false}, %y: tensor<1024xf32> {bufferization.writable = false}, %i: index) -> (f32, f32) {
  %r:2 = call @f(%x, %y) : (tensor<1024xf32>, tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>)
  %u = tensor.extract %r#0[%i] : tensor<1024xf32>
  %v = tensor.extract %r#1[%i] : tensor<1024xf32>
  return %u, %v : f32, f32
}
