// test: deallocate only-lower
// at most: 2 allocations, 1 copies, 0 clones
// One buffer and two that may be the same: each is compared.
func.func @f(%c: i1, %x: f32, %out: memref<2xf32>, %given: memref<2xf32>) {
  %a = memref.alloc() : memref<2xf32>
  linalg.fill ins(%x : f32) outs(%a : memref<2xf32>)
  %e = arith.select %c, %a, %given : memref<2xf32>
  %true = arith.constant true
  %o:2 = bufferization.dealloc (%a : memref<2xf32>) if (%true) retain (%e, %out : memref<2xf32>, memref<2xf32>)
  memref.copy %e, %out : memref<2xf32> to memref<2xf32>
  %no = arith.xori %o#1, %true : i1
  %free = arith.andi %o#0, %no : i1
  scf.if %free {
    memref.dealloc %e : memref<2xf32>
  }
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: i1, %arg1: f32, %arg2: memref<2xf32>, %arg3: memref<2xf32>) {
    %alloc = memref.alloc() : memref<2xf32>
    linalg.fill ins(%arg1 : f32) outs(%alloc : memref<2xf32>)
    %0 = arith.select %arg0, %alloc, %arg3 : memref<2xf32>
    %intptr = memref.extract_aligned_pointer_as_index %alloc : memref<2xf32> -> index
    %intptr_0 = memref.extract_aligned_pointer_as_index %0 : memref<2xf32> -> index
    %1 = arith.cmpi ne, %intptr, %intptr_0 : index
    %intptr_1 = memref.extract_aligned_pointer_as_index %arg2 : memref<2xf32> -> index
    %2 = arith.cmpi ne, %intptr, %intptr_1 : index
    %3 = arith.andi %1, %2 : i1
    scf.if %3 {
      memref.dealloc %alloc : memref<2xf32>
    }
    %4 = arith.cmpi eq, %intptr, %intptr_0 : index
    memref.copy %0, %arg2 : memref<2xf32> to memref<2xf32>
    %5 = arith.cmpi ne, %intptr, %intptr_1 : index
    %6 = arith.andi %4, %5 : i1
    scf.if %6 {
      memref.dealloc %0 : memref<2xf32>
    }
    return
  }
}
