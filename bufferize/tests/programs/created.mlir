func.func @splat(%x: f32, %n: index) -> tensor<?x4xf32> {
  %g = tensor.splat %x[%n] : tensor<?x4xf32>
  return %g : tensor<?x4xf32>
}
func.func @from_elements(%x: f32, %y: f32, %z: f32) -> tensor<2x3xf32> {
  %g = tensor.from_elements %x, %y, %z, %z, %y, %x : tensor<2x3xf32>
  return %g : tensor<2x3xf32>
}
func.func @generate(%t: tensor<?xf32>, %n: index, %x: f32) -> tensor<?x4xf32> {
  %g = tensor.generate %n {
  ^bb0(%i: index, %j: index):
    %e = tensor.extract %t[%i] : tensor<?xf32>
    %a = arith.addf %e, %x : f32
    tensor.yield %a : f32
  } : tensor<?x4xf32>
  return %g : tensor<?x4xf32>
}
func.func @concat(%t: tensor<3x4xf32>, %u: tensor<3x5xf32>) -> tensor<3x9xf32> {
  %g = tensor.concat dim(1) %t, %u : (tensor<3x4xf32>, tensor<3x5xf32>) -> tensor<3x9xf32>
  return %g : tensor<3x9xf32>
}
func.func @pad(%t: tensor<2x4xf32>, %x: f32) -> tensor<5x7xf32> {
  %g = tensor.pad %t low[1, 1] high[2, 2] {
  ^bb0(%i: index, %j: index):
    tensor.yield %x : f32
  } : tensor<2x4xf32> to tensor<5x7xf32>
  return %g : tensor<5x7xf32>
}
