func.func @main(%t: tensor<4xi32>, %i: index) -> (tensor<4xindex>, i32) {
  %0 = arith.index_cast %t : tensor<4xi32> to tensor<4xindex>
  %c = arith.constant 3 : index
  %1 = tensor.insert %c into %0[%i] : tensor<4xindex>
  %x = tensor.extract %t[%i] : tensor<4xi32>
  return %1, %x : tensor<4xindex>, i32
}
