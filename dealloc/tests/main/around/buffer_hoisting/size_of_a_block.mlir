// test: buffer-hoisting
// A size that one block has keeps the buffer there, through nested branches.
func.func @f(%c: i1, %d: i1, %given: memref<?xf32>, %out: memref<?xf32>, %n: index) {
  cf.cond_br %c, ^keep, ^make(%n : index)
^keep:
  cf.br ^join(%given : memref<?xf32>)
^make(%size: index):
  %a = memref.alloc(%size) : memref<?xf32>
  memref.copy %given, %a : memref<?xf32> to memref<?xf32>
  cf.cond_br %d, ^left, ^right
^left:
  cf.br ^inner(%a : memref<?xf32>)
^right:
  cf.br ^inner(%a : memref<?xf32>)
^inner(%b: memref<?xf32>):
  cf.br ^join(%b : memref<?xf32>)
^join(%either: memref<?xf32>):
  memref.copy %either, %out : memref<?xf32> to memref<?xf32>
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: i1, %arg1: i1, %arg2: memref<?xf32>, %arg3: memref<?xf32>, %arg4: index) {
    cf.cond_br %arg0, ^bb1, ^bb2(%arg4 : index)
  ^bb1:  // pred: ^bb0
    cf.br ^bb6(%arg2 : memref<?xf32>)
  ^bb2(%0: index):  // pred: ^bb0
    %alloc = memref.alloc(%0) : memref<?xf32>
    memref.copy %arg2, %alloc : memref<?xf32> to memref<?xf32>
    cf.cond_br %arg1, ^bb3, ^bb4
  ^bb3:  // pred: ^bb2
    cf.br ^bb5(%alloc : memref<?xf32>)
  ^bb4:  // pred: ^bb2
    cf.br ^bb5(%alloc : memref<?xf32>)
  ^bb5(%1: memref<?xf32>):  // 2 preds: ^bb3, ^bb4
    cf.br ^bb6(%1 : memref<?xf32>)
  ^bb6(%2: memref<?xf32>):  // 2 preds: ^bb1, ^bb5
    memref.copy %2, %arg3 : memref<?xf32> to memref<?xf32>
    return
  }
}
