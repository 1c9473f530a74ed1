// test: promote-buffers-to-stack
// Escaping buffers stay on the heap: stored in memory, or by address; and those allocated in a loop of blocks.
func.func @f(%c: i1, %holder: memref<memref<2xf32>>) -> index {
  %stored = memref.alloc() : memref<2xf32>
  memref.store %stored, %holder[] : memref<memref<2xf32>>
  %seen = memref.alloc() : memref<2xf32>
  %address = memref.extract_aligned_pointer_as_index %seen : memref<2xf32> -> index
  %next = arith.addi %address, %address : index
  cf.br ^loop
^loop:
  %again = memref.alloc() : memref<2xf32>
  cf.cond_br %c, ^loop, ^end
^end:
  return %next : index
}
// -----
// expect:
module {
  func.func @f(%arg0: i1, %arg1: memref<memref<2xf32>>) -> index {
    %alloc = memref.alloc() : memref<2xf32>
    memref.store %alloc, %arg1[] : memref<memref<2xf32>>
    %alloc_0 = memref.alloc() : memref<2xf32>
    %intptr = memref.extract_aligned_pointer_as_index %alloc_0 : memref<2xf32> -> index
    %0 = arith.addi %intptr, %intptr : index
    cf.br ^bb1
  ^bb1:  // 2 preds: ^bb0, ^bb1
    %alloc_1 = memref.alloc() : memref<2xf32>
    cf.cond_br %arg0, ^bb1, ^bb2
  ^bb2:  // pred: ^bb1
    return %0 : index
  }
}
