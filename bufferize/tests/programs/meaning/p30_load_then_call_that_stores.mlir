// A function that is called may store, and one may return what it loaded.
// values: 1 1 9
ml_program.global private mutable @state(dense<0.0> : tensor<4xf32>) : tensor<4xf32>
func.func private @load() -> tensor<4xf32> {
  %l = ml_program.global_load @state : tensor<4xf32>
  return %l : tensor<4xf32>
}
func.func private @store(%x: f32) {
  %e = tensor.empty() : tensor<4xf32>
  %t = linalg.fill ins(%x : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  ml_program.global_store @state = %t : tensor<4xf32>
  return
}
func.func private @store_through(%x: f32) {
  func.call @store(%x) : (f32) -> ()
  return
}
func.func @main() -> (f32, f32, f32) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %nine = arith.constant 9.0 : f32
  func.call @store(%one) : (f32) -> ()
  %a = ml_program.global_load @state : tensor<4xf32>
  %b = func.call @load() : () -> tensor<4xf32>
  func.call @store_through(%nine) : (f32) -> ()
  %c = func.call @load() : () -> tensor<4xf32>
  %u = tensor.extract %a[%c0] : tensor<4xf32>
  %v = tensor.extract %b[%c0] : tensor<4xf32>
  %w = tensor.extract %c[%c0] : tensor<4xf32>
  return %u, %v, %w : f32, f32, f32
}
