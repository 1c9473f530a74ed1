// Two tensors of one buffer: a write to one may not show in the other.
// options: extensions or-error
// values: 1 9
func.func @main() -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %one = arith.constant 1.0 : f32
  %nine = arith.constant 9.0 : f32
  %m = memref.alloc() : memref<4xf32>
  linalg.fill ins(%one : f32) outs(%m : memref<4xf32>)
  %t = bufferization.to_tensor %m writable : memref<4xf32> to tensor<4xf32>
  %u = bufferization.to_tensor %m writable : memref<4xf32> to tensor<4xf32>
  %w = tensor.insert %nine into %t[%c0] : tensor<4xf32>
  %old = tensor.extract %u[%c0] : tensor<4xf32>
  %new = tensor.extract %w[%c0] : tensor<4xf32>
  return %old, %new : f32, f32
}
