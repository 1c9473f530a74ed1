"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x6xf32>, f32, index) -> (tensor<4x6xf32>, tensor<4x6xf32>), sym_name = "main"}> ({
  ^bb0(%arg0: tensor<4x6xf32>, %arg1: f32, %arg2: index):
    %0 = "arith.constant"() <{value = 0 : index}> : () -> index
    %1 = "arith.constant"() <{value = 1 : index}> : () -> index
    %2 = "scf.for"(%0, %arg2, %1, %arg0) ({
    ^bb0(%arg3: index, %arg4: tensor<4x6xf32>):
      %3 = "tensor.extract_slice"(%arg0, %arg3) <{operandSegmentSizes = array<i32: 1, 1, 0, 0>, static_offsets = array<i64: -9223372036854775808, 0>, static_sizes = array<i64: 1, 6>, static_strides = array<i64: 1, 1>}> : (tensor<4x6xf32>, index) -> tensor<6xf32>
      %4 = "linalg.fill"(%arg1, %3) <{operandSegmentSizes = array<i32: 1, 1>}> ({
      ^bb0(%arg5: f32, %arg6: f32):
        "linalg.yield"(%arg5) : (f32) -> ()
      }) : (f32, tensor<6xf32>) -> tensor<6xf32>
      %5 = "tensor.insert_slice"(%4, %arg0, %arg3) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, static_offsets = array<i64: -9223372036854775808, 0>, static_sizes = array<i64: 1, 6>, static_strides = array<i64: 1, 1>}> : (tensor<6xf32>, tensor<4x6xf32>, index) -> tensor<4x6xf32>
      "scf.yield"(%5) : (tensor<4x6xf32>) -> ()
    }) : (index, index, index, tensor<4x6xf32>) -> tensor<4x6xf32>
    "func.return"(%2, %arg0) : (tensor<4x6xf32>, tensor<4x6xf32>) -> ()
  }) : () -> ()
}) : () -> ()

