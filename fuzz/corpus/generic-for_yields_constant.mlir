"builtin.module"() ({
  "func.func"() <{function_type = (tensor<8xf32>, f32, index) -> tensor<8xf32>, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<8xf32>, %arg1: f32, %arg2: index):
    %0 = "arith.constant"() <{value = 0 : index}> : () -> index
    %1 = "arith.constant"() <{value = 1 : index}> : () -> index
    %2 = "scf.for"(%0, %arg2, %1, %arg0) ({
    ^bb0(%arg3: index, %arg4: tensor<8xf32>):
      %3 = "arith.constant"() <{value = dense<1.000000e+00> : tensor<8xf32>}> : () -> tensor<8xf32>
      %4 = "tensor.insert"(%arg1, %arg4, %arg3) : (f32, tensor<8xf32>, index) -> tensor<8xf32>
      %5 = "tensor.extract"(%4, %0) : (tensor<8xf32>, index) -> f32
      "scf.yield"(%3) : (tensor<8xf32>) -> ()
    }) : (index, index, index, tensor<8xf32>) -> tensor<8xf32>
    "func.return"(%2) : (tensor<8xf32>) -> ()
  }) : () -> ()
}) : () -> ()

