// test: ownership 
// A free near the allocation goes with one in a nested region.

func.func @f(%c: i1, %d: i1, %x: f32) {
  %a = memref.alloc() : memref<4xf32>
  linalg.fill ins(%x : f32) outs(%a : memref<4xf32>)
  cf.cond_br %c, ^near, ^nested
^near:
  memref.dealloc %a : memref<4xf32>
  return
^nested:
  scf.if %d {
    memref.dealloc %a : memref<4xf32>
  }
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: i1, %arg1: i1, %arg2: f32) {
    %alloc = memref.alloc() : memref<4xf32>
    linalg.fill ins(%arg2 : f32) outs(%alloc : memref<4xf32>)
    memref.dealloc %alloc : memref<4xf32>
    cf.cond_br %arg0, ^bb1, ^bb2
  ^bb1:  // pred: ^bb0
    return
  ^bb2:  // pred: ^bb0
    return
  }
}
