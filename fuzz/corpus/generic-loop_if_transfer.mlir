#map = affine_map<(d0) -> (d0)>
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<?xf32>, index, i1) -> (tensor<?xf32>, tensor<?xf32>, f32), sym_name = "f"}> ({
  ^bb0(%arg0: tensor<?xf32>, %arg1: index, %arg2: i1):
    %0 = "arith.constant"() <{value = 0 : index}> : () -> index
    %1 = "arith.constant"() <{value = 1 : index}> : () -> index
    %2 = "arith.constant"() <{value = 0.000000e+00 : f32}> : () -> f32
    %3 = "tensor.empty"(%arg1) : (index) -> tensor<?xf32>
    %4 = "scf.for"(%0, %arg1, %1, %arg0) ({
    ^bb0(%arg5: index, %arg6: tensor<?xf32>):
      %10 = "tensor.insert"(%2, %arg6, %arg5) : (f32, tensor<?xf32>, index) -> tensor<?xf32>
      "scf.yield"(%10) : (tensor<?xf32>) -> ()
    }) : (index, index, index, tensor<?xf32>) -> tensor<?xf32>
    %5 = "scf.if"(%arg2) ({
      "scf.yield"(%4) : (tensor<?xf32>) -> ()
    }, {
      %9 = "linalg.fill"(%2, %3) <{operandSegmentSizes = array<i32: 1, 1>}> ({
      ^bb0(%arg3: f32, %arg4: f32):
        "linalg.yield"(%arg3) : (f32) -> ()
      }) : (f32, tensor<?xf32>) -> tensor<?xf32>
      "scf.yield"(%9) : (tensor<?xf32>) -> ()
    }) : (i1) -> tensor<?xf32>
    %6 = "vector.transfer_read"(%5, %0, %2) <{in_bounds = [false], operandSegmentSizes = array<i32: 1, 1, 1, 0>, permutation_map = #map}> : (tensor<?xf32>, index, f32) -> vector<4xf32>
    %7 = "vector.transfer_write"(%6, %4, %arg1) <{in_bounds = [false], operandSegmentSizes = array<i32: 1, 1, 1, 0>, permutation_map = #map}> : (vector<4xf32>, tensor<?xf32>, index) -> tensor<?xf32>
    %8 = "tensor.extract"(%4, %0) : (tensor<?xf32>, index) -> f32
    "func.return"(%7, %5, %8) : (tensor<?xf32>, tensor<?xf32>, f32) -> ()
  }) : () -> ()
}) : () -> ()

