func.func @main(%x: tensor<5xf32>, %n: i64, %f: f64, %b: i1, %h: f16) -> (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, i64, f64, i1, f16) {
  %c = arith.constant dense<2.0> : tensor<5xf32>
  return %x, %x, %c, %n, %f, %b, %h : tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, i64, f64, i1, f16
}
