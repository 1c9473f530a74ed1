// test: ownership allow-unknown-effects
// The result of an op of unknown effects may alias its operand, and the op may keep a pointer: freed at the end.

func.func @f(%x: f32, %b: memref<4xf32>) {
  %a = memref.alloc() : memref<4xf32>
  %r = "test.unknown"(%a) : (memref<4xf32>) -> memref<4xf32>
  linalg.fill ins(%x : f32) outs(%r : memref<4xf32>)
  linalg.fill ins(%x : f32) outs(%b : memref<4xf32>)
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: f32, %arg1: memref<4xf32>) {
    %alloc = memref.alloc() : memref<4xf32>
    %0 = "test.unknown"(%alloc) : (memref<4xf32>) -> memref<4xf32>
    linalg.fill ins(%arg0 : f32) outs(%0 : memref<4xf32>)
    linalg.fill ins(%arg0 : f32) outs(%arg1 : memref<4xf32>)
    memref.dealloc %alloc : memref<4xf32>
    return
  }
}
