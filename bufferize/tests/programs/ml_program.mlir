// A global is not written through what was loaded from it; a constant one is a constant.
ml_program.global private mutable @counter(dense<0> : tensor<i64>) : tensor<i64>
ml_program.global private @limit(dense<[3, 4]> : tensor<2xi64>) : tensor<2xi64>
func.func @main(%i: index) -> i64 {
  %0 = ml_program.global_load @counter : tensor<i64>
  %1 = ml_program.global_load @limit : tensor<2xi64>
  %old = tensor.extract %0[] : tensor<i64>
  %most = tensor.extract %1[%i] : tensor<2xi64>
  %new = arith.addi %old, %most : i64
  %2 = tensor.insert %new into %0[] : tensor<i64>
  ml_program.global_store @counter = %2 : tensor<i64>
  return %old : i64
}
