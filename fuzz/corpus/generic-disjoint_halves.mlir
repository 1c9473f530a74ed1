"builtin.module"() ({
  "func.func"() <{arg_attrs = [{bufferization.writable = true}, {}], function_type = (tensor<2048xf32>, index) -> tensor<2048xf32>, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<2048xf32>, %arg1: index):
    %0 = "arith.constant"() <{value = 0 : index}> : () -> index
    %1 = "arith.constant"() <{value = 1 : index}> : () -> index
    %2 = "tensor.extract_slice"(%arg0) <{operandSegmentSizes = array<i32: 1, 0, 0, 0>, static_offsets = array<i64: 1024>, static_sizes = array<i64: 1024>, static_strides = array<i64: 1>}> : (tensor<2048xf32>) -> tensor<1024xf32>
    %3 = "scf.for"(%0, %arg1, %1, %arg0) ({
    ^bb0(%arg2: index, %arg3: tensor<2048xf32>):
      %4 = "tensor.extract_slice"(%arg3) <{operandSegmentSizes = array<i32: 1, 0, 0, 0>, static_offsets = array<i64: 0>, static_sizes = array<i64: 1024>, static_strides = array<i64: 1>}> : (tensor<2048xf32>) -> tensor<1024xf32>
      %5 = "linalg.add"(%2, %4, %4) <{operandSegmentSizes = array<i32: 2, 1>}> ({
      ^bb0(%arg4: f32, %arg5: f32, %arg6: f32):
        %7 = "arith.addf"(%arg4, %arg5) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
        "linalg.yield"(%7) : (f32) -> ()
      }) : (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
      %6 = "tensor.insert_slice"(%5, %arg3) <{operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>, static_offsets = array<i64: 0>, static_sizes = array<i64: 1024>, static_strides = array<i64: 1>}> : (tensor<1024xf32>, tensor<2048xf32>) -> tensor<2048xf32>
      "scf.yield"(%6) : (tensor<2048xf32>) -> ()
    }) : (index, index, index, tensor<2048xf32>) -> tensor<2048xf32>
    "func.return"(%3) : (tensor<2048xf32>) -> ()
  }) : () -> ()
}) : () -> ()

