"builtin.module"() ({
  "func.func"() <{function_type = (i1, tensor<8xf32>, f32, index) -> tensor<8xf32>, sym_name = "main"}> ({
  ^bb0(%arg0: i1, %arg1: tensor<8xf32>, %arg2: f32, %arg3: index):
    "cf.cond_br"(%arg0)[^bb1, ^bb2] <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (i1) -> ()
  ^bb1:  // pred: ^bb0
    %0 = "tensor.insert"(%arg2, %arg1, %arg3) : (f32, tensor<8xf32>, index) -> tensor<8xf32>
    "func.return"(%0) : (tensor<8xf32>) -> ()
  ^bb2:  // pred: ^bb0
    "func.return"(%arg1) : (tensor<8xf32>) -> ()
  }) : () -> ()
}) : () -> ()

