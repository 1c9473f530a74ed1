// test: buffer-hoisting
// A buffer that reaches the join is made before the branch.
func.func @f(%c: i1, %given: memref<2xf32>, %out: memref<2xf32>, %x: f32) {
  %i = arith.constant 0 : index
  cf.cond_br %c, ^keep, ^make
^keep:
  cf.br ^join(%given : memref<2xf32>)
^make:
  %a = memref.alloc() : memref<2xf32>
  memref.store %x, %a[%i] : memref<2xf32>
  cf.br ^join(%a : memref<2xf32>)
^join(%either: memref<2xf32>):
  memref.copy %either, %out : memref<2xf32> to memref<2xf32>
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: i1, %arg1: memref<2xf32>, %arg2: memref<2xf32>, %arg3: f32) {
    %c0 = arith.constant 0 : index
    %alloc = memref.alloc() : memref<2xf32>
    cf.cond_br %arg0, ^bb1, ^bb2
  ^bb1:  // pred: ^bb0
    cf.br ^bb3(%arg1 : memref<2xf32>)
  ^bb2:  // pred: ^bb0
    memref.store %arg3, %alloc[%c0] : memref<2xf32>
    cf.br ^bb3(%alloc : memref<2xf32>)
  ^bb3(%0: memref<2xf32>):  // 2 preds: ^bb1, ^bb2
    memref.copy %0, %arg2 : memref<2xf32> to memref<2xf32>
    return
  }
}
