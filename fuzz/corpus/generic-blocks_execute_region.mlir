"builtin.module"() ({
  "func.func"() <{function_type = (i1, tensor<8xf32>, f32, index) -> (tensor<8xf32>, f32), sym_name = "main"}> ({
  ^bb0(%arg0: i1, %arg1: tensor<8xf32>, %arg2: f32, %arg3: index):
    %0 = "scf.execute_region"() ({
      "cf.cond_br"(%arg0, %arg1)[^bb1, ^bb2] <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (i1, tensor<8xf32>) -> ()
    ^bb1(%2: tensor<8xf32>):  // pred: ^bb0
      %3 = "tensor.insert"(%arg2, %2, %arg3) : (f32, tensor<8xf32>, index) -> tensor<8xf32>
      "cf.br"(%3)[^bb3] : (tensor<8xf32>) -> ()
    ^bb2:  // pred: ^bb0
      %4 = "bufferization.alloc_tensor"() <{operandSegmentSizes = array<i32: 0, 0, 0>}> : () -> tensor<8xf32>
      "cf.br"(%4)[^bb3] : (tensor<8xf32>) -> ()
    ^bb3(%5: tensor<8xf32>):  // 2 preds: ^bb1, ^bb2
      "scf.yield"(%5) : (tensor<8xf32>) -> ()
    }) : () -> tensor<8xf32>
    %1 = "tensor.extract"(%0, %arg3) : (tensor<8xf32>, index) -> f32
    "func.return"(%0, %1) : (tensor<8xf32>, f32) -> ()
  }) : () -> ()
}) : () -> ()

