#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<64x64xf32>, tensor<64x32xf32>, tensor<32x64xf32>) -> tensor<64x64xf32>, sym_name = "f"}> ({
  ^bb0(%arg0: tensor<64x64xf32>, %arg1: tensor<64x32xf32>, %arg2: tensor<32x64xf32>):
    %0 = "arith.constant"() <{value = 0 : index}> : () -> index
    %1 = "arith.constant"() <{value = 16 : index}> : () -> index
    %2 = "arith.constant"() <{value = 64 : index}> : () -> index
    %3 = "scf.for"(%0, %2, %1, %arg0) ({
    ^bb0(%arg3: index, %arg4: tensor<64x64xf32>):
      %4 = "scf.for"(%0, %2, %1, %arg4) ({
      ^bb0(%arg5: index, %arg6: tensor<64x64xf32>):
        %5 = "tensor.extract_slice"(%arg1, %arg3) <{operandSegmentSizes = array<i32: 1, 1, 0, 0>, static_offsets = array<i64: -9223372036854775808, 0>, static_sizes = array<i64: 16, 32>, static_strides = array<i64: 1, 1>}> : (tensor<64x32xf32>, index) -> tensor<16x32xf32>
        %6 = "tensor.extract_slice"(%arg2, %arg5) <{operandSegmentSizes = array<i32: 1, 1, 0, 0>, static_offsets = array<i64: 0, -9223372036854775808>, static_sizes = array<i64: 32, 16>, static_strides = array<i64: 1, 1>}> : (tensor<32x64xf32>, index) -> tensor<32x16xf32>
        %7 = "tensor.extract_slice"(%arg6, %arg3, %arg5) <{operandSegmentSizes = array<i32: 1, 2, 0, 0>, static_offsets = array<i64: -9223372036854775808, -9223372036854775808>, static_sizes = array<i64: 16, 16>, static_strides = array<i64: 1, 1>}> : (tensor<64x64xf32>, index, index) -> tensor<16x16xf32>
        %8 = "linalg.matmul"(%5, %6, %7) <{indexing_maps = [#map, #map1, #map2], operandSegmentSizes = array<i32: 2, 1>}> ({
        ^bb0(%arg7: f32, %arg8: f32, %arg9: f32):
          %10 = "arith.mulf"(%arg7, %arg8) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
          %11 = "arith.addf"(%arg9, %10) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
          "linalg.yield"(%11) : (f32) -> ()
        }) : (tensor<16x32xf32>, tensor<32x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
        %9 = "tensor.insert_slice"(%8, %arg6, %arg3, %arg5) <{operandSegmentSizes = array<i32: 1, 1, 2, 0, 0>, static_offsets = array<i64: -9223372036854775808, -9223372036854775808>, static_sizes = array<i64: 16, 16>, static_strides = array<i64: 1, 1>}> : (tensor<16x16xf32>, tensor<64x64xf32>, index, index) -> tensor<64x64xf32>
        "scf.yield"(%9) : (tensor<64x64xf32>) -> ()
      }) : (index, index, index, tensor<64x64xf32>) -> tensor<64x64xf32>
      "scf.yield"(%4) : (tensor<64x64xf32>) -> ()
    }) : (index, index, index, tensor<64x64xf32>) -> tensor<64x64xf32>
    "func.return"(%3) : (tensor<64x64xf32>) -> ()
  }) : () -> ()
}) : () -> ()

