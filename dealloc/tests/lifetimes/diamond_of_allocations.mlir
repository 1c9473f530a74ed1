// test: ownership 
// Each path frees the buffer that it does not pass on; the block needs no indicator.

func.func @f(%c: i1, %x: f32) {
  %a = memref.alloc() : memref<4xf32>
  %b = memref.alloc() : memref<4xf32>
  cf.cond_br %c, ^one, ^other
^one:
  cf.br ^join(%a : memref<4xf32>)
^other:
  cf.br ^join(%b : memref<4xf32>)
^join(%p: memref<4xf32>):
  linalg.fill ins(%x : f32) outs(%p : memref<4xf32>)
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: i1, %arg1: f32) {
    %alloc = memref.alloc() : memref<4xf32>
    %alloc_0 = memref.alloc() : memref<4xf32>
    cf.cond_br %arg0, ^bb1, ^bb2
  ^bb1:  // pred: ^bb0
    memref.dealloc %alloc_0 : memref<4xf32>
    cf.br ^bb3(%alloc : memref<4xf32>)
  ^bb2:  // pred: ^bb0
    memref.dealloc %alloc : memref<4xf32>
    cf.br ^bb3(%alloc_0 : memref<4xf32>)
  ^bb3(%0: memref<4xf32>):  // 2 preds: ^bb1, ^bb2
    linalg.fill ins(%arg1 : f32) outs(%0 : memref<4xf32>)
    memref.dealloc %0 : memref<4xf32>
    return
  }
}
