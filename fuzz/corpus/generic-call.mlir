"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1024xf32>, tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>), sym_name = "f", sym_visibility = "private"}> ({
  ^bb0(%arg3: tensor<1024xf32>, %arg4: tensor<1024xf32>):
    %3 = "tensor.empty"() : () -> tensor<1024xf32>
    %4 = "linalg.add"(%arg3, %arg4, %3) <{operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%arg5: f32, %arg6: f32, %arg7: f32):
      %5 = "arith.addf"(%arg5, %arg6) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%5) : (f32) -> ()
    }) : (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
    "func.return"(%arg3, %4) : (tensor<1024xf32>, tensor<1024xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{bufferization.writable = false}, {bufferization.writable = false}, {}], function_type = (tensor<1024xf32>, tensor<1024xf32>, index) -> (f32, f32), sym_name = "main"}> ({
  ^bb0(%arg0: tensor<1024xf32>, %arg1: tensor<1024xf32>, %arg2: index):
    %0:2 = "func.call"(%arg0, %arg1) <{callee = @f}> : (tensor<1024xf32>, tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>)
    %1 = "tensor.extract"(%0#0, %arg2) : (tensor<1024xf32>, index) -> f32
    %2 = "tensor.extract"(%0#1, %arg2) : (tensor<1024xf32>, index) -> f32
    "func.return"(%1, %2) : (f32, f32) -> ()
  }) : () -> ()
}) : () -> ()

