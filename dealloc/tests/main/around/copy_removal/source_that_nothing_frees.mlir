// test: copy-removal extensions
// The target is allocated in place of the source, which then needs no free.
func.func @f(%x: f32) -> memref<2xf32> {
  %i = arith.constant 0 : index
  %a = memref.alloc() : memref<2xf32>
  memref.store %x, %a[%i] : memref<2xf32>
  %b = memref.alloc() : memref<2xf32>
  memref.copy %a, %b : memref<2xf32> to memref<2xf32>
  return %b : memref<2xf32>
}
// -----
// expect:
module {
  func.func @f(%arg0: f32) -> memref<2xf32> {
    %c0 = arith.constant 0 : index
    %alloc = memref.alloc() : memref<2xf32>
    memref.store %arg0, %alloc[%c0] : memref<2xf32>
    return %alloc : memref<2xf32>
  }
}
