// test: buffer-loop-hoisting
// The free goes behind the loops that the buffer leaves.
func.func @f(%n: index, %given: memref<2xf32>, %out: memref<2xf32>) {
  %i = arith.constant 0 : index
  %s = arith.constant 1 : index
  scf.for %k = %i to %n step %s {
    scf.for %l = %i to %n step %s {
      %a = memref.alloc() : memref<2xf32>
      memref.copy %given, %a : memref<2xf32> to memref<2xf32>
      memref.copy %a, %out : memref<2xf32> to memref<2xf32>
      memref.dealloc %a : memref<2xf32>
    }
  }
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: index, %arg1: memref<2xf32>, %arg2: memref<2xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %alloc = memref.alloc() : memref<2xf32>
    scf.for %arg3 = %c0 to %arg0 step %c1 {
      scf.for %arg4 = %c0 to %arg0 step %c1 {
        memref.copy %arg1, %alloc : memref<2xf32> to memref<2xf32>
        memref.copy %alloc, %arg2 : memref<2xf32> to memref<2xf32>
      }
    }
    memref.dealloc %alloc : memref<2xf32>
    return
  }
}
