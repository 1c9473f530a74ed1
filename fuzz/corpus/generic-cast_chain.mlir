"builtin.module"() ({
  "func.func"() <{function_type = (tensor<?xf32>, f32, index) -> (tensor<?xf32>, f32), sym_name = "f"}> ({
  ^bb0(%arg0: tensor<?xf32>, %arg1: f32, %arg2: index):
    %0 = "tensor.cast"(%arg0) : (tensor<?xf32>) -> tensor<8xf32>
    %1 = "tensor.insert"(%arg1, %0, %arg2) : (f32, tensor<8xf32>, index) -> tensor<8xf32>
    %2 = "tensor.cast"(%1) : (tensor<8xf32>) -> tensor<?xf32>
    %3 = "tensor.extract"(%arg0, %arg2) : (tensor<?xf32>, index) -> f32
    "func.return"(%2, %3) : (tensor<?xf32>, f32) -> ()
  }) : () -> ()
}) : () -> ()

