"builtin.module"() ({
  "func.func"() <{function_type = (f32) -> tensor<24xf32>, sym_name = "main"}> ({
  ^bb0(%arg0: f32):
    %0 = "tensor.empty"() : () -> tensor<6x6xf32>
    %1 = "linalg.fill"(%arg0, %0) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg1: f32, %arg2: f32):
      "linalg.yield"(%arg1) : (f32) -> ()
    }) : (f32, tensor<6x6xf32>) -> tensor<6x6xf32>
    %2 = "tensor.extract_slice"(%1) <{operandSegmentSizes = array<i32: 1, 0, 0, 0>, static_offsets = array<i64: 0, 0>, static_sizes = array<i64: 4, 6>, static_strides = array<i64: 1, 1>}> : (tensor<6x6xf32>) -> tensor<4x6xf32>
    %3 = "tensor.collapse_shape"(%2) <{reassociation = [[0, 1]]}> : (tensor<4x6xf32>) -> tensor<24xf32>
    "func.return"(%3) : (tensor<24xf32>) -> ()
  }) : () -> ()
}) : () -> ()

