// test: buffer-hoisting
// A loop makes a buffer per iteration, one made of branches too; an if in the loop does not keep it.
func.func @f(%c: i1, %n: index, %given: memref<2xf32>, %out: memref<2xf32>) {
  %i = arith.constant 0 : index
  %s = arith.constant 1 : index
  %r = scf.for %k = %i to %n step %s iter_args(%b = %given) -> memref<2xf32> {
    %q = scf.if %c -> memref<2xf32> {
      %a = memref.alloc() : memref<2xf32>
      memref.copy %b, %a : memref<2xf32> to memref<2xf32>
      scf.yield %a : memref<2xf32>
    } else {
      scf.yield %b : memref<2xf32>
    }
    scf.yield %q : memref<2xf32>
  }
  memref.copy %r, %out : memref<2xf32> to memref<2xf32>
  return
}
func.func @g(%c: i1, %d: i1, %given: memref<2xf32>, %out: memref<2xf32>) {
  cf.cond_br %c, ^loop(%given : memref<2xf32>), ^end(%given : memref<2xf32>)
^loop(%b: memref<2xf32>):
  %a = memref.alloc() : memref<2xf32>
  memref.copy %b, %a : memref<2xf32> to memref<2xf32>
  cf.cond_br %d, ^loop(%a : memref<2xf32>), ^end(%a : memref<2xf32>)
^end(%e: memref<2xf32>):
  memref.copy %e, %out : memref<2xf32> to memref<2xf32>
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: i1, %arg1: index, %arg2: memref<2xf32>, %arg3: memref<2xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %0 = scf.for %arg4 = %c0 to %arg1 step %c1 iter_args(%arg5 = %arg2) -> (memref<2xf32>) {
      %alloc = memref.alloc() : memref<2xf32>
      %1 = scf.if %arg0 -> (memref<2xf32>) {
        memref.copy %arg5, %alloc : memref<2xf32> to memref<2xf32>
        scf.yield %alloc : memref<2xf32>
      } else {
        scf.yield %arg5 : memref<2xf32>
      }
      scf.yield %1 : memref<2xf32>
    }
    memref.copy %0, %arg3 : memref<2xf32> to memref<2xf32>
    return
  }
  func.func @g(%arg0: i1, %arg1: i1, %arg2: memref<2xf32>, %arg3: memref<2xf32>) {
    cf.cond_br %arg0, ^bb1(%arg2 : memref<2xf32>), ^bb2(%arg2 : memref<2xf32>)
  ^bb1(%0: memref<2xf32>):  // 2 preds: ^bb0, ^bb1
    %alloc = memref.alloc() : memref<2xf32>
    memref.copy %0, %alloc : memref<2xf32> to memref<2xf32>
    cf.cond_br %arg1, ^bb1(%alloc : memref<2xf32>), ^bb2(%alloc : memref<2xf32>)
  ^bb2(%1: memref<2xf32>):  // 2 preds: ^bb0, ^bb1
    memref.copy %1, %arg3 : memref<2xf32> to memref<2xf32>
    return
  }
}
