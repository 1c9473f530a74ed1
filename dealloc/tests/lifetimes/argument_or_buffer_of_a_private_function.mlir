// test: ownership 
// A private function returns its argument or a buffer of its own: an indicator comes with the result.

func.func private @maybe(%p: memref<4xf32>, %c: i1) -> memref<4xf32> {
  cf.cond_br %c, ^given, ^fresh
^given:
  return %p : memref<4xf32>
^fresh:
  %a = memref.alloc() : memref<4xf32>
  memref.copy %p, %a : memref<4xf32> to memref<4xf32>
  return %a : memref<4xf32>
}
func.func @f(%b: memref<4xf32>, %c: i1, %x: f32) {
  %r = func.call @maybe(%b, %c) : (memref<4xf32>, i1) -> memref<4xf32>
  linalg.fill ins(%x : f32) outs(%r : memref<4xf32>)
  return
}
// -----
// expect:
module {
  func.func private @maybe(%arg0: memref<4xf32>, %arg1: i1) -> (memref<4xf32>, i1) {
    cf.cond_br %arg1, ^bb1, ^bb2
  ^bb1:  // pred: ^bb0
    %false = arith.constant false
    return %arg0, %false : memref<4xf32>, i1
  ^bb2:  // pred: ^bb0
    %alloc = memref.alloc() : memref<4xf32>
    memref.copy %arg0, %alloc : memref<4xf32> to memref<4xf32>
    %true = arith.constant true
    return %alloc, %true : memref<4xf32>, i1
  }
  func.func @f(%arg0: memref<4xf32>, %arg1: i1, %arg2: f32) {
    %0:2 = call @maybe(%arg0, %arg1) : (memref<4xf32>, i1) -> (memref<4xf32>, i1)
    linalg.fill ins(%arg2 : f32) outs(%0#0 : memref<4xf32>)
    scf.if %0#1 {
      memref.dealloc %0#0 : memref<4xf32>
    }
    return
  }
}
