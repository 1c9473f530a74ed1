"builtin.module"() ({
  "func.func"() <{function_type = (tensor<16x16xf32>, index, f32) -> tensor<16x16xf32>, sym_name = "f"}> ({
  ^bb0(%arg0: tensor<16x16xf32>, %arg1: index, %arg2: f32):
    %0 = "tensor.extract_slice"(%arg0, %arg1) <{operandSegmentSizes = array<i32: 1, 1, 0, 0>, static_offsets = array<i64: -9223372036854775808, 0>, static_sizes = array<i64: 4, 16>, static_strides = array<i64: 1, 1>}> : (tensor<16x16xf32>, index) -> tensor<4x16xf32>
    %1 = "linalg.fill"(%arg2, %0) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg3: f32, %arg4: f32):
      "linalg.yield"(%arg3) : (f32) -> ()
    }) : (f32, tensor<4x16xf32>) -> tensor<4x16xf32>
    %2 = "tensor.insert_slice"(%1, %arg0, %arg1) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, static_offsets = array<i64: -9223372036854775808, 0>, static_sizes = array<i64: 4, 16>, static_strides = array<i64: 1, 1>}> : (tensor<4x16xf32>, tensor<16x16xf32>, index) -> tensor<16x16xf32>
    "func.return"(%2) : (tensor<16x16xf32>) -> ()
  }) : () -> ()
}) : () -> ()

