// test: optimize-allocation-liveness
// The free goes right behind the last use, through views and regions.
func.func @f(%c: i1, %x: f32, %out: memref<4xf32>) {
  %i = arith.constant 0 : index
  %a = memref.alloc() : memref<4xf32>
  %b = memref.alloc() : memref<4xf32>
  %v = memref.subview %a[1] [2] [1] : memref<4xf32> to memref<2xf32, strided<[1], offset: 1>>
  memref.copy %b, %out : memref<4xf32> to memref<4xf32>
  scf.if %c {
    memref.store %x, %v[%i] : memref<2xf32, strided<[1], offset: 1>>
  }
  memref.store %x, %out[%i] : memref<4xf32>
  memref.dealloc %a : memref<4xf32>
  memref.dealloc %b : memref<4xf32>
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: i1, %arg1: f32, %arg2: memref<4xf32>) {
    %c0 = arith.constant 0 : index
    %alloc = memref.alloc() : memref<4xf32>
    %alloc_0 = memref.alloc() : memref<4xf32>
    %subview = memref.subview %alloc[1] [2] [1] : memref<4xf32> to memref<2xf32, strided<[1], offset: 1>>
    memref.copy %alloc_0, %arg2 : memref<4xf32> to memref<4xf32>
    memref.dealloc %alloc_0 : memref<4xf32>
    scf.if %arg0 {
      memref.store %arg1, %subview[%c0] : memref<2xf32, strided<[1], offset: 1>>
    }
    memref.dealloc %alloc : memref<4xf32>
    memref.store %arg1, %arg2[%c0] : memref<4xf32>
    return
  }
}
