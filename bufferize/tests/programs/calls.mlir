// The reads and writes of callees decide the callers' copies.
func.func private @reads(%t: tensor<8xf32>, %i: index) -> f32 {
  %y = tensor.extract %t[%i] : tensor<8xf32>
  return %y : f32
}
func.func private @writes(%t: tensor<8xf32>, %x: f32, %i: index) -> tensor<8xf32> {
  %y = tensor.insert %x into %t[%i] : tensor<8xf32>
  return %y : tensor<8xf32>
}
func.func private @makes(%x: f32) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.fill ins(%x : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
func.func @main(%t: tensor<8xf32>, %x: f32, %i: index) -> (tensor<8xf32>, f32, tensor<8xf32>) {
  %a = func.call @writes(%t, %x, %i) : (tensor<8xf32>, f32, index) -> tensor<8xf32>
  %y = func.call @reads(%t, %i) : (tensor<8xf32>, index) -> f32
  %m = func.call @makes(%y) : (f32) -> tensor<8xf32>
  %n = func.call @writes(%m, %y, %i) : (tensor<8xf32>, f32, index) -> tensor<8xf32>
  return %a, %y, %n : tensor<8xf32>, f32, tensor<8xf32>
}
