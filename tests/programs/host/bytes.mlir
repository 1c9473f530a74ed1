#m = affine_map<(d0) -> (d0)>
func.func @main(%x: tensor<7xi8>, %y: tensor<5xi8>, %b: tensor<3xi1>, %c: tensor<4xi1>, %h: tensor<3xf16>) -> (tensor<12xi8>, tensor<7xi1>, tensor<7xi8>, tensor<7xf16>) {
  %0 = tensor.concat dim(0) %x, %y : (tensor<7xi8>, tensor<5xi8>) -> tensor<12xi8>
  %1 = tensor.concat dim(0) %b, %c : (tensor<3xi1>, tensor<4xi1>) -> tensor<7xi1>
  %e = tensor.empty() : tensor<7xi8>
  %g = linalg.generic {indexing_maps=[#m,#m],iterator_types=["parallel"]} ins(%x : tensor<7xi8>) outs(%e : tensor<7xi8>) {
  ^bb0(%p: i8, %o: i8): %s = arith.addi %p, %p : i8
    linalg.yield %s : i8 } -> tensor<7xi8>
  %z = arith.constant 1.0 : f16
  %p = tensor.pad %h low[1] high[3] { ^bb0(%i: index): tensor.yield %z : f16 } : tensor<3xf16> to tensor<7xf16>
  return %0, %1, %g, %p : tensor<12xi8>, tensor<7xi1>, tensor<7xi8>, tensor<7xf16>
}
