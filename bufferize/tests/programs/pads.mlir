// Sizes and offsets that are computed; numbers that come from constants are written down.
func.func @main(%t: tensor<?x10xindex>, %l2: index, %h1: index, %h2: index) -> (tensor<?x?xindex>, tensor<20x20xindex>) {
  %0 = tensor.pad %t low[5, %l2] high[%h1, %h2] {
  ^bb0(%i: index, %j: index):
    %m = arith.muli %i, %j : index
    tensor.yield %m : index
  } : tensor<?x10xindex> to tensor<?x?xindex>
  %c3 = arith.constant 3 : index
  %1 = tensor.pad %t low[%c3, 0] high[%h2, 10] {
  ^bb0(%i: index, %j: index):
    tensor.yield %l2 : index
  } : tensor<?x10xindex> to tensor<20x20xindex>
  return %0, %1 : tensor<?x?xindex>, tensor<20x20xindex>
}
