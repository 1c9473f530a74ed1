"builtin.module"() ({
  "func.func"() <{function_type = (f32, index) -> tensor<?x4xf32>, sym_name = "splat"}> ({
  ^bb0(%arg14: f32, %arg15: index):
    %6 = "tensor.splat"(%arg14, %arg15) : (f32, index) -> tensor<?x4xf32>
    "func.return"(%6) : (tensor<?x4xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (f32, f32, f32) -> tensor<2x3xf32>, sym_name = "from_elements"}> ({
  ^bb0(%arg11: f32, %arg12: f32, %arg13: f32):
    %5 = "tensor.from_elements"(%arg11, %arg12, %arg13, %arg13, %arg12, %arg11) : (f32, f32, f32, f32, f32, f32) -> tensor<2x3xf32>
    "func.return"(%5) : (tensor<2x3xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<?xf32>, index, f32) -> tensor<?x4xf32>, sym_name = "generate"}> ({
  ^bb0(%arg6: tensor<?xf32>, %arg7: index, %arg8: f32):
    %2 = "tensor.generate"(%arg7) ({
    ^bb0(%arg9: index, %arg10: index):
      %3 = "tensor.extract"(%arg6, %arg9) : (tensor<?xf32>, index) -> f32
      %4 = "arith.addf"(%3, %arg8) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "tensor.yield"(%4) : (f32) -> ()
    }) : (index) -> tensor<?x4xf32>
    "func.return"(%2) : (tensor<?x4xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<3x4xf32>, tensor<3x5xf32>) -> tensor<3x9xf32>, sym_name = "concat"}> ({
  ^bb0(%arg4: tensor<3x4xf32>, %arg5: tensor<3x5xf32>):
    %1 = "tensor.concat"(%arg4, %arg5) <{dim = 1 : i64}> : (tensor<3x4xf32>, tensor<3x5xf32>) -> tensor<3x9xf32>
    "func.return"(%1) : (tensor<3x9xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<2x4xf32>, f32) -> tensor<5x7xf32>, sym_name = "pad"}> ({
  ^bb0(%arg0: tensor<2x4xf32>, %arg1: f32):
    %0 = "tensor.pad"(%arg0) <{operandSegmentSizes = array<i32: 1, 0, 0>, static_high = array<i64: 2, 2>, static_low = array<i64: 1, 1>}> ({
    ^bb0(%arg2: index, %arg3: index):
      "tensor.yield"(%arg1) : (f32) -> ()
    }) : (tensor<2x4xf32>) -> tensor<5x7xf32>
    "func.return"(%0) : (tensor<5x7xf32>) -> ()
  }) : () -> ()
}) : () -> ()

