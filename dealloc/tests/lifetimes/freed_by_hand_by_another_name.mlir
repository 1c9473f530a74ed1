// test: ownership 
// One of two buffers is freed by hand: pointers tell which one is left.

func.func @f(%c: i1, %x: f32) {
  %a = memref.alloc() : memref<4xf32>
  %b = memref.alloc() : memref<4xf32>
  %p = arith.select %c, %a, %b : memref<4xf32>
  linalg.fill ins(%x : f32) outs(%p : memref<4xf32>)
  memref.dealloc %p : memref<4xf32>
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: i1, %arg1: f32) {
    %alloc = memref.alloc() : memref<4xf32>
    %alloc_0 = memref.alloc() : memref<4xf32>
    %0 = arith.select %arg0, %alloc, %alloc_0 : memref<4xf32>
    linalg.fill ins(%arg1 : f32) outs(%0 : memref<4xf32>)
    %intptr = memref.extract_aligned_pointer_as_index %0 : memref<4xf32> -> index
    %intptr_1 = memref.extract_aligned_pointer_as_index %alloc : memref<4xf32> -> index
    %1 = arith.cmpi eq, %intptr, %intptr_1 : index
    %true = arith.constant true
    %2 = arith.xori %1, %true : i1
    %true_2 = arith.constant true
    %3 = arith.andi %true_2, %2 : i1
    %intptr_3 = memref.extract_aligned_pointer_as_index %0 : memref<4xf32> -> index
    %intptr_4 = memref.extract_aligned_pointer_as_index %alloc_0 : memref<4xf32> -> index
    %4 = arith.cmpi eq, %intptr_3, %intptr_4 : index
    %true_5 = arith.constant true
    %5 = arith.xori %4, %true_5 : i1
    %true_6 = arith.constant true
    %6 = arith.andi %true_6, %5 : i1
    memref.dealloc %0 : memref<4xf32>
    scf.if %3 {
      memref.dealloc %alloc : memref<4xf32>
    }
    scf.if %6 {
      memref.dealloc %alloc_0 : memref<4xf32>
    }
    return
  }
}
