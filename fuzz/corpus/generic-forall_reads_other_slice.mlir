#map = affine_map<(d0) -> (d0 * 4)>
#map1 = affine_map<(d0) -> (d0 * -4 + 12)>
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<16xf32>) -> tensor<16xf32>, sym_name = "f"}> ({
  ^bb0(%arg0: tensor<16xf32>):
    %0 = "arith.constant"() <{value = 0.000000e+00 : f32}> : () -> f32
    %1 = "scf.forall"(%arg0) <{operandSegmentSizes = array<i32: 0, 0, 0, 1>, staticLowerBound = array<i64: 0>, staticStep = array<i64: 1>, staticUpperBound = array<i64: 4>}> ({
    ^bb0(%arg1: index, %arg2: tensor<16xf32>):
      %2 = "affine.apply"(%arg1) <{map = #map}> : (index) -> index
      %3 = "affine.apply"(%arg1) <{map = #map1}> : (index) -> index
      %4 = "tensor.extract_slice"(%arg2, %3) <{operandSegmentSizes = array<i32: 1, 1, 0, 0>, static_offsets = array<i64: -9223372036854775808>, static_sizes = array<i64: 4>, static_strides = array<i64: 1>}> : (tensor<16xf32>, index) -> tensor<4xf32>
      %5 = "tensor.extract_slice"(%arg2, %2) <{operandSegmentSizes = array<i32: 1, 1, 0, 0>, static_offsets = array<i64: -9223372036854775808>, static_sizes = array<i64: 4>, static_strides = array<i64: 1>}> : (tensor<16xf32>, index) -> tensor<4xf32>
      %6 = "linalg.fill"(%0, %5) <{operandSegmentSizes = array<i32: 1, 1>}> ({
      ^bb0(%arg6: f32, %arg7: f32):
        "linalg.yield"(%arg6) : (f32) -> ()
      }) : (f32, tensor<4xf32>) -> tensor<4xf32>
      %7 = "linalg.add"(%4, %6, %4) <{operandSegmentSizes = array<i32: 2, 1>}> ({
      ^bb0(%arg3: f32, %arg4: f32, %arg5: f32):
        %8 = "arith.addf"(%arg3, %arg4) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
        "linalg.yield"(%8) : (f32) -> ()
      }) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "scf.forall.in_parallel"() ({
        "tensor.parallel_insert_slice"(%7, %arg2, %2) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, static_offsets = array<i64: -9223372036854775808>, static_sizes = array<i64: 4>, static_strides = array<i64: 1>}> : (tensor<4xf32>, tensor<16xf32>, index) -> ()
      }) : () -> ()
    }) : (tensor<16xf32>) -> tensor<16xf32>
    "func.return"(%1) : (tensor<16xf32>) -> ()
  }) : () -> ()
}) : () -> ()

