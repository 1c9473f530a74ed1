func.func @main(%x: tensor<?x6xf32>) -> (tensor<?xf32>, tensor<?x2x3xf32>, index) {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %x, %c0 : tensor<?x6xf32>
  %a = arith.addf %x, %x : tensor<?x6xf32>
  %f = tensor.collapse_shape %a [[0, 1]] : tensor<?x6xf32> into tensor<?xf32>
  %g = arith.mulf %f, %f : tensor<?xf32>
  %e = tensor.expand_shape %x [[0], [1, 2]] output_shape [%d, 2, 3] : tensor<?x6xf32> into tensor<?x2x3xf32>
  %h = arith.addf %e, %e : tensor<?x2x3xf32>
  return %g, %h, %d : tensor<?xf32>, tensor<?x2x3xf32>, index
}
