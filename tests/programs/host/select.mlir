func.func @main(%x: tensor<9xf32>, %y: tensor<9xf32>, %c: i1) -> (tensor<9xf32>, tensor<9xf32>) {
  %a = arith.addf %x, %y : tensor<9xf32>
  %s = arith.select %c, %a, %y : tensor<9xf32>
  %t = arith.mulf %s, %x : tensor<9xf32>
  return %s, %t : tensor<9xf32>, tensor<9xf32>
}
