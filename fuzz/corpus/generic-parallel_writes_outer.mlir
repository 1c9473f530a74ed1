"builtin.module"() ({
  "func.func"() <{function_type = (tensor<8xf32>, f32, index) -> f32, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<8xf32>, %arg1: f32, %arg2: index):
    %0 = "arith.constant"() <{value = 0 : index}> : () -> index
    %1 = "arith.constant"() <{value = 1 : index}> : () -> index
    %2 = "scf.parallel"(%0, %arg2, %1, %arg1) <{operandSegmentSizes = array<i32: 1, 1, 1, 1>}> ({
    ^bb0(%arg3: index):
      %3 = "tensor.extract"(%arg0, %0) : (tensor<8xf32>, index) -> f32
      %4 = "arith.addf"(%3, %arg1) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      %5 = "tensor.insert"(%4, %arg0, %0) : (f32, tensor<8xf32>, index) -> tensor<8xf32>
      %6 = "tensor.extract"(%5, %0) : (tensor<8xf32>, index) -> f32
      "scf.reduce"(%6) ({
      ^bb0(%arg4: f32, %arg5: f32):
        %7 = "arith.addf"(%arg4, %arg5) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
        "scf.reduce.return"(%7) : (f32) -> ()
      }) : (f32) -> ()
    }) : (index, index, index, f32) -> f32
    "func.return"(%2) : (f32) -> ()
  }) : () -> ()
}) : () -> ()

