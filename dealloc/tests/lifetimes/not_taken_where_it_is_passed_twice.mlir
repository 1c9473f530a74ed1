// test: ownership 
// Passed twice, once by another name: the callee would use what it has freed.

func.func private @work(%p: memref<4xf32>, %q: memref<4xf32>, %x: f32) {
  linalg.fill ins(%x : f32) outs(%p : memref<4xf32>)
  %a = memref.alloc() : memref<4xf32>
  memref.copy %q, %a : memref<4xf32> to memref<4xf32>
  return
}
func.func @f(%c: i1, %x: f32, %o: memref<4xf32>) {
  %b = memref.alloc() : memref<4xf32>
  linalg.fill ins(%x : f32) outs(%b : memref<4xf32>)
  %s = arith.select %c, %b, %o : memref<4xf32>
  func.call @work(%b, %s, %x) : (memref<4xf32>, memref<4xf32>, f32) -> ()
  return
}
// -----
// expect:
module {
  func.func private @work(%arg0: memref<4xf32>, %arg1: memref<4xf32>, %arg2: f32) {
    linalg.fill ins(%arg2 : f32) outs(%arg0 : memref<4xf32>)
    %alloc = memref.alloc() : memref<4xf32>
    memref.copy %arg1, %alloc : memref<4xf32> to memref<4xf32>
    memref.dealloc %alloc : memref<4xf32>
    return
  }
  func.func @f(%arg0: i1, %arg1: f32, %arg2: memref<4xf32>) {
    %alloc = memref.alloc() : memref<4xf32>
    linalg.fill ins(%arg1 : f32) outs(%alloc : memref<4xf32>)
    %0 = arith.select %arg0, %alloc, %arg2 : memref<4xf32>
    call @work(%alloc, %0, %arg1) : (memref<4xf32>, memref<4xf32>, f32) -> ()
    memref.dealloc %alloc : memref<4xf32>
    return
  }
}
