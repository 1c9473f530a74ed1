"builtin.module"() ({
  "func.func"() <{arg_attrs = [{bufferization.writable = false}, {bufferization.writable = false}], function_type = (tensor<1024xf32>, tensor<1024xf32>) -> tensor<2048xf32>, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<1024xf32>, %arg1: tensor<1024xf32>):
    %0 = "tensor.empty"() : () -> tensor<1024xf32>
    %1 = "linalg.add"(%arg0, %arg0, %0) <{operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%arg5: f32, %arg6: f32, %arg7: f32):
      %8 = "arith.addf"(%arg5, %arg6) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%8) : (f32) -> ()
    }) : (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
    %2 = "tensor.empty"() : () -> tensor<1024xf32>
    %3 = "linalg.mul"(%arg1, %arg1, %2) <{operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%arg2: f32, %arg3: f32, %arg4: f32):
      %7 = "arith.mulf"(%arg2, %arg3) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%7) : (f32) -> ()
    }) : (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
    %4 = "tensor.empty"() : () -> tensor<2048xf32>
    %5 = "tensor.insert_slice"(%1, %4) <{operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>, static_offsets = array<i64: 0>, static_sizes = array<i64: 1024>, static_strides = array<i64: 1>}> : (tensor<1024xf32>, tensor<2048xf32>) -> tensor<2048xf32>
    %6 = "tensor.insert_slice"(%3, %5) <{operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>, static_offsets = array<i64: 1024>, static_sizes = array<i64: 1024>, static_strides = array<i64: 1>}> : (tensor<1024xf32>, tensor<2048xf32>) -> tensor<2048xf32>
    "func.return"(%6) : (tensor<2048xf32>) -> ()
  }) : () -> ()
}) : () -> ()

