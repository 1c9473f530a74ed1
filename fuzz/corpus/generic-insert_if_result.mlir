"builtin.module"() ({
  "func.func"() <{function_type = (tensor<32xf32>, i1, f32, f32) -> tensor<32xf32>, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<32xf32>, %arg1: i1, %arg2: f32, %arg3: f32):
    %0 = "scf.if"(%arg1) ({
      %4 = "tensor.empty"() : () -> tensor<8xf32>
      %5 = "linalg.fill"(%arg2, %4) <{operandSegmentSizes = array<i32: 1, 1>}> ({
      ^bb0(%arg6: f32, %arg7: f32):
        "linalg.yield"(%arg6) : (f32) -> ()
      }) : (f32, tensor<8xf32>) -> tensor<8xf32>
      "scf.yield"(%5) : (tensor<8xf32>) -> ()
    }, {
      %2 = "tensor.empty"() : () -> tensor<8xf32>
      %3 = "linalg.fill"(%arg3, %2) <{operandSegmentSizes = array<i32: 1, 1>}> ({
      ^bb0(%arg4: f32, %arg5: f32):
        "linalg.yield"(%arg4) : (f32) -> ()
      }) : (f32, tensor<8xf32>) -> tensor<8xf32>
      "scf.yield"(%3) : (tensor<8xf32>) -> ()
    }) : (i1) -> tensor<8xf32>
    %1 = "tensor.insert_slice"(%0, %arg0) <{operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>, static_offsets = array<i64: 5>, static_sizes = array<i64: 8>, static_strides = array<i64: 1>}> : (tensor<8xf32>, tensor<32xf32>) -> tensor<32xf32>
    "func.return"(%1) : (tensor<32xf32>) -> ()
  }) : () -> ()
}) : () -> ()

