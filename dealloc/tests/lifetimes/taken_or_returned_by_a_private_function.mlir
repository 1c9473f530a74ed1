// test: ownership 
// The callee frees a consumed argument on one path and returns it on the other: the caller owns the result in any case.

func.func private @or(%p: memref<4xf32>, %c: i1, %x: f32) -> memref<4xf32> {
  cf.cond_br %c, ^given, ^fresh
^given:
  return %p : memref<4xf32>
^fresh:
  %a = memref.alloc() : memref<4xf32>
  linalg.fill ins(%x : f32) outs(%a : memref<4xf32>)
  return %a : memref<4xf32>
}
func.func @f(%c: i1, %x: f32, %o: memref<4xf32>) {
  %b = memref.alloc() : memref<4xf32>
  linalg.fill ins(%x : f32) outs(%b : memref<4xf32>)
  %r = func.call @or(%b, %c, %x) : (memref<4xf32>, i1, f32) -> memref<4xf32>
  memref.copy %r, %o : memref<4xf32> to memref<4xf32>
  return
}
// -----
// expect:
module {
  func.func private @or(%arg0: memref<4xf32>, %arg1: i1, %arg2: f32) -> memref<4xf32> {
    cf.cond_br %arg1, ^bb1, ^bb2
  ^bb1:  // pred: ^bb0
    return %arg0 : memref<4xf32>
  ^bb2:  // pred: ^bb0
    memref.dealloc %arg0 : memref<4xf32>
    %alloc = memref.alloc() : memref<4xf32>
    linalg.fill ins(%arg2 : f32) outs(%alloc : memref<4xf32>)
    return %alloc : memref<4xf32>
  }
  func.func @f(%arg0: i1, %arg1: f32, %arg2: memref<4xf32>) {
    %alloc = memref.alloc() : memref<4xf32>
    linalg.fill ins(%arg1 : f32) outs(%alloc : memref<4xf32>)
    %0 = call @or(%alloc, %arg0, %arg1) {monopour.donate = array<i32: 0>} : (memref<4xf32>, i1, f32) -> memref<4xf32>
    memref.copy %0, %arg2 : memref<4xf32> to memref<4xf32>
    memref.dealloc %0 : memref<4xf32>
    return
  }
}
