"builtin.module"() ({
  "func.func"() <{function_type = (tensor<8xf32>, f32, f32, index) -> (tensor<8xf32>, index), sym_name = "main"}> ({
  ^bb0(%arg0: tensor<8xf32>, %arg1: f32, %arg2: f32, %arg3: index):
    %0 = "arith.constant"() <{value = 0 : index}> : () -> index
    %1 = "arith.constant"() <{value = 1 : index}> : () -> index
    %2:2 = "scf.while"(%arg0, %0) ({
    ^bb0(%arg6: tensor<8xf32>, %arg7: index):
      %7 = "tensor.extract"(%arg6, %0) : (tensor<8xf32>, index) -> f32
      %8 = "arith.cmpf"(%7, %arg1) <{fastmath = #arith.fastmath<none>, predicate = 2 : i64}> : (f32, f32) -> i1
      "scf.condition"(%8, %arg6, %arg7) : (i1, tensor<8xf32>, index) -> ()
    }, {
    ^bb0(%arg4: tensor<8xf32>, %arg5: index):
      %3 = "tensor.extract"(%arg4, %0) : (tensor<8xf32>, index) -> f32
      %4 = "arith.mulf"(%3, %arg2) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      %5 = "tensor.insert"(%4, %arg4, %0) : (f32, tensor<8xf32>, index) -> tensor<8xf32>
      %6 = "arith.addi"(%arg5, %1) <{overflowFlags = #arith.overflow<none>}> : (index, index) -> index
      "scf.yield"(%5, %6) : (tensor<8xf32>, index) -> ()
    }) : (tensor<8xf32>, index) -> (tensor<8xf32>, index)
    "func.return"(%2#0, %2#1) : (tensor<8xf32>, index) -> ()
  }) : () -> ()
}) : () -> ()

