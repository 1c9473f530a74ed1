// test: ownership 
// A public function is called by anybody, who owns its result: an argument is copied.

func.func @f(%b: memref<4xf32>, %c: i1) -> memref<4xf32> {
  cf.cond_br %c, ^given, ^fresh
^given:
  return %b : memref<4xf32>
^fresh:
  %a = memref.alloc() : memref<4xf32>
  memref.copy %b, %a : memref<4xf32> to memref<4xf32>
  return %a : memref<4xf32>
}
// -----
// expect:
module {
  func.func @f(%arg0: memref<4xf32>, %arg1: i1) -> memref<4xf32> {
    cf.cond_br %arg1, ^bb1, ^bb2
  ^bb1:  // pred: ^bb0
    %alloc = memref.alloc() {alignment = 64 : i64} : memref<4xf32>
    memref.copy %arg0, %alloc : memref<4xf32> to memref<4xf32>
    return %alloc : memref<4xf32>
  ^bb2:  // pred: ^bb0
    %alloc_0 = memref.alloc() : memref<4xf32>
    memref.copy %arg0, %alloc_0 : memref<4xf32> to memref<4xf32>
    return %alloc_0 : memref<4xf32>
  }
}
