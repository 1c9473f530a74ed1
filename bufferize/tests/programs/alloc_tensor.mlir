// Explicit allocations and copies.
func.func @f(%t: tensor<8xf32>, %x: f32, %i: index) -> (tensor<8xf32>, f32) {
  %c = bufferization.alloc_tensor() copy(%t) : tensor<8xf32>
  %a = tensor.insert %x into %c[%i] : tensor<8xf32>
  %e = bufferization.alloc_tensor() : tensor<8xf32>
  %f = linalg.fill ins(%x : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %y = tensor.extract %f[%i] : tensor<8xf32>
  %z = tensor.extract %t[%i] : tensor<8xf32>
  %s = arith.addf %y, %z : f32
  return %a, %s : tensor<8xf32>, f32
}
