"builtin.module"() ({
  "func.func"() <{function_type = (tensor<?xf32>, index, f32) -> tensor<?xf32>, sym_name = "f"}> ({
  ^bb0(%arg0: tensor<?xf32>, %arg1: index, %arg2: f32):
    %0 = "arith.constant"() <{value = 0 : index}> : () -> index
    %1 = "arith.constant"() <{value = 1 : index}> : () -> index
    %2 = "scf.for"(%0, %arg1, %1, %arg0) ({
    ^bb0(%arg3: index, %arg4: tensor<?xf32>):
      %3 = "tensor.insert"(%arg2, %arg4, %arg3) : (f32, tensor<?xf32>, index) -> tensor<?xf32>
      "scf.yield"(%3) : (tensor<?xf32>) -> ()
    }) : (index, index, index, tensor<?xf32>) -> tensor<?xf32>
    "func.return"(%2) : (tensor<?xf32>) -> ()
  }) : () -> ()
}) : () -> ()

