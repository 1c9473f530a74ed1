// test: ownership 
// The callee would free the buffer at its end, when the caller does: all stays as it is.

func.func private @work(%p: memref<4xf32>, %x: f32) {
  %a = memref.alloc() : memref<4xf32>
  linalg.fill ins(%x : f32) outs(%a : memref<4xf32>)
  memref.copy %p, %a : memref<4xf32> to memref<4xf32>
  return
}
func.func @f(%x: f32) {
  %b = memref.alloc() : memref<4xf32>
  linalg.fill ins(%x : f32) outs(%b : memref<4xf32>)
  func.call @work(%b, %x) : (memref<4xf32>, f32) -> ()
  return
}
// -----
// expect:
module {
  func.func private @work(%arg0: memref<4xf32>, %arg1: f32) {
    %alloc = memref.alloc() : memref<4xf32>
    linalg.fill ins(%arg1 : f32) outs(%alloc : memref<4xf32>)
    memref.copy %arg0, %alloc : memref<4xf32> to memref<4xf32>
    memref.dealloc %alloc : memref<4xf32>
    return
  }
  func.func @f(%arg0: f32) {
    %alloc = memref.alloc() : memref<4xf32>
    linalg.fill ins(%arg0 : f32) outs(%alloc : memref<4xf32>)
    call @work(%alloc, %arg0) : (memref<4xf32>, f32) -> ()
    memref.dealloc %alloc : memref<4xf32>
    return
  }
}
