"builtin.module"() ({
  "func.func"() <{function_type = (tensor<17x?xf32>, index, index) -> (tensor<17x?xf32>, tensor<17x4x?xf32>), sym_name = "main"}> ({
  ^bb0(%arg0: tensor<17x?xf32>, %arg1: index, %arg2: index):
    %0 = "tensor.extract_slice"(%arg0, %arg1) <{operandSegmentSizes = array<i32: 1, 0, 1, 0>, static_offsets = array<i64: 0, 0>, static_sizes = array<i64: 17, -9223372036854775808>, static_strides = array<i64: 1, 1>}> : (tensor<17x?xf32>, index) -> tensor<17x?xf32>
    %1 = "tensor.empty"(%arg1) : (index) -> tensor<68x?xf32>
    %2 = "tensor.empty"(%arg1) : (index) -> tensor<17x4x?xf32>
    %3 = "tensor.expand_shape"(%1, %arg1) <{reassociation = [[0, 1], [2]], static_output_shape = array<i64: 17, 4, -9223372036854775808>}> : (tensor<68x?xf32>, index) -> tensor<17x4x?xf32>
    %4 = "tensor.extract_slice"(%3, %arg2) <{operandSegmentSizes = array<i32: 1, 0, 1, 0>, static_offsets = array<i64: 0, 2, 0>, static_sizes = array<i64: 17, 2, -9223372036854775808>, static_strides = array<i64: 1, 1, 1>}> : (tensor<17x4x?xf32>, index) -> tensor<17x2x?xf32>
    %5 = "tensor.insert_slice"(%4, %2, %arg2, %arg2) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>, static_offsets = array<i64: 0, 0, -9223372036854775808>, static_sizes = array<i64: 17, 2, -9223372036854775808>, static_strides = array<i64: 1, 1, 1>}> : (tensor<17x2x?xf32>, tensor<17x4x?xf32>, index, index) -> tensor<17x4x?xf32>
    "func.return"(%0, %5) : (tensor<17x?xf32>, tensor<17x4x?xf32>) -> ()
  }) : () -> ()
}) : () -> ()

