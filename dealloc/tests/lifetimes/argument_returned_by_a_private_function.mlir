// test: ownership 
// A private function returns what it was given: its caller is told, and nothing is copied.

func.func private @same(%p: memref<4xf32>) -> memref<4xf32> {
  return %p : memref<4xf32>
}
func.func @f(%x: f32) {
  %a = memref.alloc() : memref<4xf32>
  %r = func.call @same(%a) : (memref<4xf32>) -> memref<4xf32>
  linalg.fill ins(%x : f32) outs(%r : memref<4xf32>)
  return
}
// -----
// expect:
module {
  func.func private @same(%arg0: memref<4xf32>) -> memref<4xf32> {
    return %arg0 : memref<4xf32>
  }
  func.func @f(%arg0: f32) {
    %alloc = memref.alloc() : memref<4xf32>
    %0 = call @same(%alloc) : (memref<4xf32>) -> memref<4xf32>
    linalg.fill ins(%arg0 : f32) outs(%0 : memref<4xf32>)
    memref.dealloc %alloc : memref<4xf32>
    return
  }
}
