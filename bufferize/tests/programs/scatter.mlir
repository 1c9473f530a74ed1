func.func @main(%t: tensor<8xf32>, %i: vector<4xindex>, %m: vector<4xi1>, %v: vector<4xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %c = arith.constant 0 : index
  %r = vector.scatter %t[%c] [%i], %m, %v : tensor<8xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32> -> tensor<8xf32>
  return %t, %r : tensor<8xf32>, tensor<8xf32>
}
