"builtin.module"() ({
  "func.func"() <{function_type = (tensor<8xf32>, tensor<8xf32>, f32, i1, index) -> (tensor<8xf32>, f32), sym_name = "f"}> ({
  ^bb0(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>, %arg2: f32, %arg3: i1, %arg4: index):
    %0 = "arith.select"(%arg3, %arg0, %arg1) : (i1, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %1 = "tensor.insert"(%arg2, %0, %arg4) : (f32, tensor<8xf32>, index) -> tensor<8xf32>
    %2 = "tensor.extract"(%arg1, %arg4) : (tensor<8xf32>, index) -> f32
    "func.return"(%1, %2) : (tensor<8xf32>, f32) -> ()
  }) : () -> ()
}) : () -> ()

