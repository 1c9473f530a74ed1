#map = affine_map<(d0) -> (d0)>
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<?xf32>, index, f32) -> tensor<?xf32>, sym_name = "f"}> ({
  ^bb0(%arg0: tensor<?xf32>, %arg1: index, %arg2: f32):
    %0 = "arith.constant"() <{value = 0 : index}> : () -> index
    %1 = "vector.create_mask"(%arg1) : (index) -> vector<8xi1>
    %2 = "vector.mask"(%1) ({
      %6 = "vector.transfer_read"(%arg0, %0, %arg2) <{in_bounds = [true], operandSegmentSizes = array<i32: 1, 1, 1, 0>, permutation_map = #map}> : (tensor<?xf32>, index, f32) -> vector<8xf32>
      "vector.yield"(%6) : (vector<8xf32>) -> ()
    }) : (vector<8xi1>) -> vector<8xf32>
    %3 = "arith.addf"(%2, %2) <{fastmath = #arith.fastmath<none>}> : (vector<8xf32>, vector<8xf32>) -> vector<8xf32>
    %4 = "vector.mask"(%1) ({
      %5 = "vector.transfer_write"(%3, %arg0, %0) <{in_bounds = [true], operandSegmentSizes = array<i32: 1, 1, 1, 0>, permutation_map = #map}> : (vector<8xf32>, tensor<?xf32>, index) -> tensor<?xf32>
      "vector.yield"(%5) : (tensor<?xf32>) -> ()
    }) : (vector<8xi1>) -> tensor<?xf32>
    "func.return"(%4) : (tensor<?xf32>) -> ()
  }) : () -> ()
}) : () -> ()

