#m = affine_map<(d0) -> (d0)>
func.func @main(%t: tensor<16xf32>, %u: tensor<16xf32>, %n: i32) -> (tensor<16xf32>, tensor<16xf32>, i32) {
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r:3 = scf.while (%a = %t, %b = %u, %i = %z) : (tensor<16xf32>, tensor<16xf32>, i32) -> (tensor<16xf32>, tensor<16xf32>, i32) {
    %c = arith.cmpi slt, %i, %n : i32
    scf.condition(%c) %b, %a, %i : tensor<16xf32>, tensor<16xf32>, i32
  } do {
  ^bb0(%b: tensor<16xf32>, %a: tensor<16xf32>, %i: i32):
    %g = linalg.generic {indexing_maps=[#m,#m],iterator_types=["parallel"]} ins(%a : tensor<16xf32>) outs(%b : tensor<16xf32>) {
    ^bb0(%p: f32, %q: f32): %s = arith.addf %p, %q : f32
      linalg.yield %s : f32 } -> tensor<16xf32>
    %j = arith.addi %i, %one : i32
    scf.yield %g, %a, %j : tensor<16xf32>, tensor<16xf32>, i32
  }
  return %r#0, %r#1, %r#2 : tensor<16xf32>, tensor<16xf32>, i32
}
