// test: ownership 
// An explicitly freed memref is not freed again; on the other path it is.

func.func @f(%c: i1, %x: f32) {
  %a = memref.alloc() : memref<4xf32>
  linalg.fill ins(%x : f32) outs(%a : memref<4xf32>)
  cf.cond_br %c, ^by_hand, ^join
^by_hand:
  memref.dealloc %a : memref<4xf32>
  cf.br ^join
^join:
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: i1, %arg1: f32) {
    %alloc = memref.alloc() : memref<4xf32>
    linalg.fill ins(%arg1 : f32) outs(%alloc : memref<4xf32>)
    cf.cond_br %arg0, ^bb1, ^bb2
  ^bb1:  // pred: ^bb0
    memref.dealloc %alloc : memref<4xf32>
    cf.br ^bb3
  ^bb2:  // pred: ^bb0
    memref.dealloc %alloc : memref<4xf32>
    cf.br ^bb3
  ^bb3:  // 2 preds: ^bb1, ^bb2
    return
  }
}
