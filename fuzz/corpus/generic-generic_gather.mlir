#map = affine_map<(d0) -> (d0)>
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<8xf32>, tensor<8xindex>) -> tensor<8xf32>, sym_name = "f"}> ({
  ^bb0(%arg0: tensor<8xf32>, %arg1: tensor<8xindex>):
    %0 = "tensor.empty"() : () -> tensor<8xf32>
    %1 = "linalg.generic"(%arg1, %0) <{indexing_maps = [#map, #map], iterator_types = [#linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg2: index, %arg3: f32):
      %2 = "tensor.extract"(%arg0, %arg2) : (tensor<8xf32>, index) -> f32
      "linalg.yield"(%2) : (f32) -> ()
    }) : (tensor<8xindex>, tensor<8xf32>) -> tensor<8xf32>
    "func.return"(%1) : (tensor<8xf32>) -> ()
  }) : () -> ()
}) : () -> ()

