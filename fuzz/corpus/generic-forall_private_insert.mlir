#map = affine_map<(d0) -> (d0 * 8)>
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<32xf32>, %arg1: tensor<32xf32>):
    %0 = "scf.forall"(%arg0) <{operandSegmentSizes = array<i32: 0, 0, 0, 1>, staticLowerBound = array<i64: 0>, staticStep = array<i64: 1>, staticUpperBound = array<i64: 4>}> ({
    ^bb0(%arg2: index, %arg3: tensor<32xf32>):
      %1 = "affine.apply"(%arg2) <{map = #map}> : (index) -> index
      %2 = "tensor.extract_slice"(%arg1, %1) <{operandSegmentSizes = array<i32: 1, 1, 0, 0>, static_offsets = array<i64: -9223372036854775808>, static_sizes = array<i64: 8>, static_strides = array<i64: 1>}> : (tensor<32xf32>, index) -> tensor<8xf32>
      %3 = "tensor.empty"() : () -> tensor<8xf32>
      %4 = "linalg.exp"(%2, %3) <{operandSegmentSizes = array<i32: 1, 1>}> ({
      ^bb0(%arg4: f32, %arg5: f32):
        %5 = "math.exp"(%arg4) <{fastmath = #arith.fastmath<none>}> : (f32) -> f32
        "linalg.yield"(%5) : (f32) -> ()
      }) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      "scf.forall.in_parallel"() ({
        "tensor.parallel_insert_slice"(%4, %arg3, %1) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, static_offsets = array<i64: -9223372036854775808>, static_sizes = array<i64: 8>, static_strides = array<i64: 1>}> : (tensor<8xf32>, tensor<32xf32>, index) -> ()
      }) : () -> ()
    }) : (tensor<32xf32>) -> tensor<32xf32>
    "func.return"(%0) : (tensor<32xf32>) -> ()
  }) : () -> ()
}) : () -> ()

