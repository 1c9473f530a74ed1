"builtin.module"() ({
  "func.func"() <{function_type = (tensor<8xf32>, f32, index) -> f32, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<8xf32>, %arg1: f32, %arg2: index):
    %0 = "arith.constant"() <{value = 0 : index}> : () -> index
    %1 = "arith.constant"() <{value = 1 : index}> : () -> index
    "cf.br"(%0, %arg1)[^bb1] : (index, f32) -> ()
  ^bb1(%2: index, %3: f32):  // 2 preds: ^bb0, ^bb2
    %4 = "arith.cmpi"(%2, %arg2) <{predicate = 2 : i64}> : (index, index) -> i1
    "cf.cond_br"(%4)[^bb2, ^bb3] <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (i1) -> ()
  ^bb2:  // pred: ^bb1
    %5 = "tensor.insert"(%3, %arg0, %2) : (f32, tensor<8xf32>, index) -> tensor<8xf32>
    %6 = "tensor.extract"(%5, %0) : (tensor<8xf32>, index) -> f32
    %7 = "arith.addi"(%2, %1) <{overflowFlags = #arith.overflow<none>}> : (index, index) -> index
    "cf.br"(%7, %6)[^bb1] : (index, f32) -> ()
  ^bb3:  // pred: ^bb1
    "func.return"(%3) : (f32) -> ()
  }) : () -> ()
}) : () -> ()

