"builtin.module"() ({
  "func.func"() <{function_type = (tensor<8xf32>, f32, index) -> tensor<8xf32>, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<8xf32>, %arg1: f32, %arg2: index):
    %0 = "arith.constant"() <{value = 0 : index}> : () -> index
    %1 = "scf.while"(%arg0) ({
    ^bb0(%arg6: tensor<8xf32>):
      %5 = "tensor.extract"(%arg6, %0) : (tensor<8xf32>, index) -> f32
      %6 = "arith.cmpf"(%5, %arg1) <{fastmath = #arith.fastmath<none>, predicate = 2 : i64}> : (f32, f32) -> i1
      "scf.condition"(%6, %arg6) : (i1, tensor<8xf32>) -> ()
    }, {
    ^bb0(%arg3: tensor<8xf32>):
      %2 = "tensor.empty"() : () -> tensor<8xf32>
      %3 = "linalg.exp"(%arg3, %2) <{operandSegmentSizes = array<i32: 1, 1>}> ({
      ^bb0(%arg4: f32, %arg5: f32):
        %4 = "math.exp"(%arg4) <{fastmath = #arith.fastmath<none>}> : (f32) -> f32
        "linalg.yield"(%4) : (f32) -> ()
      }) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      "scf.yield"(%3) : (tensor<8xf32>) -> ()
    }) : (tensor<8xf32>) -> tensor<8xf32>
    "func.return"(%1) : (tensor<8xf32>) -> ()
  }) : () -> ()
}) : () -> ()

