"builtin.module"() ({
  "func.func"() <{arg_attrs = [{bufferization.writable = true}, {}, {}], function_type = (tensor<1024xf32>, f32, f32) -> tensor<1024xf32>, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<1024xf32>, %arg1: f32, %arg2: f32):
    %0 = "arith.constant"() <{value = 0 : index}> : () -> index
    %1 = "scf.while"(%arg0) ({
    ^bb0(%arg4: tensor<1024xf32>):
      %5 = "tensor.extract"(%arg4, %0) : (tensor<1024xf32>, index) -> f32
      %6 = "arith.cmpf"(%5, %arg1) <{fastmath = #arith.fastmath<none>, predicate = 2 : i64}> : (f32, f32) -> i1
      "scf.condition"(%6, %arg4) : (i1, tensor<1024xf32>) -> ()
    }, {
    ^bb0(%arg3: tensor<1024xf32>):
      %2 = "tensor.extract"(%arg3, %0) : (tensor<1024xf32>, index) -> f32
      %3 = "arith.mulf"(%2, %arg2) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      %4 = "tensor.insert"(%3, %arg3, %0) : (f32, tensor<1024xf32>, index) -> tensor<1024xf32>
      "scf.yield"(%4) : (tensor<1024xf32>) -> ()
    }) : (tensor<1024xf32>) -> tensor<1024xf32>
    "func.return"(%1) : (tensor<1024xf32>) -> ()
  }) : () -> ()
}) : () -> ()

