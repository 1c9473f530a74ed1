"builtin.module"() ({
  "func.func"() <{arg_attrs = [{bufferization.writable = true}, {bufferization.writable = true}, {}], function_type = (tensor<1024xf32>, tensor<1024xf32>, index) -> (tensor<1024xf32>, tensor<1024xf32>), sym_name = "main"}> ({
  ^bb0(%arg0: tensor<1024xf32>, %arg1: tensor<1024xf32>, %arg2: index):
    %0 = "arith.constant"() <{value = 0 : index}> : () -> index
    %1 = "arith.constant"() <{value = 1 : index}> : () -> index
    %2:2 = "scf.for"(%0, %arg2, %1, %arg0, %arg1) ({
    ^bb0(%arg3: index, %arg4: tensor<1024xf32>, %arg5: tensor<1024xf32>):
      %3 = "linalg.add"(%arg4, %arg4, %arg5) <{operandSegmentSizes = array<i32: 2, 1>}> ({
      ^bb0(%arg6: f32, %arg7: f32, %arg8: f32):
        %4 = "arith.addf"(%arg6, %arg7) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
        "linalg.yield"(%4) : (f32) -> ()
      }) : (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
      "scf.yield"(%3, %arg4) : (tensor<1024xf32>, tensor<1024xf32>) -> ()
    }) : (index, index, index, tensor<1024xf32>, tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>)
    "func.return"(%2#0, %2#1) : (tensor<1024xf32>, tensor<1024xf32>) -> ()
  }) : () -> ()
}) : () -> ()

