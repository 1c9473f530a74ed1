// A constant does not share memory with a variable that happens to start with the same value.
// values: 1 9
memref.global "private" @state : memref<4xf32> = dense<1.0> {alignment = 64 : i64}
func.func @main() -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %one = arith.constant 1.0 : f32
  %nine = arith.constant 9.0 : f32
  %m = memref.get_global @state : memref<4xf32>
  memref.store %nine, %m[%c0] : memref<4xf32>
  %c = arith.constant dense<1.0> : tensor<4xf32>
  %u = tensor.extract %c[%c0] : tensor<4xf32>
  %v = memref.load %m[%c0] : memref<4xf32>
  return %u, %v : f32, f32
}
