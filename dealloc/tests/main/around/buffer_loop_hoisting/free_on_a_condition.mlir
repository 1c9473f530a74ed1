// test: buffer-loop-hoisting
// A buffer that an iteration may keep, or frees under another name, stays in the loop.
func.func @f(%c: i1, %n: index, %given: memref<2xf32>, %out: memref<2xf32>) {
  %i = arith.constant 0 : index
  %s = arith.constant 1 : index
  scf.for %k = %i to %n step %s {
    %a = memref.alloc() : memref<2xf32>
    memref.copy %given, %a : memref<2xf32> to memref<2xf32>
    scf.if %c {
      memref.dealloc %a : memref<2xf32>
    } else {
      memref.copy %a, %out : memref<2xf32> to memref<2xf32>
      memref.dealloc %a : memref<2xf32>
    }
    %b = memref.alloc() : memref<2xf32>
    %v = memref.cast %b : memref<2xf32> to memref<?xf32>
    memref.dealloc %v : memref<?xf32>
  }
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: i1, %arg1: index, %arg2: memref<2xf32>, %arg3: memref<2xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %arg4 = %c0 to %arg1 step %c1 {
      %alloc = memref.alloc() : memref<2xf32>
      memref.copy %arg2, %alloc : memref<2xf32> to memref<2xf32>
      scf.if %arg0 {
        memref.dealloc %alloc : memref<2xf32>
      } else {
        memref.copy %alloc, %arg3 : memref<2xf32> to memref<2xf32>
        memref.dealloc %alloc : memref<2xf32>
      }
      %alloc_0 = memref.alloc() : memref<2xf32>
      %cast = memref.cast %alloc_0 : memref<2xf32> to memref<?xf32>
      memref.dealloc %cast : memref<?xf32>
    }
    return
  }
}
