"builtin.module"() ({
  "func.func"() <{arg_attrs = [{bufferization.writable = false}, {}, {}], function_type = (tensor<8xf32>, f32, index) -> tensor<8xf32>, sym_name = "f"}> ({
  ^bb0(%arg0: tensor<8xf32>, %arg1: f32, %arg2: index):
    %0 = "tensor.insert"(%arg1, %arg0, %arg2) : (f32, tensor<8xf32>, index) -> tensor<8xf32>
    "func.return"(%0) : (tensor<8xf32>) -> ()
  }) : () -> ()
}) : () -> ()

