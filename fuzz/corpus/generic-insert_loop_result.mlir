"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x32xf32>, f32, index, index) -> tensor<4x32xf32>, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<4x32xf32>, %arg1: f32, %arg2: index, %arg3: index):
    %0 = "arith.constant"() <{value = 0 : index}> : () -> index
    %1 = "arith.constant"() <{value = 1 : index}> : () -> index
    %2 = "tensor.empty"() : () -> tensor<8xf32>
    %3 = "linalg.fill"(%arg1, %2) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg8: f32, %arg9: f32):
      "linalg.yield"(%arg8) : (f32) -> ()
    }) : (f32, tensor<8xf32>) -> tensor<8xf32>
    %4 = "scf.for"(%0, %arg3, %1, %3) ({
    ^bb0(%arg4: index, %arg5: tensor<8xf32>):
      %7 = "linalg.exp"(%arg5, %arg5) <{operandSegmentSizes = array<i32: 1, 1>}> ({
      ^bb0(%arg6: f32, %arg7: f32):
        %8 = "math.exp"(%arg6) <{fastmath = #arith.fastmath<none>}> : (f32) -> f32
        "linalg.yield"(%8) : (f32) -> ()
      }) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      "scf.yield"(%7) : (tensor<8xf32>) -> ()
    }) : (index, index, index, tensor<8xf32>) -> tensor<8xf32>
    %5 = "arith.addi"(%arg2, %1) <{overflowFlags = #arith.overflow<none>}> : (index, index) -> index
    %6 = "tensor.insert_slice"(%4, %arg0, %5) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, static_offsets = array<i64: -9223372036854775808, 8>, static_sizes = array<i64: 1, 8>, static_strides = array<i64: 1, 1>}> : (tensor<8xf32>, tensor<4x32xf32>, index) -> tensor<4x32xf32>
    "func.return"(%6) : (tensor<4x32xf32>) -> ()
  }) : () -> ()
}) : () -> ()

