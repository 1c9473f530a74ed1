// test: deallocate only-lower extensions
// at most: 2 allocations, 1 copies, 0 clones
// Two buffers of which two may live on: pointers are compared where they are, nothing is allocated for it.
func.func @f(%c: i1, %d: i1, %x: f32, %out: memref<2xf32>) {
  %i = arith.constant 0 : index
  %a = memref.alloc() : memref<2xf32>
  linalg.fill ins(%x : f32) outs(%a : memref<2xf32>)
  %b = memref.alloc() : memref<2xf32>
  linalg.fill ins(%x : f32) outs(%b : memref<2xf32>)
  %e = arith.select %c, %a, %b : memref<2xf32>
  %g = arith.select %d, %a, %b : memref<2xf32>
  %true = arith.constant true
  %o:2 = bufferization.dealloc (%a, %b : memref<2xf32>, memref<2xf32>) if (%true, %true) retain (%e, %g : memref<2xf32>, memref<2xf32>)
  memref.copy %e, %out : memref<2xf32> to memref<2xf32>
  bufferization.dealloc (%e, %g : memref<2xf32>, memref<2xf32>) if (%o#0, %o#1)
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: i1, %arg1: i1, %arg2: f32, %arg3: memref<2xf32>) {
    %true = arith.constant true
    %alloc = memref.alloc() : memref<2xf32>
    linalg.fill ins(%arg2 : f32) outs(%alloc : memref<2xf32>)
    %alloc_0 = memref.alloc() : memref<2xf32>
    linalg.fill ins(%arg2 : f32) outs(%alloc_0 : memref<2xf32>)
    %0 = arith.select %arg0, %alloc, %alloc_0 : memref<2xf32>
    %1 = arith.select %arg1, %alloc, %alloc_0 : memref<2xf32>
    %intptr = memref.extract_aligned_pointer_as_index %alloc : memref<2xf32> -> index
    %intptr_1 = memref.extract_aligned_pointer_as_index %alloc_0 : memref<2xf32> -> index
    %intptr_2 = memref.extract_aligned_pointer_as_index %0 : memref<2xf32> -> index
    %intptr_3 = memref.extract_aligned_pointer_as_index %1 : memref<2xf32> -> index
    %2 = arith.cmpi eq, %intptr, %intptr_2 : index
    %3 = arith.cmpi eq, %intptr, %intptr_3 : index
    %4 = arith.ori %2, %3 : i1
    %5 = arith.xori %4, %true : i1
    %6 = arith.cmpi eq, %intptr_1, %intptr_2 : index
    %7 = arith.ori %2, %6 : i1
    %8 = arith.cmpi eq, %intptr_1, %intptr_3 : index
    %9 = arith.ori %3, %8 : i1
    %10 = arith.ori %6, %8 : i1
    %11 = arith.cmpi eq, %intptr_1, %intptr : index
    %12 = arith.ori %10, %11 : i1
    %13 = arith.xori %12, %true : i1
    scf.if %5 {
      memref.dealloc %alloc : memref<2xf32>
    }
    scf.if %13 {
      memref.dealloc %alloc_0 : memref<2xf32>
    }
    memref.copy %0, %arg3 : memref<2xf32> to memref<2xf32>
    %14 = arith.cmpi eq, %intptr_3, %intptr_2 : index
    %15 = arith.andi %14, %7 : i1
    %16 = arith.xori %15, %true : i1
    %17 = arith.andi %16, %9 : i1
    scf.if %7 {
      memref.dealloc %0 : memref<2xf32>
    }
    scf.if %17 {
      memref.dealloc %1 : memref<2xf32>
    }
    return
  }
}
