// A constant of equal value, type and alignment is there already; one that is written is none.
memref.global "private" constant @old : memref<2xf32> = dense<1.0> {alignment = 64 : i64}
memref.global "private" constant @other : memref<2xf32> = dense<2.0> {alignment = 32 : i64}
func.func @main(%i: index) -> (f32, f32) {
  %0 = arith.constant dense<1.0> : tensor<2xf32>
  %1 = arith.constant dense<2.0> : tensor<2xf32>
  %a = tensor.extract %0[%i] : tensor<2xf32>
  %b = tensor.extract %1[%i] : tensor<2xf32>
  return %a, %b : f32, f32
}
