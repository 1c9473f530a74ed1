"builtin.module"() ({
  "func.func"() <{function_type = (tensor<8xf32>, f32, i1, index) -> f32, sym_name = "f"}> ({
  ^bb0(%arg0: tensor<8xf32>, %arg1: f32, %arg2: i1, %arg3: index):
    %0 = "scf.if"(%arg2) ({
      %2 = "tensor.insert"(%arg1, %arg0, %arg3) : (f32, tensor<8xf32>, index) -> tensor<8xf32>
      %3 = "tensor.extract"(%2, %arg3) : (tensor<8xf32>, index) -> f32
      "scf.yield"(%3) : (f32) -> ()
    }, {
      %1 = "tensor.extract"(%arg0, %arg3) : (tensor<8xf32>, index) -> f32
      "scf.yield"(%1) : (f32) -> ()
    }) : (i1) -> f32
    "func.return"(%0) : (f32) -> ()
  }) : () -> ()
}) : () -> ()

