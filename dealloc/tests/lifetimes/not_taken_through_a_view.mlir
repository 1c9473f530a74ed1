// test: ownership 
// The operand is a part of the buffer: the callee does not free the whole.

func.func private @work(%p: memref<2xf32, strided<[1], offset: 1>>, %x: f32) {
  linalg.fill ins(%x : f32) outs(%p : memref<2xf32, strided<[1], offset: 1>>)
  %a = memref.alloc() : memref<4xf32>
  linalg.fill ins(%x : f32) outs(%a : memref<4xf32>)
  return
}
func.func @f(%x: f32) {
  %b = memref.alloc() : memref<4xf32>
  %v = memref.subview %b[1] [2] [1] : memref<4xf32> to memref<2xf32, strided<[1], offset: 1>>
  func.call @work(%v, %x) : (memref<2xf32, strided<[1], offset: 1>>, f32) -> ()
  return
}
// -----
// expect:
module {
  func.func private @work(%arg0: memref<2xf32, strided<[1], offset: 1>>, %arg1: f32) {
    linalg.fill ins(%arg1 : f32) outs(%arg0 : memref<2xf32, strided<[1], offset: 1>>)
    %alloc = memref.alloc() : memref<4xf32>
    linalg.fill ins(%arg1 : f32) outs(%alloc : memref<4xf32>)
    memref.dealloc %alloc : memref<4xf32>
    return
  }
  func.func @f(%arg0: f32) {
    %alloc = memref.alloc() : memref<4xf32>
    %subview = memref.subview %alloc[1] [2] [1] : memref<4xf32> to memref<2xf32, strided<[1], offset: 1>>
    call @work(%subview, %arg0) : (memref<2xf32, strided<[1], offset: 1>>, f32) -> ()
    memref.dealloc %alloc : memref<4xf32>
    return
  }
}
