// test: buffer-hoisting extensions
// A buffer freed in its own branch stays there: the other branch would not free it.
func.func @f(%c: i1, %given: memref<2xf32>, %out: memref<2xf32>) {
  %t = arith.constant true
  %f = arith.constant false
  %r, %o = scf.if %c -> (memref<2xf32>, i1) {
    %a = memref.alloc() : memref<2xf32>
    memref.copy %given, %a : memref<2xf32> to memref<2xf32>
    scf.yield %a, %t : memref<2xf32>, i1
  } else {
    scf.yield %given, %f : memref<2xf32>, i1
  }
  memref.copy %r, %out : memref<2xf32> to memref<2xf32>
  scf.if %o {
    memref.dealloc %r : memref<2xf32>
  }
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: i1, %arg1: memref<2xf32>, %arg2: memref<2xf32>) {
    %true = arith.constant true
    %false = arith.constant false
    %0:2 = scf.if %arg0 -> (memref<2xf32>, i1) {
      %alloc = memref.alloc() : memref<2xf32>
      memref.copy %arg1, %alloc : memref<2xf32> to memref<2xf32>
      scf.yield %alloc, %true : memref<2xf32>, i1
    } else {
      scf.yield %arg1, %false : memref<2xf32>, i1
    }
    memref.copy %0#0, %arg2 : memref<2xf32> to memref<2xf32>
    scf.if %0#1 {
      memref.dealloc %0#0 : memref<2xf32>
    }
    return
  }
}
