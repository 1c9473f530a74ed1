// test: deallocate extensions
// at most: 1 allocations, 1 copies, 0 clones
// One way brings stack memory to the join, the other one a buffer of the heap.
func.func @f(%c: i1, %x: f32, %out: memref<2xf32>) {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %s = memref.alloca() : memref<2xf32>
  %h = memref.alloc() : memref<2xf32>
  memref.store %x, %h[%one] : memref<2xf32>
  memref.store %x, %s[%one] : memref<2xf32>
  cf.cond_br %c, ^left, ^right
^left:
  memref.store %x, %s[%i] : memref<2xf32>
  cf.br ^join(%s : memref<2xf32>)
^right:
  memref.store %x, %h[%i] : memref<2xf32>
  cf.br ^join(%h : memref<2xf32>)
^join(%e: memref<2xf32>):
  memref.copy %e, %out : memref<2xf32> to memref<2xf32>
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: i1, %arg1: f32, %arg2: memref<2xf32>) {
    %true = arith.constant true
    %false = arith.constant false
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %alloca = memref.alloca() : memref<2xf32>
    %alloc = memref.alloc() : memref<2xf32>
    memref.store %arg1, %alloc[%c1] : memref<2xf32>
    memref.store %arg1, %alloca[%c1] : memref<2xf32>
    cf.cond_br %arg0, ^bb1, ^bb2
  ^bb1:  // pred: ^bb0
    memref.dealloc %alloc : memref<2xf32>
    memref.store %arg1, %alloca[%c0] : memref<2xf32>
    cf.br ^bb3(%alloca, %false : memref<2xf32>, i1)
  ^bb2:  // pred: ^bb0
    memref.store %arg1, %alloc[%c0] : memref<2xf32>
    cf.br ^bb3(%alloc, %true : memref<2xf32>, i1)
  ^bb3(%0: memref<2xf32>, %1: i1):  // 2 preds: ^bb1, ^bb2
    memref.copy %0, %arg2 : memref<2xf32> to memref<2xf32>
    scf.if %1 {
      memref.dealloc %0 : memref<2xf32>
    }
    return
  }
}
