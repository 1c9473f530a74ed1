// test: ownership 
// Iterations of a parallel loop own what they allocate; what they use of outside lives on behind the loop.

func.func @f(%c: i1, %x: f32) {
  %a = memref.alloc() : memref<4xf32>
  cf.cond_br %c, ^loop, ^done
^loop:
  scf.forall (%i) in (4) {
    %b = memref.alloc() : memref<f32>
    linalg.fill ins(%x : f32) outs(%b : memref<f32>)
    %v = memref.load %b[] : memref<f32>
    memref.store %v, %a[%i] : memref<4xf32>
  }
  cf.br ^done
^done:
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: i1, %arg1: f32) {
    %alloc = memref.alloc() : memref<4xf32>
    cf.cond_br %arg0, ^bb1, ^bb2
  ^bb1:  // pred: ^bb0
    scf.forall (%arg2) in (4) {
      %alloc_0 = memref.alloc() : memref<f32>
      linalg.fill ins(%arg1 : f32) outs(%alloc_0 : memref<f32>)
      %0 = memref.load %alloc_0[] : memref<f32>
      memref.dealloc %alloc_0 : memref<f32>
      memref.store %0, %alloc[%arg2] : memref<4xf32>
    }
    memref.dealloc %alloc : memref<4xf32>
    cf.br ^bb3
  ^bb2:  // pred: ^bb0
    memref.dealloc %alloc : memref<4xf32>
    cf.br ^bb3
  ^bb3:  // 2 preds: ^bb1, ^bb2
    return
  }
}
