"builtin.module"() ({
  "func.func"() <{function_type = (f32, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>), sym_name = "f"}> ({
  ^bb0(%arg0: f32, %arg1: tensor<8xf32>):
    %0 = "arith.constant"() <{value = 0 : index}> : () -> index
    %1 = "arith.constant"() <{value = 1 : index}> : () -> index
    %2 = "arith.constant"() <{value = 8 : index}> : () -> index
    %3 = "linalg.fill"(%arg0, %arg1) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg6: f32, %arg7: f32):
      "linalg.yield"(%arg6) : (f32) -> ()
    }) : (f32, tensor<8xf32>) -> tensor<8xf32>
    %4 = "scf.for"(%0, %2, %1, %3) ({
    ^bb0(%arg2: index, %arg3: tensor<8xf32>):
      %5 = "linalg.fill"(%arg0, %arg3) <{operandSegmentSizes = array<i32: 1, 1>}> ({
      ^bb0(%arg4: f32, %arg5: f32):
        "linalg.yield"(%arg4) : (f32) -> ()
      }) : (f32, tensor<8xf32>) -> tensor<8xf32>
      "scf.yield"(%5) : (tensor<8xf32>) -> ()
    }) : (index, index, index, tensor<8xf32>) -> tensor<8xf32>
    "func.return"(%4, %3) : (tensor<8xf32>, tensor<8xf32>) -> ()
  }) : () -> ()
}) : () -> ()

