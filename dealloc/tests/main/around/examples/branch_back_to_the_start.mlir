// test: deallocate extensions
// at most: 2 allocations, 2 copies, 1 clones
// A loop of branches hands a new buffer to its next round, which frees the one of the round before.
func.func @f(%n: index, %x: f32, %out: memref<2xf32>) {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %first = memref.alloc() : memref<2xf32>
  linalg.fill ins(%zero : f32) outs(%first : memref<2xf32>)
  cf.br ^head(%i, %first : index, memref<2xf32>)
^head(%k: index, %b: memref<2xf32>):
  %go = arith.cmpi slt, %k, %n : index
  cf.cond_br %go, ^body, ^end
^body:
  %a = memref.alloc() : memref<2xf32>
  memref.copy %b, %a : memref<2xf32> to memref<2xf32>
  %v = memref.load %b[%i] : memref<2xf32>
  %w = arith.addf %v, %x : f32
  memref.store %w, %a[%i] : memref<2xf32>
  %next = arith.addi %k, %one : index
  cf.br ^head(%next, %a : index, memref<2xf32>)
^end:
  memref.copy %b, %out : memref<2xf32> to memref<2xf32>
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: index, %arg1: f32, %arg2: memref<2xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %cst = arith.constant 0.000000e+00 : f32
    %alloc = memref.alloc() : memref<2xf32>
    linalg.fill ins(%cst : f32) outs(%alloc : memref<2xf32>)
    cf.br ^bb1(%c0, %alloc : index, memref<2xf32>)
  ^bb1(%0: index, %1: memref<2xf32>):  // 2 preds: ^bb0, ^bb2
    %2 = arith.cmpi slt, %0, %arg0 : index
    cf.cond_br %2, ^bb2, ^bb3
  ^bb2:  // pred: ^bb1
    %alloc_0 = memref.alloc() : memref<2xf32>
    memref.copy %1, %alloc_0 : memref<2xf32> to memref<2xf32>
    %3 = memref.load %1[%c0] : memref<2xf32>
    memref.dealloc %1 : memref<2xf32>
    %4 = arith.addf %3, %arg1 : f32
    memref.store %4, %alloc_0[%c0] : memref<2xf32>
    %5 = arith.addi %0, %c1 : index
    cf.br ^bb1(%5, %alloc_0 : index, memref<2xf32>)
  ^bb3:  // pred: ^bb1
    memref.copy %1, %arg2 : memref<2xf32> to memref<2xf32>
    memref.dealloc %1 : memref<2xf32>
    return
  }
}
