"builtin.module"() ({
  "func.func"() <{function_type = (i32, tensor<8xf32>, f32, index) -> (tensor<8xf32>, f32), sym_name = "main"}> ({
  ^bb0(%arg0: i32, %arg1: tensor<8xf32>, %arg2: f32, %arg3: index):
    %0 = "tensor.extract"(%arg1, %arg3) : (tensor<8xf32>, index) -> f32
    "cf.switch"(%arg0, %arg1, %arg1, %arg3)[^bb1, ^bb2] <{case_operand_segments = array<i32: 2>, case_values = dense<1> : vector<1xi32>, operandSegmentSizes = array<i32: 1, 1, 2>}> : (i32, tensor<8xf32>, tensor<8xf32>, index) -> ()
  ^bb1(%1: tensor<8xf32>):  // 2 preds: ^bb0, ^bb2
    "func.return"(%1, %0) : (tensor<8xf32>, f32) -> ()
  ^bb2(%2: tensor<8xf32>, %3: index):  // pred: ^bb0
    %4 = "tensor.insert"(%arg2, %2, %3) : (f32, tensor<8xf32>, index) -> tensor<8xf32>
    "cf.br"(%4)[^bb1] : (tensor<8xf32>) -> ()
  }) : () -> ()
}) : () -> ()

