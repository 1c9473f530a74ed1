"builtin.module"() ({
  "func.func"() <{function_type = (i1, tensor<8xf32>, f32, index) -> tensor<8xf32>, sym_name = "main"}> ({
  ^bb0(%arg0: i1, %arg1: tensor<8xf32>, %arg2: f32, %arg3: index):
    "cf.cond_br"(%arg0, %arg1)[^bb1, ^bb2] <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (i1, tensor<8xf32>) -> ()
  ^bb1(%0: tensor<8xf32>):  // pred: ^bb0
    "cf.br"(%0)[^bb3] : (tensor<8xf32>) -> ()
  ^bb2:  // pred: ^bb0
    %1 = "tensor.empty"() : () -> tensor<8xf32>
    %2 = "linalg.fill"(%arg2, %1) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg4: f32, %arg5: f32):
      "linalg.yield"(%arg4) : (f32) -> ()
    }) : (f32, tensor<8xf32>) -> tensor<8xf32>
    "cf.br"(%2)[^bb3] : (tensor<8xf32>) -> ()
  ^bb3(%3: tensor<8xf32>):  // 2 preds: ^bb1, ^bb2
    %4 = "tensor.insert"(%arg2, %3, %arg3) : (f32, tensor<8xf32>, index) -> tensor<8xf32>
    "func.return"(%4) : (tensor<8xf32>) -> ()
  }) : () -> ()
}) : () -> ()

