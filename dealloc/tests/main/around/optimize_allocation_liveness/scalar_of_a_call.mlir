// test: optimize-allocation-liveness
// A scalar that a call gives is no memory: the free stands behind the call, and never behind the return.
func.func private @sum(memref<4xf32>) -> f32
func.func private @where(memref<4xf32>) -> index
func.func @f(%out: memref<4xf32>) -> f32 {
  %i = arith.constant 0 : index
  %a = memref.alloc() : memref<4xf32>
  %s = call @sum(%a) : (memref<4xf32>) -> f32
  memref.store %s, %out[%i] : memref<4xf32>
  memref.dealloc %a : memref<4xf32>
  return %s : f32
}
func.func @g() -> index {
  %a = memref.alloc() : memref<4xf32>
  %s = call @where(%a) : (memref<4xf32>) -> index
  memref.dealloc %a : memref<4xf32>
  return %s : index
}
// -----
// expect:
module {
  func.func private @sum(memref<4xf32>) -> f32
  func.func private @where(memref<4xf32>) -> index
  func.func @f(%arg0: memref<4xf32>) -> f32 {
    %c0 = arith.constant 0 : index
    %alloc = memref.alloc() : memref<4xf32>
    %0 = call @sum(%alloc) : (memref<4xf32>) -> f32
    memref.dealloc %alloc : memref<4xf32>
    memref.store %0, %arg0[%c0] : memref<4xf32>
    return %0 : f32
  }
  func.func @g() -> index {
    %alloc = memref.alloc() : memref<4xf32>
    %0 = call @where(%alloc) : (memref<4xf32>) -> index
    memref.dealloc %alloc : memref<4xf32>
    return %0 : index
  }
}
