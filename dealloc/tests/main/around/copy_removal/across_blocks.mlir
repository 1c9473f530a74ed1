// test: copy-removal extensions
// The buffers are made before a branch, and copied and freed where the branches meet; the second copy goes to an argument.
func.func @source(%c: i1, %x: f32, %y: f32) -> memref<2xf32> {
  %i = arith.constant 0 : index
  %s = memref.alloc() : memref<2xf32>
  %t = memref.alloc() : memref<2xf32>
  cf.cond_br %c, ^left, ^right
^left:
  memref.store %x, %s[%i] : memref<2xf32>
  cf.br ^join
^right:
  memref.store %y, %s[%i] : memref<2xf32>
  cf.br ^join
^join:
  memref.copy %s, %t : memref<2xf32> to memref<2xf32>
  cf.br ^end
^end:
  memref.dealloc %s : memref<2xf32>
  return %t : memref<2xf32>
}
func.func @target(%c: i1, %x: f32, %y: f32, %out: memref<2xf32>) {
  %i = arith.constant 0 : index
  %s = memref.alloc() : memref<2xf32>
  cf.cond_br %c, ^left, ^right
^left:
  memref.store %x, %s[%i] : memref<2xf32>
  cf.br ^join
^right:
  memref.store %y, %s[%i] : memref<2xf32>
  cf.br ^join
^join:
  memref.copy %s, %out : memref<2xf32> to memref<2xf32>
  memref.dealloc %s : memref<2xf32>
  return
}
// -----
// expect:
module {
  func.func @source(%arg0: i1, %arg1: f32, %arg2: f32) -> memref<2xf32> {
    %c0 = arith.constant 0 : index
    %alloc = memref.alloc() : memref<2xf32>
    cf.cond_br %arg0, ^bb1, ^bb2
  ^bb1:  // pred: ^bb0
    memref.store %arg1, %alloc[%c0] : memref<2xf32>
    cf.br ^bb3
  ^bb2:  // pred: ^bb0
    memref.store %arg2, %alloc[%c0] : memref<2xf32>
    cf.br ^bb3
  ^bb3:  // 2 preds: ^bb1, ^bb2
    cf.br ^bb4
  ^bb4:  // pred: ^bb3
    return %alloc : memref<2xf32>
  }
  func.func @target(%arg0: i1, %arg1: f32, %arg2: f32, %arg3: memref<2xf32>) {
    %c0 = arith.constant 0 : index
    cf.cond_br %arg0, ^bb1, ^bb2
  ^bb1:  // pred: ^bb0
    memref.store %arg1, %arg3[%c0] : memref<2xf32>
    cf.br ^bb3
  ^bb2:  // pred: ^bb0
    memref.store %arg2, %arg3[%c0] : memref<2xf32>
    cf.br ^bb3
  ^bb3:  // 2 preds: ^bb1, ^bb2
    return
  }
}
