// test: buffer-results-to-out-params hoist-static-allocs extensions
// The buffer that every return gives is the argument; the other result may be the same buffer, and stays a result.
func.func private @two(%c: i1, %x: f32) -> (memref<4xf32>, memref<4xf32>) {
  %i = arith.constant 0 : index
  %a = memref.alloc() {alignment = 64 : i64} : memref<4xf32>
  %b = memref.alloc() : memref<4xf32>
  memref.store %x, %a[%i] : memref<4xf32>
  memref.store %x, %b[%i] : memref<4xf32>
  cf.cond_br %c, ^left, ^right
^left:
  return %a, %b : memref<4xf32>, memref<4xf32>
^right:
  return %a, %a : memref<4xf32>, memref<4xf32>
}
func.func @caller(%c: i1, %x: f32, %out: memref<4xf32>) {
  %r:2 = call @two(%c, %x) : (i1, f32) -> (memref<4xf32>, memref<4xf32>)
  memref.copy %r#1, %out : memref<4xf32> to memref<4xf32>
  return
}
// -----
// expect:
module {
  func.func private @two(%arg0: i1, %arg1: f32, %arg2: memref<4xf32>) -> memref<4xf32> {
    %c0 = arith.constant 0 : index
    %alloc = memref.alloc() : memref<4xf32>
    memref.store %arg1, %arg2[%c0] : memref<4xf32>
    memref.store %arg1, %alloc[%c0] : memref<4xf32>
    cf.cond_br %arg0, ^bb1, ^bb2
  ^bb1:  // pred: ^bb0
    return %alloc : memref<4xf32>
  ^bb2:  // pred: ^bb0
    return %arg2 : memref<4xf32>
  }
  func.func @caller(%arg0: i1, %arg1: f32, %arg2: memref<4xf32>) {
    %alloc = memref.alloc() {alignment = 64 : i64} : memref<4xf32>
    %0 = call @two(%arg0, %arg1, %alloc) : (i1, f32, memref<4xf32>) -> memref<4xf32>
    memref.copy %0, %arg2 : memref<4xf32> to memref<4xf32>
    return
  }
}
