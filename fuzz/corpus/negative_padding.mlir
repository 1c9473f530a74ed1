func.func @f(%a: tensor<10xf32>, %x: f32) -> tensor<?xf32> {
  %n = arith.constant -4 : index
  %p = tensor.pad %a low[%n] high[1] { ^bb0(%i: index): tensor.yield %x : f32 } : tensor<10xf32> to tensor<?xf32>
  return %p : tensor<?xf32>
}
