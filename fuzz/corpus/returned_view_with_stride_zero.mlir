func.func @main(%t0: tensor<6x6xf32> {bufferization.writable = true}, %n: index, %c: i1, %x: f32) -> (tensor<6x6xf32>, tensor<4x6xf32>, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c6 = arith.constant 6 : index
  %c5 = arith.constant 5 : index
  %half = arith.constant 0.5 : f32
  %eighth = arith.constant 0.125 : f32
  %v1 = tensor.extract_slice %t0[1, 0] [4, 6] [0, 1] : tensor<6x6xf32> to tensor<4x6xf32>
  %v2 = tensor.cast %t0 : tensor<6x6xf32> to tensor<?x?xf32>
  %v5 = arith.constant 6 : index
  %v6 = arith.remui %n, %v5 : index
  %v3 = tensor.insert %x into %v2[%c0, %v6] : tensor<?x?xf32>
  %v4 = tensor.cast %v3 : tensor<?x?xf32> to tensor<6x6xf32>
  %v7 = linalg.matmul ins(%v1, %v4 : tensor<4x6xf32>, tensor<6x6xf32>) outs(%v1 : tensor<4x6xf32>) -> tensor<4x6xf32>
  %v8 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%v7 : tensor<4x6xf32>) {
  ^bb0(%o: f32):
    %m = arith.mulf %o, %eighth : f32
  %v15 = arith.constant 6 : index
    linalg.yield %m : f32
  } -> tensor<4x6xf32>
  %v9 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v8, %v1 : tensor<4x6xf32>, tensor<4x6xf32>) outs(%v8 : tensor<4x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %s = arith.subf %a0, %a1 : f32
    %m = arith.mulf %s, %half : f32
    linalg.yield %m : f32
  } -> tensor<4x6xf32>
  %v10 = arith.cmpi ult, %n, %c2 : index
  %v11 = arith.select %v10, %v4, %v4 : tensor<6x6xf32>
  %v12 = tensor.cast %v4 : tensor<6x6xf32> to tensor<?x?xf32>
  %v15 = arith.constant 6 : index
  %v16 = arith.remui %n, %v15 : index
  %v13 = tensor.insert %half into %v12[%c0, %v16] : tensor<?x?xf32>
  %v14 = tensor.cast %v13 : tensor<?x?xf32> to tensor<6x6xf32>
  %v17 = tensor.extract %v14[%c2, %c5] : tensor<6x6xf32>
  return %v11, %v1, %v17 : tensor<6x6xf32>, tensor<4x6xf32>, f32
}