// test: buffer-results-to-out-params hoist-static-allocs extensions
// The caller sees the argument by two names: a copy would be another buffer.
func.func private @choose(%c: i1, %x: f32, %m: memref<4xf32>) -> memref<4xf32> {
  %a = memref.alloc() : memref<4xf32>
  %r = arith.select %c, %a, %m : memref<4xf32>
  return %r : memref<4xf32>
}
func.func @caller(%c: i1, %x: f32, %m: memref<4xf32>) -> f32 {
  %i = arith.constant 0 : index
  %r = call @choose(%c, %x, %m) : (i1, f32, memref<4xf32>) -> memref<4xf32>
  memref.store %x, %r[%i] : memref<4xf32>
  %v = memref.load %m[%i] : memref<4xf32>
  return %v : f32
}
// -----
// expect:
module {
  func.func private @choose(%arg0: i1, %arg1: f32, %arg2: memref<4xf32>) -> memref<4xf32> {
    %alloc = memref.alloc() : memref<4xf32>
    %0 = arith.select %arg0, %alloc, %arg2 : memref<4xf32>
    return %0 : memref<4xf32>
  }
  func.func @caller(%arg0: i1, %arg1: f32, %arg2: memref<4xf32>) -> f32 {
    %c0 = arith.constant 0 : index
    %0 = call @choose(%arg0, %arg1, %arg2) : (i1, f32, memref<4xf32>) -> memref<4xf32>
    memref.store %arg1, %0[%c0] : memref<4xf32>
    %1 = memref.load %arg2[%c0] : memref<4xf32>
    return %1 : f32
  }
}
