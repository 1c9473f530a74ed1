"builtin.module"() ({
  "func.func"() <{function_type = (tensor<8xf32>, f32, i1) -> tensor<8xf32>, sym_name = "f"}> ({
  ^bb0(%arg0: tensor<8xf32>, %arg1: f32, %arg2: i1):
    %0 = "scf.if"(%arg2) ({
      %1 = "linalg.fill"(%arg1, %arg0) <{operandSegmentSizes = array<i32: 1, 1>}> ({
      ^bb0(%arg3: f32, %arg4: f32):
        "linalg.yield"(%arg3) : (f32) -> ()
      }) : (f32, tensor<8xf32>) -> tensor<8xf32>
      "scf.yield"(%1) : (tensor<8xf32>) -> ()
    }, {
      "scf.yield"(%arg0) : (tensor<8xf32>) -> ()
    }) : (i1) -> tensor<8xf32>
    "func.return"(%0) : (tensor<8xf32>) -> ()
  }) : () -> ()
}) : () -> ()

