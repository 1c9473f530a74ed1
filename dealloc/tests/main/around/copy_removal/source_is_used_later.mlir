// test: copy-removal
// A source that is read or written behind the copy stays, and so does a target that is read before.
func.func @f(%x: f32, %out: memref<2xf32>) -> f32 {
  %i = arith.constant 0 : index
  %a = memref.alloc() : memref<2xf32>
  memref.store %x, %a[%i] : memref<2xf32>
  %old = memref.load %out[%i] : memref<2xf32>
  memref.copy %a, %out : memref<2xf32> to memref<2xf32>
  memref.dealloc %a : memref<2xf32>
  %b = memref.alloc() : memref<2xf32>
  %c = memref.alloc() : memref<2xf32>
  memref.store %x, %b[%i] : memref<2xf32>
  memref.copy %b, %c : memref<2xf32> to memref<2xf32>
  memref.store %old, %b[%i] : memref<2xf32>
  %both = memref.load %c[%i] : memref<2xf32>
  memref.dealloc %b : memref<2xf32>
  memref.dealloc %c : memref<2xf32>
  return %both : f32
}
// -----
// expect:
module {
  func.func @f(%arg0: f32, %arg1: memref<2xf32>) -> f32 {
    %c0 = arith.constant 0 : index
    %alloc = memref.alloc() : memref<2xf32>
    memref.store %arg0, %alloc[%c0] : memref<2xf32>
    %0 = memref.load %arg1[%c0] : memref<2xf32>
    memref.copy %alloc, %arg1 : memref<2xf32> to memref<2xf32>
    memref.dealloc %alloc : memref<2xf32>
    %alloc_0 = memref.alloc() : memref<2xf32>
    %alloc_1 = memref.alloc() : memref<2xf32>
    memref.store %arg0, %alloc_0[%c0] : memref<2xf32>
    memref.copy %alloc_0, %alloc_1 : memref<2xf32> to memref<2xf32>
    memref.store %0, %alloc_0[%c0] : memref<2xf32>
    %1 = memref.load %alloc_1[%c0] : memref<2xf32>
    memref.dealloc %alloc_0 : memref<2xf32>
    memref.dealloc %alloc_1 : memref<2xf32>
    return %1 : f32
  }
}
