func.func @main(%t: tensor<4xf32>, %x: f32, %i: index, %w: !shape.witness) -> tensor<4xf32> {
  %0 = shape.assuming %w -> (tensor<4xf32>) {
    %1 = tensor.insert %x into %t[%i] : tensor<4xf32>
    shape.assuming_yield %1 : tensor<4xf32>
  }
  %2 = tensor.insert %x into %0[%i] : tensor<4xf32>
  return %2 : tensor<4xf32>
}
