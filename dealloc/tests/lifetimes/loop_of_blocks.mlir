// test: ownership 
// A loop of blocks: what the next iteration gets is its own, and the buffer before is freed behind its last use.

func.func @f(%n: index, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<4xf32>
  cf.br ^loop(%c0, %a : index, memref<4xf32>)
^loop(%i: index, %p: memref<4xf32>):
  %next = memref.alloc() : memref<4xf32>
  memref.copy %p, %next : memref<4xf32> to memref<4xf32>
  linalg.fill ins(%x : f32) outs(%next : memref<4xf32>)
  %j = arith.addi %i, %c1 : index
  %more = arith.cmpi slt, %j, %n : index
  cf.cond_br %more, ^loop(%j, %next : index, memref<4xf32>), ^done
^done:
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: index, %arg1: f32) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %alloc = memref.alloc() : memref<4xf32>
    cf.br ^bb1(%c0, %alloc : index, memref<4xf32>)
  ^bb1(%0: index, %1: memref<4xf32>):  // 2 preds: ^bb0, ^bb1
    %alloc_0 = memref.alloc() : memref<4xf32>
    memref.copy %1, %alloc_0 : memref<4xf32> to memref<4xf32>
    memref.dealloc %1 : memref<4xf32>
    linalg.fill ins(%arg1 : f32) outs(%alloc_0 : memref<4xf32>)
    %2 = arith.addi %0, %c1 : index
    %3 = arith.cmpi slt, %2, %arg0 : index
    cf.cond_br %3, ^bb1(%2, %alloc_0 : index, memref<4xf32>), ^bb2
  ^bb2:  // pred: ^bb1
    memref.dealloc %alloc_0 : memref<4xf32>
    return
  }
}
