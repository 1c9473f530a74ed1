#map = affine_map<(d0) -> (d0)>
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<8xf32>, vector<8xf32>, index, f32) -> (tensor<8xf32>, vector<8xf32>), sym_name = "f"}> ({
  ^bb0(%arg0: tensor<8xf32>, %arg1: vector<8xf32>, %arg2: index, %arg3: f32):
    %0 = "arith.constant"() <{value = 0 : index}> : () -> index
    %1 = "vector.transfer_write"(%arg1, %arg0, %0) <{in_bounds = [true], operandSegmentSizes = array<i32: 1, 1, 1, 0>, permutation_map = #map}> : (vector<8xf32>, tensor<8xf32>, index) -> tensor<8xf32>
    %2 = "vector.transfer_write"(%arg1, %1, %arg2) <{in_bounds = [false], operandSegmentSizes = array<i32: 1, 1, 1, 0>, permutation_map = #map}> : (vector<8xf32>, tensor<8xf32>, index) -> tensor<8xf32>
    %3 = "vector.transfer_read"(%1, %0, %arg3) <{in_bounds = [true], operandSegmentSizes = array<i32: 1, 1, 1, 0>, permutation_map = #map}> : (tensor<8xf32>, index, f32) -> vector<8xf32>
    "func.return"(%2, %3) : (tensor<8xf32>, vector<8xf32>) -> ()
  }) : () -> ()
}) : () -> ()

