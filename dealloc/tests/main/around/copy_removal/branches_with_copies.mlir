// test: copy-removal
// Copies that were made for a join of two buffers are the buffers themselves.
func.func @f(%c: i1, %x: f32, %out: memref<2xf32>) {
  %i = arith.constant 0 : index
  cf.cond_br %c, ^left, ^right
^left:
  %a = memref.alloc() : memref<2xf32>
  memref.store %x, %a[%i] : memref<2xf32>
  %b = memref.alloc() : memref<2xf32>
  memref.copy %a, %b : memref<2xf32> to memref<2xf32>
  memref.dealloc %a : memref<2xf32>
  cf.br ^join(%b : memref<2xf32>)
^right:
  %d = memref.alloc() : memref<2xf32>
  memref.copy %out, %d : memref<2xf32> to memref<2xf32>
  cf.br ^join(%d : memref<2xf32>)
^join(%either: memref<2xf32>):
  memref.copy %either, %out : memref<2xf32> to memref<2xf32>
  memref.dealloc %either : memref<2xf32>
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: i1, %arg1: f32, %arg2: memref<2xf32>) {
    %c0 = arith.constant 0 : index
    cf.cond_br %arg0, ^bb1, ^bb2
  ^bb1:  // pred: ^bb0
    %alloc = memref.alloc() : memref<2xf32>
    memref.store %arg1, %alloc[%c0] : memref<2xf32>
    cf.br ^bb3(%alloc : memref<2xf32>)
  ^bb2:  // pred: ^bb0
    %alloc_0 = memref.alloc() : memref<2xf32>
    memref.copy %arg2, %alloc_0 : memref<2xf32> to memref<2xf32>
    cf.br ^bb3(%alloc_0 : memref<2xf32>)
  ^bb3(%0: memref<2xf32>):  // 2 preds: ^bb1, ^bb2
    memref.copy %0, %arg2 : memref<2xf32> to memref<2xf32>
    memref.dealloc %0 : memref<2xf32>
    return
  }
}
