"bui^tin.module"() ({
  "func.func"() <{function_type = (tensor<8xf32>, f32, index) -> (tensor<8xf32>, f32), sym_name = "f"}> ({
  ^bb0(%arg0: tensor<8xf32>, %arg1: f32, %arg2: index):
    %0 = "bufferization.alloc_tensor"(%arg0) <{operandSegmentSizes = array<i32: 0, 1, 0>}> : (tensor<8xf32>) -> tensor<8xf32>
    %1 = "tensor.insert"(%arg1, %0, %arg2) : (f32, tensor<8xf32>, index) -> tensor<8xf32>
    %2 = "bufferization.alloc_tensor"() <{operandSegmentSizes = array<i32: 0, 0, 0>}> : () -> tensor<8xf32>
    %3 = "linalg.fill"(%arg1, %2) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg3: f32, %arg4: f32):
      "linalg.yield"(%arg3) : (f32) -> ()
    }) : (f32, tensor<8xf32>) -> tensor<8xf32>
    %4 = "tensor.extract"(%3, %arg2) : (tensor<8xf32>, index) -> f32
    %5 = "tensor.extract"(%arg0, %arg2) : (tensor<8xf32>, index) -> f32
    %6 = "arith.addf"(%4, %5) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
    "func.return"(%1, %6) : (tensor<8xf32>, f32) -> ()
  }) : () -> ()
}) : () -> ()

