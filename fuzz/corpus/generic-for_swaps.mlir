"builtin.module"() ({
  "func.func"() <{function_type = (tensor<8xf32>, tensor<8xf32>, index) -> (tensor<8xf32>, tensor<8xf32>), sym_name = "f"}> ({
  ^bb0(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>, %arg2: index):
    %0 = "arith.constant"() <{value = 0 : index}> : () -> index
    %1 = "arith.constant"() <{value = 1 : index}> : () -> index
    %2:2 = "scf.for"(%0, %arg2, %1, %arg0, %arg1) ({
    ^bb0(%arg3: index, %arg4: tensor<8xf32>, %arg5: tensor<8xf32>):
      "scf.yield"(%arg5, %arg4) : (tensor<8xf32>, tensor<8xf32>) -> ()
    }) : (index, index, index, tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
    "func.return"(%2#0, %2#1) : (tensor<8xf32>, tensor<8xf32>) -> ()
  }) : () -> ()
}) : () -> ()

