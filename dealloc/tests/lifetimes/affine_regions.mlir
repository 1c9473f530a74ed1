// test: ownership 
// Loops and choices of affine, and a scope of the stack, pass buffers as those of scf do.

#positive = affine_set<(d0) : (d0 - 1 >= 0)>

func.func @main(%m: memref<4xf32>, %n: memref<4xf32>, %c: i1, %d: i1, %k: index, %s: i32) -> memref<4xf32> {
  %last = affine.for %i = 0 to %k iter_args(%a = %m) -> (memref<4xf32>) {
    %next = memref.alloc() : memref<4xf32>
    memref.copy %a, %next : memref<4xf32> to memref<4xf32>
    affine.yield %next : memref<4xf32>
  }
  %chosen = affine.if #positive(%k) -> memref<4xf32> {
    affine.yield %last : memref<4xf32>
  } else {
    affine.yield %n : memref<4xf32>
  }
  %r = memref.alloca_scope -> (memref<4xf32>) {
    %t = memref.alloc() : memref<4xf32>
    memref.copy %chosen, %t : memref<4xf32> to memref<4xf32>
    memref.alloca_scope.return %t : memref<4xf32>
  }
  return %r : memref<4xf32>
}
// -----
// expect:
#set = affine_set<(d0) : (d0 - 1 >= 0)>
module {
  func.func @main(%arg0: memref<4xf32>, %arg1: memref<4xf32>, %arg2: i1, %arg3: i1, %arg4: index, %arg5: i32) -> memref<4xf32> {
    %false = arith.constant false
    %0:2 = affine.for %arg6 = 0 to %arg4 iter_args(%arg7 = %arg0, %arg8 = %false) -> (memref<4xf32>, i1) {
      %alloc = memref.alloc() : memref<4xf32>
      memref.copy %arg7, %alloc : memref<4xf32> to memref<4xf32>
      scf.if %arg8 {
        memref.dealloc %arg7 : memref<4xf32>
      }
      %true = arith.constant true
      affine.yield %alloc, %true : memref<4xf32>, i1
    }
    %1 = affine.if #set(%arg4) -> memref<4xf32> {
      affine.yield %0#0 : memref<4xf32>
    } else {
      affine.yield %arg1 : memref<4xf32>
    }
    %2 = memref.alloca_scope  -> (memref<4xf32>) {
      %alloc = memref.alloc() : memref<4xf32>
      memref.copy %1, %alloc : memref<4xf32> to memref<4xf32>
      memref.alloca_scope.return %alloc : memref<4xf32>
    }
    scf.if %0#1 {
      memref.dealloc %0#0 : memref<4xf32>
    }
    return %2 : memref<4xf32>
  }
}
