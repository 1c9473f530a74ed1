"builtin.module"() ({
  "func.func"() <{function_type = (tensor<8xf32>, f32) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>), sym_name = "f"}> ({
  ^bb0(%arg0: tensor<8xf32>, %arg1: f32):
    %0 = "tensor.empty"() : () -> tensor<8xf32>
    %1 = "linalg.fill"(%arg1, %0) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg2: f32, %arg3: f32):
      "linalg.yield"(%arg2) : (f32) -> ()
    }) : (f32, tensor<8xf32>) -> tensor<8xf32>
    "func.return"(%1, %1, %arg0) : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> ()
  }) : () -> ()
}) : () -> ()

