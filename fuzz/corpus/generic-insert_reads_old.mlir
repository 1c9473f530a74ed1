"builtin.module"() ({
  "func.func"() <{function_type = (tensor<32xf32>, tensor<8xf32>) -> (tensor<32xf32>, tensor<8xf32>), sym_name = "main"}> ({
  ^bb0(%arg0: tensor<32xf32>, %arg1: tensor<8xf32>):
    %0 = "tensor.empty"() : () -> tensor<8xf32>
    %1 = "linalg.exp"(%arg1, %0) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg5: f32, %arg6: f32):
      %7 = "math.exp"(%arg5) <{fastmath = #arith.fastmath<none>}> : (f32) -> f32
      "linalg.yield"(%7) : (f32) -> ()
    }) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %2 = "tensor.extract_slice"(%arg0) <{operandSegmentSizes = array<i32: 1, 0, 0, 0>, static_offsets = array<i64: 8>, static_sizes = array<i64: 8>, static_strides = array<i64: 1>}> : (tensor<32xf32>) -> tensor<8xf32>
    %3 = "tensor.empty"() : () -> tensor<8xf32>
    %4 = "linalg.add"(%1, %2, %3) <{operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%arg2: f32, %arg3: f32, %arg4: f32):
      %6 = "arith.addf"(%arg2, %arg3) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%6) : (f32) -> ()
    }) : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %5 = "tensor.insert_slice"(%1, %arg0) <{operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>, static_offsets = array<i64: 8>, static_sizes = array<i64: 8>, static_strides = array<i64: 1>}> : (tensor<8xf32>, tensor<32xf32>) -> tensor<32xf32>
    "func.return"(%5, %4) : (tensor<32xf32>, tensor<8xf32>) -> ()
  }) : () -> ()
}) : () -> ()

