// test: ownership 
// One caller uses the buffer after the call: the callee consumes none.

func.func private @work(%p: memref<4xf32>, %x: f32, %o: memref<4xf32>) {
  memref.copy %p, %o : memref<4xf32> to memref<4xf32>
  %a = memref.alloc() : memref<4xf32>
  linalg.fill ins(%x : f32) outs(%a : memref<4xf32>)
  memref.copy %a, %o : memref<4xf32> to memref<4xf32>
  return
}

func.func @f(%x: f32, %o: memref<4xf32>) {
  %b = memref.alloc() : memref<4xf32>
  linalg.fill ins(%x : f32) outs(%b : memref<4xf32>)
  func.call @work(%b, %x, %o) : (memref<4xf32>, f32, memref<4xf32>) -> ()
  memref.copy %b, %o : memref<4xf32> to memref<4xf32>
  func.call @work(%b, %x, %o) : (memref<4xf32>, f32, memref<4xf32>) -> ()
  return
}
// -----
// expect:
module {
  func.func private @work(%arg0: memref<4xf32>, %arg1: f32, %arg2: memref<4xf32>) {
    memref.copy %arg0, %arg2 : memref<4xf32> to memref<4xf32>
    %alloc = memref.alloc() : memref<4xf32>
    linalg.fill ins(%arg1 : f32) outs(%alloc : memref<4xf32>)
    memref.copy %alloc, %arg2 : memref<4xf32> to memref<4xf32>
    memref.dealloc %alloc : memref<4xf32>
    return
  }
  func.func @f(%arg0: f32, %arg1: memref<4xf32>) {
    %alloc = memref.alloc() : memref<4xf32>
    linalg.fill ins(%arg0 : f32) outs(%alloc : memref<4xf32>)
    call @work(%alloc, %arg0, %arg1) : (memref<4xf32>, f32, memref<4xf32>) -> ()
    memref.copy %alloc, %arg1 : memref<4xf32> to memref<4xf32>
    call @work(%alloc, %arg0, %arg1) : (memref<4xf32>, f32, memref<4xf32>) -> ()
    memref.dealloc %alloc : memref<4xf32>
    return
  }
}
