"builtin.module"() ({
  "func.func"() <{function_type = (tensor<8xf32>, f32, f32, index) -> (tensor<8xf32>, tensor<8xf32>), sym_name = "f"}> ({
  ^bb0(%arg0: tensor<8xf32>, %arg1: f32, %arg2: f32, %arg3: index):
    %0 = "tensor.insert"(%arg1, %arg0, %arg3) : (f32, tensor<8xf32>, index) -> tensor<8xf32>
    %1 = "tensor.insert"(%arg2, %arg0, %arg3) : (f32, tensor<8xf32>, index) -> tensor<8xf32>
    "func.return"(%0, %1) : (tensor<8xf32>, tensor<8xf32>) -> ()
  }) : () -> ()
}) : () -> ()

