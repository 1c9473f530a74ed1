"builtin.module"() ({
  "func.func"() <{function_type = (tensor<8xf32>, f32, i1, index) -> (tensor<8xf32>, f32), sym_name = "f"}> ({
  ^bb0(%arg0: tensor<8xf32>, %arg1: f32, %arg2: i1, %arg3: index):
    %0 = "scf.if"(%arg2) ({
      %2 = "tensor.insert"(%arg1, %arg0, %arg3) : (f32, tensor<8xf32>, index) -> tensor<8xf32>
      "scf.yield"(%2) : (tensor<8xf32>) -> ()
    }, {
      "scf.yield"(%arg0) : (tensor<8xf32>) -> ()
    }) : (i1) -> tensor<8xf32>
    %1 = "tensor.extract"(%arg0, %arg3) : (tensor<8xf32>, index) -> f32
    "func.return"(%0, %1) : (tensor<8xf32>, f32) -> ()
  }) : () -> ()
}) : () -> ()

