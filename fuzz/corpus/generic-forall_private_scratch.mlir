#map = affine_map<(d0) -> (d0 * 8)>
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<64xf32>, f32) -> tensor<64xf32>, sym_name = "f"}> ({
  ^bb0(%arg0: tensor<64xf32>, %arg1: f32):
    %0 = "tensor.empty"() : () -> tensor<8xf32>
    %1 = "scf.forall"(%arg0) <{operandSegmentSizes = array<i32: 0, 0, 0, 1>, staticLowerBound = array<i64: 0>, staticStep = array<i64: 1>, staticUpperBound = array<i64: 8>}> ({
    ^bb0(%arg2: index, %arg3: tensor<64xf32>):
      %2 = "affine.apply"(%arg2) <{map = #map}> : (index) -> index
      %3 = "linalg.fill"(%arg1, %0) <{operandSegmentSizes = array<i32: 1, 1>}> ({
      ^bb0(%arg4: f32, %arg5: f32):
        "linalg.yield"(%arg4) : (f32) -> ()
      }) : (f32, tensor<8xf32>) -> tensor<8xf32>
      "scf.forall.in_parallel"() ({
        "tensor.parallel_insert_slice"(%3, %arg3, %2) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, static_offsets = array<i64: -9223372036854775808>, static_sizes = array<i64: 8>, static_strides = array<i64: 1>}> : (tensor<8xf32>, tensor<64xf32>, index) -> ()
      }) : () -> ()
    }) : (tensor<64xf32>) -> tensor<64xf32>
    "func.return"(%1) : (tensor<64xf32>) -> ()
  }) : () -> ()
}) : () -> ()

