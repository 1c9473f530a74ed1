// test: drop-equivalent-buffer-results
// Results that are arguments are dropped, through casts; those of public functions stay.
func.func private @callee(%a: memref<4xf32>, %n: index, %c: i1) -> (memref<?xf32>, memref<4xf32>, index) {
  %v = memref.cast %a : memref<4xf32> to memref<?xf32>
  %b = memref.alloc() : memref<4xf32>
  cf.cond_br %c, ^left, ^right
^left:
  return %v, %b, %n : memref<?xf32>, memref<4xf32>, index
^right:
  return %v, %a, %n : memref<?xf32>, memref<4xf32>, index
}
func.func @caller(%a: memref<4xf32>, %n: index, %c: i1) -> (memref<?xf32>, memref<4xf32>, index) {
  %r:3 = call @callee(%a, %n, %c) : (memref<4xf32>, index, i1) -> (memref<?xf32>, memref<4xf32>, index)
  return %r#0, %r#1, %r#2 : memref<?xf32>, memref<4xf32>, index
}
// -----
// expect:
module {
  func.func private @callee(%arg0: memref<4xf32>, %arg1: index, %arg2: i1) -> memref<4xf32> {
    %cast = memref.cast %arg0 : memref<4xf32> to memref<?xf32>
    %alloc = memref.alloc() : memref<4xf32>
    cf.cond_br %arg2, ^bb1, ^bb2
  ^bb1:  // pred: ^bb0
    return %alloc : memref<4xf32>
  ^bb2:  // pred: ^bb0
    return %arg0 : memref<4xf32>
  }
  func.func @caller(%arg0: memref<4xf32>, %arg1: index, %arg2: i1) -> (memref<?xf32>, memref<4xf32>, index) {
    %0 = call @callee(%arg0, %arg1, %arg2) : (memref<4xf32>, index, i1) -> memref<4xf32>
    %cast = memref.cast %arg0 : memref<4xf32> to memref<?xf32>
    return %cast, %0, %arg1 : memref<?xf32>, memref<4xf32>, index
  }
}
