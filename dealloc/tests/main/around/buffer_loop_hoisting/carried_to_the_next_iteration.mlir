// test: buffer-loop-hoisting
// Two iterations hold two buffers; what an iteration keeps to itself, with a size from outside, is made before.
func.func @f(%c: i1, %n: index, %given: memref<?xf32>) -> memref<?xf32> {
  %i = arith.constant 0 : index
  %s = arith.constant 1 : index
  %r = scf.for %k = %i to %n step %s iter_args(%b = %given) -> memref<?xf32> {
    %a = memref.alloc(%n) : memref<?xf32>
    memref.copy %b, %a : memref<?xf32> to memref<?xf32>
    %own = memref.alloc(%n) : memref<?xf32>
    memref.copy %a, %own : memref<?xf32> to memref<?xf32>
    %grows = memref.alloc(%k) : memref<?xf32>
    scf.yield %a : memref<?xf32>
  }
  scf.while : () -> () {
    %w = memref.alloca() : memref<2xf32>
    scf.condition(%c)
  } do {
    scf.yield
  }
  scf.forall (%t) in (4) {
    %p = memref.alloc() : memref<2xf32>
  }
  return %r : memref<?xf32>
}
// -----
// expect:
module {
  func.func @f(%arg0: i1, %arg1: index, %arg2: memref<?xf32>) -> memref<?xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %alloc = memref.alloc(%arg1) : memref<?xf32>
    %0 = scf.for %arg3 = %c0 to %arg1 step %c1 iter_args(%arg4 = %arg2) -> (memref<?xf32>) {
      %alloc_0 = memref.alloc(%arg1) : memref<?xf32>
      memref.copy %arg4, %alloc_0 : memref<?xf32> to memref<?xf32>
      memref.copy %alloc_0, %alloc : memref<?xf32> to memref<?xf32>
      %alloc_1 = memref.alloc(%arg3) : memref<?xf32>
      scf.yield %alloc_0 : memref<?xf32>
    }
    %alloca = memref.alloca() : memref<2xf32>
    scf.while : () -> () {
      scf.condition(%arg0)
    } do {
      scf.yield
    }
    scf.forall (%arg3) in (4) {
      %alloc_0 = memref.alloc() : memref<2xf32>
    }
    return %0 : memref<?xf32>
  }
}
