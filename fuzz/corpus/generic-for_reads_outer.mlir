"builtin.module"() ({
  "func.func"() <{function_type = (tensor<8xf32>) -> tensor<8xf32>, sym_name = "f"}> ({
  ^bb0(%arg0: tensor<8xf32>):
    %0 = "arith.constant"() <{value = 0 : index}> : () -> index
    %1 = "arith.constant"() <{value = 1 : index}> : () -> index
    %2 = "arith.constant"() <{value = 8 : index}> : () -> index
    %3 = "scf.for"(%0, %2, %1, %arg0) ({
    ^bb0(%arg1: index, %arg2: tensor<8xf32>):
      %4 = "tensor.extract"(%arg0, %arg1) : (tensor<8xf32>, index) -> f32
      %5 = "tensor.insert"(%4, %arg2, %0) : (f32, tensor<8xf32>, index) -> tensor<8xf32>
      "scf.yield"(%5) : (tensor<8xf32>) -> ()
    }) : (index, index, index, tensor<8xf32>) -> tensor<8xf32>
    "func.return"(%3) : (tensor<8xf32>) -> ()
  }) : () -> ()
}) : () -> ()

