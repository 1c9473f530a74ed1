func.func @main(%x: tensor<3x4xf32>, %y: tensor<2x4xf32>, %f: f32) -> (tensor<5x4xf32>, tensor<6x7xf32>, tensor<2xf32>, tensor<3x4xf32>, tensor<5x4xi32>) {
  %a = arith.addf %x, %x : tensor<3x4xf32>
  %1 = tensor.concat dim(0) %a, %y : (tensor<3x4xf32>, tensor<2x4xf32>) -> tensor<5x4xf32>
  %p = tensor.pad %a low[1,2] high[2,1] { ^bb0(%i: index, %j: index): tensor.yield %f : f32 } : tensor<3x4xf32> to tensor<6x7xf32>
  %fe = tensor.from_elements %f, %f : tensor<2xf32>
  %sp = tensor.splat %f : tensor<3x4xf32>
  %g = tensor.generate { ^bb0(%i: index, %j: index): %u = arith.addi %i, %j : index
    %b = arith.index_cast %u : index to i32
    tensor.yield %b : i32 } : tensor<5x4xi32>
  return %1, %p, %fe, %sp, %g : tensor<5x4xf32>, tensor<6x7xf32>, tensor<2xf32>, tensor<3x4xf32>, tensor<5x4xi32>
}
