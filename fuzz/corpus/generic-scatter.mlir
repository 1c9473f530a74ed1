"builtin.module"() ({
  "func.func"() <{function_type = (tensor<8xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32>) -> (tensor<8xf32>, tensor<8xf32>), sym_name = "main"}> ({
  ^bb0(%arg0: tensor<8xf32>, %arg1: vector<4xindex>, %arg2: vector<4xi1>, %arg3: vector<4xf32>):
    %0 = "arith.constant"() <{value = 0 : index}> : () -> index
    %1 = "vector.scatter"(%arg0, %0, %arg1, %arg2, %arg3) : (tensor<8xf32>, index, vector<4xindex>, vector<4xi1>, vector<4xf32>) -> tensor<8xf32>
    "func.return"(%arg0, %1) : (tensor<8xf32>, tensor<8xf32>) -> ()
  }) : () -> ()
}) : () -> ()

