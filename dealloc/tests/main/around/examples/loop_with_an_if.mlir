// test: deallocate extensions
// at most: 5 allocations, 5 copies, 4 clones
// An iteration hands on a new buffer or the one that it got.
func.func @f(%n: index, %given: memref<2xf32>, %out: memref<2xf32>, %x: f32) {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = scf.for %k = %i to %n step %one iter_args(%b = %given) -> memref<2xf32> {
    %odd = arith.andi %k, %one : index
    %c = arith.cmpi eq, %odd, %i : index
    %e = scf.if %c -> memref<2xf32> {
      %a = memref.alloc() : memref<2xf32>
      linalg.fill ins(%x : f32) outs(%a : memref<2xf32>)
      scf.yield %a : memref<2xf32>
    } else {
      scf.yield %b : memref<2xf32>
    }
    scf.yield %e : memref<2xf32>
  }
  memref.copy %r, %out : memref<2xf32> to memref<2xf32>
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: index, %arg1: memref<2xf32>, %arg2: memref<2xf32>, %arg3: f32) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %false = arith.constant false
    %0:2 = scf.for %arg4 = %c0 to %arg0 step %c1 iter_args(%arg5 = %arg1, %arg6 = %false) -> (memref<2xf32>, i1) {
      %1 = arith.andi %arg4, %c1 : index
      %2 = arith.cmpi eq, %1, %c0 : index
      %3 = scf.if %2 -> (memref<2xf32>) {
        %alloc = memref.alloc() : memref<2xf32>
        linalg.fill ins(%arg3 : f32) outs(%alloc : memref<2xf32>)
        scf.yield %alloc : memref<2xf32>
      } else {
        scf.yield %arg5 : memref<2xf32>
      }
      %intptr = memref.extract_aligned_pointer_as_index %arg5 : memref<2xf32> -> index
      %intptr_0 = memref.extract_aligned_pointer_as_index %3 : memref<2xf32> -> index
      %4 = arith.cmpi eq, %intptr, %intptr_0 : index
      %5 = arith.andi %arg6, %4 : i1
      %6 = arith.ori %2, %5 : i1
      %7 = arith.cmpi ne, %intptr, %intptr_0 : index
      %8 = arith.andi %arg6, %7 : i1
      scf.if %8 {
        memref.dealloc %arg5 : memref<2xf32>
      }
      scf.yield %3, %6 : memref<2xf32>, i1
    }
    memref.copy %0#0, %arg2 : memref<2xf32> to memref<2xf32>
    scf.if %0#1 {
      memref.dealloc %0#0 : memref<2xf32>
    }
    return
  }
}
