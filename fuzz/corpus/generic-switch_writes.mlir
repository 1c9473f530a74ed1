"builtin.module"() ({
  "func.func"() <{function_type = (tensor<8xf32>, f32, index) -> (f32, f32), sym_name = "main"}> ({
  ^bb0(%arg0: tensor<8xf32>, %arg1: f32, %arg2: index):
    %0 = "linalg.fill"(%arg1, %arg0) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg3: f32, %arg4: f32):
      "linalg.yield"(%arg3) : (f32) -> ()
    }) : (f32, tensor<8xf32>) -> tensor<8xf32>
    %1 = "scf.index_switch"(%arg2) <{cases = array<i64: 2>}> ({
      "scf.yield"(%0) : (tensor<8xf32>) -> ()
    }, {
      %5 = "tensor.insert"(%arg1, %0, %arg2) : (f32, tensor<8xf32>, index) -> tensor<8xf32>
      "scf.yield"(%5) : (tensor<8xf32>) -> ()
    }) : (index) -> tensor<8xf32>
    %2 = "tensor.insert"(%arg1, %1, %arg2) : (f32, tensor<8xf32>, index) -> tensor<8xf32>
    %3 = "tensor.extract"(%0, %arg2) : (tensor<8xf32>, index) -> f32
    %4 = "tensor.extract"(%2, %arg2) : (tensor<8xf32>, index) -> f32
    "func.return"(%3, %4) : (f32, f32) -> ()
  }) : () -> ()
}) : () -> ()

