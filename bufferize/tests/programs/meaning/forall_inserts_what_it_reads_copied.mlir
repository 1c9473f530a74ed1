// The slice of %a is read after %a is written, and neither write can be in a copy.
// options: extensions copy-before-write
func.func @main() -> (tensor<2xf32>, tensor<2xf32>) {
  %one = arith.constant 1.0 : f32
  %new = arith.constant dense<9.0> : tensor<2xf32>
  %e = tensor.empty() : tensor<2xf32>
  %t = linalg.fill ins(%one : f32) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  %r:2 = scf.forall (%i) in (1) shared_outs(%a = %t, %b = %t) -> (tensor<2xf32>, tensor<2xf32>) {
    %old = tensor.extract_slice %a[%i] [2] [1] : tensor<2xf32> to tensor<2xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %new into %a[%i] [2] [1] : tensor<2xf32> into tensor<2xf32>
      tensor.parallel_insert_slice %old into %b[%i] [2] [1] : tensor<2xf32> into tensor<2xf32>
    }
  }
  return %r#0, %r#1 : tensor<2xf32>, tensor<2xf32>
}
