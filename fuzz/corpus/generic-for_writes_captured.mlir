"builtin.module"() ({
  "func.func"() <{function_type = (tensor<8xf32>, f32) -> f32, sym_name = "f"}> ({
  ^bb0(%arg0: tensor<8xf32>, %arg1: f32):
    %0 = "arith.constant"() <{value = 0 : index}> : () -> index
    %1 = "arith.constant"() <{value = 1 : index}> : () -> index
    %2 = "arith.constant"() <{value = 8 : index}> : () -> index
    %3 = "scf.for"(%0, %2, %1, %arg1) ({
    ^bb0(%arg2: index, %arg3: f32):
      %4 = "tensor.extract"(%arg0, %arg2) : (tensor<8xf32>, index) -> f32
      %5 = "tensor.insert"(%arg3, %arg0, %0) : (f32, tensor<8xf32>, index) -> tensor<8xf32>
      %6 = "tensor.extract"(%5, %arg2) : (tensor<8xf32>, index) -> f32
      %7 = "arith.addf"(%4, %6) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "scf.yield"(%7) : (f32) -> ()
    }) : (index, index, index, f32) -> f32
    "func.return"(%3) : (f32) -> ()
  }) : () -> ()
}) : () -> ()

