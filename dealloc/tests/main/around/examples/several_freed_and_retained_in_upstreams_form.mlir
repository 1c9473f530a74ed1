// test: deallocate only-lower
// at most: 12 allocations, 1 copies, 0 clones
// The same by way of lists on the heap and a helper function.
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
    %c1 = arith.constant 1 : index
    %c0 = arith.constant 0 : index
    %true = arith.constant true
    %alloc = memref.alloc() : memref<2xf32>
    linalg.fill ins(%arg2 : f32) outs(%alloc : memref<2xf32>)
    %alloc_0 = memref.alloc() : memref<2xf32>
    linalg.fill ins(%arg2 : f32) outs(%alloc_0 : memref<2xf32>)
    %0 = arith.select %arg0, %alloc, %alloc_0 : memref<2xf32>
    %1 = arith.select %arg1, %alloc, %alloc_0 : memref<2xf32>
    %alloc_1 = memref.alloc() : memref<2xindex>
    %alloc_2 = memref.alloc() : memref<2xi1>
    %alloc_3 = memref.alloc() : memref<2xindex>
    %intptr = memref.extract_aligned_pointer_as_index %alloc : memref<2xf32> -> index
    memref.store %intptr, %alloc_1[%c0] : memref<2xindex>
    %intptr_4 = memref.extract_aligned_pointer_as_index %alloc_0 : memref<2xf32> -> index
    memref.store %intptr_4, %alloc_1[%c1] : memref<2xindex>
    memref.store %true, %alloc_2[%c0] : memref<2xi1>
    memref.store %true, %alloc_2[%c1] : memref<2xi1>
    %intptr_5 = memref.extract_aligned_pointer_as_index %0 : memref<2xf32> -> index
    memref.store %intptr_5, %alloc_3[%c0] : memref<2xindex>
    %intptr_6 = memref.extract_aligned_pointer_as_index %1 : memref<2xf32> -> index
    memref.store %intptr_6, %alloc_3[%c1] : memref<2xindex>
    %cast = memref.cast %alloc_1 : memref<2xindex> to memref<?xindex>
    %cast_7 = memref.cast %alloc_2 : memref<2xi1> to memref<?xi1>
    %cast_8 = memref.cast %alloc_3 : memref<2xindex> to memref<?xindex>
    %alloc_9 = memref.alloc() : memref<2xi1>
    %alloc_10 = memref.alloc() : memref<2xi1>
    %cast_11 = memref.cast %alloc_9 : memref<2xi1> to memref<?xi1>
    %cast_12 = memref.cast %alloc_10 : memref<2xi1> to memref<?xi1>
    call @dealloc_helper(%cast, %cast_8, %cast_7, %cast_11, %cast_12) : (memref<?xindex>, memref<?xindex>, memref<?xi1>, memref<?xi1>, memref<?xi1>) -> ()
    %2 = memref.load %alloc_9[%c0] : memref<2xi1>
    scf.if %2 {
      memref.dealloc %alloc : memref<2xf32>
    }
    %3 = memref.load %alloc_9[%c1] : memref<2xi1>
    scf.if %3 {
      memref.dealloc %alloc_0 : memref<2xf32>
    }
    %4 = memref.load %alloc_10[%c0] : memref<2xi1>
    %5 = memref.load %alloc_10[%c1] : memref<2xi1>
    memref.dealloc %alloc_1 : memref<2xindex>
    memref.dealloc %alloc_3 : memref<2xindex>
    memref.dealloc %alloc_2 : memref<2xi1>
    memref.dealloc %alloc_9 : memref<2xi1>
    memref.dealloc %alloc_10 : memref<2xi1>
    memref.copy %0, %arg3 : memref<2xf32> to memref<2xf32>
    %alloc_13 = memref.alloc() : memref<2xindex>
    %alloc_14 = memref.alloc() : memref<2xi1>
    %alloc_15 = memref.alloc() : memref<0xindex>
    memref.store %intptr_5, %alloc_13[%c0] : memref<2xindex>
    memref.store %intptr_6, %alloc_13[%c1] : memref<2xindex>
    memref.store %4, %alloc_14[%c0] : memref<2xi1>
    memref.store %5, %alloc_14[%c1] : memref<2xi1>
    %cast_16 = memref.cast %alloc_13 : memref<2xindex> to memref<?xindex>
    %cast_17 = memref.cast %alloc_14 : memref<2xi1> to memref<?xi1>
    %cast_18 = memref.cast %alloc_15 : memref<0xindex> to memref<?xindex>
    %alloc_19 = memref.alloc() : memref<2xi1>
    %alloc_20 = memref.alloc() : memref<0xi1>
    %cast_21 = memref.cast %alloc_19 : memref<2xi1> to memref<?xi1>
    %cast_22 = memref.cast %alloc_20 : memref<0xi1> to memref<?xi1>
    call @dealloc_helper(%cast_16, %cast_18, %cast_17, %cast_21, %cast_22) : (memref<?xindex>, memref<?xindex>, memref<?xi1>, memref<?xi1>, memref<?xi1>) -> ()
    %6 = memref.load %alloc_19[%c0] : memref<2xi1>
    scf.if %6 {
      memref.dealloc %0 : memref<2xf32>
    }
    %7 = memref.load %alloc_19[%c1] : memref<2xi1>
    scf.if %7 {
      memref.dealloc %1 : memref<2xf32>
    }
    memref.dealloc %alloc_13 : memref<2xindex>
    memref.dealloc %alloc_15 : memref<0xindex>
    memref.dealloc %alloc_14 : memref<2xi1>
    memref.dealloc %alloc_19 : memref<2xi1>
    memref.dealloc %alloc_20 : memref<0xi1>
    return
  }
  func.func private @dealloc_helper(%arg0: memref<?xindex>, %arg1: memref<?xindex>, %arg2: memref<?xi1>, %arg3: memref<?xi1>, %arg4: memref<?xi1>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %true = arith.constant true
    %false = arith.constant false
    %dim = memref.dim %arg0, %c0 : memref<?xindex>
    %dim_0 = memref.dim %arg1, %c0 : memref<?xindex>
    scf.for %arg5 = %c0 to %dim_0 step %c1 {
      memref.store %false, %arg4[%arg5] : memref<?xi1>
    }
    scf.for %arg5 = %c0 to %dim step %c1 {
      %0 = memref.load %arg0[%arg5] : memref<?xindex>
      %1 = memref.load %arg2[%arg5] : memref<?xi1>
      %2 = scf.for %arg6 = %c0 to %dim_0 step %c1 iter_args(%arg7 = %true) -> (i1) {
        %5 = memref.load %arg1[%arg6] : memref<?xindex>
        %6 = arith.cmpi eq, %5, %0 : index
        scf.if %6 {
          %9 = memref.load %arg4[%arg6] : memref<?xi1>
          %10 = arith.ori %9, %1 : i1
          memref.store %10, %arg4[%arg6] : memref<?xi1>
        }
        %7 = arith.cmpi ne, %5, %0 : index
        %8 = arith.andi %arg7, %7 : i1
        scf.yield %8 : i1
      }
      %3 = scf.for %arg6 = %c0 to %arg5 step %c1 iter_args(%arg7 = %2) -> (i1) {
        %5 = memref.load %arg0[%arg6] : memref<?xindex>
        %6 = arith.cmpi ne, %5, %0 : index
        %7 = arith.andi %arg7, %6 : i1
        scf.yield %7 : i1
      }
      %4 = arith.andi %3, %1 : i1
      memref.store %4, %arg3[%arg5] : memref<?xi1>
    }
    return
  }
}
