"builtin.module"() ({
  "func.func"() <{function_type = (tensor<8xf32>, index) -> f32, sym_name = "reads", sym_visibility = "private"}> ({
  ^bb0(%arg9: tensor<8xf32>, %arg10: index):
    %7 = "tensor.extract"(%arg9, %arg10) : (tensor<8xf32>, index) -> f32
    "func.return"(%7) : (f32) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<8xf32>, f32, index) -> tensor<8xf32>, sym_name = "writes", sym_visibility = "private"}> ({
  ^bb0(%arg6: tensor<8xf32>, %arg7: f32, %arg8: index):
    %6 = "tensor.insert"(%arg7, %arg6, %arg8) : (f32, tensor<8xf32>, index) -> tensor<8xf32>
    "func.return"(%6) : (tensor<8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (f32) -> tensor<8xf32>, sym_name = "makes", sym_visibility = "private"}> ({
  ^bb0(%arg3: f32):
    %4 = "tensor.empty"() : () -> tensor<8xf32>
    %5 = "linalg.fill"(%arg3, %4) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg4: f32, %arg5: f32):
      "linalg.yield"(%arg4) : (f32) -> ()
    }) : (f32, tensor<8xf32>) -> tensor<8xf32>
    "func.return"(%5) : (tensor<8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<8xf32>, f32, index) -> (tensor<8xf32>, f32, tensor<8xf32>), sym_name = "main"}> ({
  ^bb0(%arg0: tensor<8xf32>, %arg1: f32, %arg2: index):
    %0 = "func.call"(%arg0, %arg1, %arg2) <{callee = @writes}> : (tensor<8xf32>, f32, index) -> tensor<8xf32>
    %1 = "func.call"(%arg0, %arg2) <{callee = @reads}> : (tensor<8xf32>, index) -> f32
    %2 = "func.call"(%1) <{callee = @makes}> : (f32) -> tensor<8xf32>
    %3 = "func.call"(%2, %1, %arg2) <{callee = @writes}> : (tensor<8xf32>, f32, index) -> tensor<8xf32>
    "func.return"(%0, %1, %3) : (tensor<8xf32>, f32, tensor<8xf32>) -> ()
  }) : () -> ()
}) : () -> ()

