func.func @expand(%t: tensor<?x4xf32>, %n: index) -> tensor<?x2x4xf32> {
  %g = tensor.expand_shape %t [[0, 1], [2]] output_shape [%n, 2, 4] : tensor<?x4xf32> into tensor<?x2x4xf32>
  return %g : tensor<?x2x4xf32>
}
func.func @collapse(%t: tensor<4x4xf32>, %u: tensor<1xf32>, %v: tensor<1x?x4xf32>) -> (tensor<16xf32>, tensor<f32>, tensor<1x?xf32>) {
  %g = tensor.collapse_shape %t [[0, 1]] : tensor<4x4xf32> into tensor<16xf32>
  %h = tensor.collapse_shape %u [] : tensor<1xf32> into tensor<f32>
  %i = tensor.collapse_shape %v [[0], [1, 2]] : tensor<1x?x4xf32> into tensor<1x?xf32>
  return %g, %h, %i : tensor<16xf32>, tensor<f32>, tensor<1x?xf32>
}
func.func @collapse_slice(%x: f32, %o: index) -> (tensor<4x6xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<4x2x3xf32>
  %f = linalg.fill ins(%x : f32) outs(%e : tensor<4x2x3xf32>) -> tensor<4x2x3xf32>
  %g = tensor.collapse_shape %f [[0], [1, 2]] : tensor<4x2x3xf32> into tensor<4x6xf32>
  %s = tensor.extract_slice %f[0, 0, %o] [4, 2, 1] [1, 1, 1] : tensor<4x2x3xf32> to tensor<4x2x1xf32>
  %h = tensor.collapse_shape %s [[0, 1, 2]] : tensor<4x2x1xf32> into tensor<8xf32>
  return %g, %h : tensor<4x6xf32>, tensor<8xf32>
}
func.func @collapse_written(%t: tensor<4x4xf32>, %x: f32) -> (tensor<16xf32>, tensor<4x4xf32>) {
  %g = tensor.collapse_shape %t [[0, 1]] : tensor<4x4xf32> into tensor<16xf32>
  %h = linalg.fill ins(%x : f32) outs(%g : tensor<16xf32>) -> tensor<16xf32>
  return %h, %t : tensor<16xf32>, tensor<4x4xf32>
}
func.func @reshape(%t: tensor<?xf32>, %s: tensor<2xindex>, %x: f32) -> tensor<?x?xf32> {
  %f = linalg.fill ins(%x : f32) outs(%t : tensor<?xf32>) -> tensor<?xf32>
  %g = tensor.reshape %f(%s) : (tensor<?xf32>, tensor<2xindex>) -> tensor<?x?xf32>
  return %g : tensor<?x?xf32>
}
