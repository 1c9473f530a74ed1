// test: copy-removal extensions
// Where one way does not copy, or reads the target, or writes the source afterwards, the copy stays.
func.func @not_always(%c: i1, %x: f32, %out: memref<2xf32>) {
  %i = arith.constant 0 : index
  %s = memref.alloc() : memref<2xf32>
  memref.store %x, %s[%i] : memref<2xf32>
  cf.cond_br %c, ^copy, ^end
^copy:
  memref.copy %s, %out : memref<2xf32> to memref<2xf32>
  cf.br ^end
^end:
  memref.dealloc %s : memref<2xf32>
  return
}
func.func @read_on_the_way(%c: i1, %x: f32, %out: memref<2xf32>) -> f32 {
  %i = arith.constant 0 : index
  %s = memref.alloc() : memref<2xf32>
  memref.store %x, %s[%i] : memref<2xf32>
  cf.cond_br %c, ^left, ^right
^left:
  %l = memref.load %out[%i] : memref<2xf32>
  cf.br ^join(%l : f32)
^right:
  cf.br ^join(%x : f32)
^join(%y: f32):
  memref.copy %s, %out : memref<2xf32> to memref<2xf32>
  memref.dealloc %s : memref<2xf32>
  return %y : f32
}
func.func @written_later(%c: i1, %x: f32, %out: memref<2xf32>) {
  %i = arith.constant 0 : index
  %s = memref.alloc() : memref<2xf32>
  cf.br ^copy
^copy:
  memref.copy %s, %out : memref<2xf32> to memref<2xf32>
  cf.cond_br %c, ^left, ^end
^left:
  memref.store %x, %s[%i] : memref<2xf32>
  cf.br ^end
^end:
  memref.dealloc %s : memref<2xf32>
  return
}
func.func @loop(%c: i1, %x: f32, %out: memref<2xf32>) {
  %i = arith.constant 0 : index
  %s = memref.alloc() : memref<2xf32>
  cf.br ^copy
^copy:
  memref.copy %s, %out : memref<2xf32> to memref<2xf32>
  cf.cond_br %c, ^copy, ^end
^end:
  memref.dealloc %s : memref<2xf32>
  return
}
// -----
// expect:
module {
  func.func @not_always(%arg0: i1, %arg1: f32, %arg2: memref<2xf32>) {
    %c0 = arith.constant 0 : index
    %alloc = memref.alloc() : memref<2xf32>
    memref.store %arg1, %alloc[%c0] : memref<2xf32>
    cf.cond_br %arg0, ^bb1, ^bb2
  ^bb1:  // pred: ^bb0
    memref.copy %alloc, %arg2 : memref<2xf32> to memref<2xf32>
    cf.br ^bb2
  ^bb2:  // 2 preds: ^bb0, ^bb1
    memref.dealloc %alloc : memref<2xf32>
    return
  }
  func.func @read_on_the_way(%arg0: i1, %arg1: f32, %arg2: memref<2xf32>) -> f32 {
    %c0 = arith.constant 0 : index
    %alloc = memref.alloc() : memref<2xf32>
    memref.store %arg1, %alloc[%c0] : memref<2xf32>
    cf.cond_br %arg0, ^bb1, ^bb2
  ^bb1:  // pred: ^bb0
    %0 = memref.load %arg2[%c0] : memref<2xf32>
    cf.br ^bb3(%0 : f32)
  ^bb2:  // pred: ^bb0
    cf.br ^bb3(%arg1 : f32)
  ^bb3(%1: f32):  // 2 preds: ^bb1, ^bb2
    memref.copy %alloc, %arg2 : memref<2xf32> to memref<2xf32>
    memref.dealloc %alloc : memref<2xf32>
    return %1 : f32
  }
  func.func @written_later(%arg0: i1, %arg1: f32, %arg2: memref<2xf32>) {
    %c0 = arith.constant 0 : index
    %alloc = memref.alloc() : memref<2xf32>
    cf.br ^bb1
  ^bb1:  // pred: ^bb0
    memref.copy %alloc, %arg2 : memref<2xf32> to memref<2xf32>
    cf.cond_br %arg0, ^bb2, ^bb3
  ^bb2:  // pred: ^bb1
    memref.store %arg1, %alloc[%c0] : memref<2xf32>
    cf.br ^bb3
  ^bb3:  // 2 preds: ^bb1, ^bb2
    memref.dealloc %alloc : memref<2xf32>
    return
  }
  func.func @loop(%arg0: i1, %arg1: f32, %arg2: memref<2xf32>) {
    %c0 = arith.constant 0 : index
    %alloc = memref.alloc() : memref<2xf32>
    cf.br ^bb1
  ^bb1:  // 2 preds: ^bb0, ^bb1
    memref.copy %alloc, %arg2 : memref<2xf32> to memref<2xf32>
    cf.cond_br %arg0, ^bb1, ^bb2
  ^bb2:  // pred: ^bb1
    memref.dealloc %alloc : memref<2xf32>
    return
  }
}
