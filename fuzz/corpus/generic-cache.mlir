#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
#map2 = affine_map<(d0, d1) -> (d0)>
"builtin.module"() ({
  "func.func"() <{arg_attrs = [{bufferization.writable = true}, {bufferization.writable = false}, {bufferization.writable = false}, {bufferization.writable = true}, {}], function_type = (tensor<4096x128xf32>, tensor<1x128xf32>, tensor<128xf32>, tensor<?xf32>, index) -> (tensor<4096x128xf32>, tensor<?xf32>), sym_name = "main"}> ({
  ^bb0(%arg0: tensor<4096x128xf32>, %arg1: tensor<1x128xf32>, %arg2: tensor<128xf32>, %arg3: tensor<?xf32>, %arg4: index):
    %0 = "tensor.extract_slice"(%arg0, %arg4) <{operandSegmentSizes = array<i32: 1, 0, 1, 0>, static_offsets = array<i64: 0, 0>, static_sizes = array<i64: -9223372036854775808, 128>, static_strides = array<i64: 1, 1>}> : (tensor<4096x128xf32>, index) -> tensor<?x128xf32>
    %1 = "tensor.insert_slice"(%arg1, %arg0, %arg4) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, static_offsets = array<i64: -9223372036854775808, 0>, static_sizes = array<i64: 1, 128>, static_strides = array<i64: 1, 1>}> : (tensor<1x128xf32>, tensor<4096x128xf32>, index) -> tensor<4096x128xf32>
    %2 = "linalg.matvec"(%0, %arg2, %arg3) <{operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%arg5: f32, %arg6: f32, %arg7: f32):
      %3 = "arith.mulf"(%arg5, %arg6) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      %4 = "arith.addf"(%arg7, %3) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%4) : (f32) -> ()
    }) {linalg.memoized_indexing_maps = [#map, #map1, #map2]} : (tensor<?x128xf32>, tensor<128xf32>, tensor<?xf32>) -> tensor<?xf32>
    "func.return"(%1, %2) : (tensor<4096x128xf32>, tensor<?xf32>) -> ()
  }) : () -> ()
}) : () -> ()

