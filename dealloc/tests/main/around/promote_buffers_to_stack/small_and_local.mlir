// test: promote-buffers-to-stack max-alloc-size-in-bytes=64
// Small buffers that stay in the function, or in the iteration, go to the stack.
func.func @f(%c: i1, %n: index, %x: f32, %out: memref<16xf32>) -> memref<4xf32> {
  %i = arith.constant 0 : index
  %s = arith.constant 1 : index
  %local = memref.alloc() {alignment = 32 : i64} : memref<16xf32>
  %large = memref.alloc() : memref<17xf32>
  %returned = memref.alloc() : memref<4xf32>
  %dynamic = memref.alloc(%n) : memref<?xf32>
  memref.copy %local, %out : memref<16xf32> to memref<16xf32>
  %r = scf.for %k = %i to %n step %s iter_args(%b = %returned) -> memref<4xf32> {
    %inner = memref.alloc() : memref<4xf32>
    memref.store %x, %inner[%i] : memref<4xf32>
    %carried = memref.alloc() : memref<4xf32>
    memref.copy %inner, %carried : memref<4xf32> to memref<4xf32>
    scf.yield %carried : memref<4xf32>
  }
  scf.while : () -> () {
    %again = memref.alloc() : memref<4xf32>
    scf.condition(%c)
  } do {
    scf.yield
  }
  return %r : memref<4xf32>
}
// -----
// expect:
module {
  func.func @f(%arg0: i1, %arg1: index, %arg2: f32, %arg3: memref<16xf32>) -> memref<4xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %alloca = memref.alloca() {alignment = 32 : i64} : memref<16xf32>
    %alloc = memref.alloc() : memref<17xf32>
    %alloc_0 = memref.alloc() : memref<4xf32>
    %alloc_1 = memref.alloc(%arg1) : memref<?xf32>
    memref.copy %alloca, %arg3 : memref<16xf32> to memref<16xf32>
    %0 = scf.for %arg4 = %c0 to %arg1 step %c1 iter_args(%arg5 = %alloc_0) -> (memref<4xf32>) {
      %alloca_2 = memref.alloca() : memref<4xf32>
      memref.store %arg2, %alloca_2[%c0] : memref<4xf32>
      %alloc_3 = memref.alloc() : memref<4xf32>
      memref.copy %alloca_2, %alloc_3 : memref<4xf32> to memref<4xf32>
      scf.yield %alloc_3 : memref<4xf32>
    }
    scf.while : () -> () {
      %alloc_2 = memref.alloc() : memref<4xf32>
      scf.condition(%arg0)
    } do {
      scf.yield
    }
    return %0 : memref<4xf32>
  }
}
