// test: ownership 
// A loop of blocks that carries an argument first and buffers later compares nothing.

func.func @f(%b: memref<4xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  cf.br ^loop(%c0, %b : index, memref<4xf32>)
^loop(%i: index, %p: memref<4xf32>):
  %next = memref.alloc() : memref<4xf32>
  memref.copy %p, %next : memref<4xf32> to memref<4xf32>
  %j = arith.addi %i, %c1 : index
  %more = arith.cmpi slt, %j, %n : index
  cf.cond_br %more, ^loop(%j, %next : index, memref<4xf32>), ^done
^done:
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: memref<4xf32>, %arg1: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %false = arith.constant false
    cf.br ^bb1(%c0, %arg0, %false : index, memref<4xf32>, i1)
  ^bb1(%0: index, %1: memref<4xf32>, %2: i1):  // 2 preds: ^bb0, ^bb1
    %alloc = memref.alloc() : memref<4xf32>
    memref.copy %1, %alloc : memref<4xf32> to memref<4xf32>
    scf.if %2 {
      memref.dealloc %1 : memref<4xf32>
    }
    %3 = arith.addi %0, %c1 : index
    %4 = arith.cmpi slt, %3, %arg1 : index
    %true = arith.constant true
    cf.cond_br %4, ^bb1(%3, %alloc, %true : index, memref<4xf32>, i1), ^bb2
  ^bb2:  // pred: ^bb1
    memref.dealloc %alloc : memref<4xf32>
    return
  }
}
