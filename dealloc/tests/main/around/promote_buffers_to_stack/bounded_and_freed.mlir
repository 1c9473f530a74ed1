// test: promote-buffers-to-stack extensions
// A size with a constant bound takes as much stack; what is freed goes without its frees.
func.func @f(%c: i1, %n: index, %x: f32, %out: memref<8xf32>) {
  %i = arith.constant 0 : index
  %eight = arith.constant 8 : index
  %size = arith.minui %n, %eight : index
  %bounded = memref.alloc(%size) : memref<?x4xf32>
  memref.store %x, %bounded[%i, %i] : memref<?x4xf32>
  memref.dealloc %bounded : memref<?x4xf32>
  %twice = memref.alloc() : memref<8xf32>
  scf.if %c {
    memref.dealloc %twice : memref<8xf32>
  } else {
    %v = memref.cast %twice : memref<8xf32> to memref<?xf32>
    memref.dealloc %v : memref<?xf32>
  }
  %maybe = memref.alloc() : memref<8xf32>
  %either = arith.select %c, %maybe, %out : memref<8xf32>
  memref.dealloc %either : memref<8xf32>
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: i1, %arg1: index, %arg2: f32, %arg3: memref<8xf32>) {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %0 = arith.minui %arg1, %c8 : index
    %alloca = memref.alloca() : memref<8x4xf32>
    %c4 = arith.constant 4 : index
    %1 = arith.muli %c4, %0 : index
    %reinterpret_cast = memref.reinterpret_cast %alloca to offset: [0], sizes: [%0, 4], strides: [4, 1] : memref<8x4xf32> to memref<?x4xf32>
    memref.store %arg2, %reinterpret_cast[%c0, %c0] : memref<?x4xf32>
    %alloca_0 = memref.alloca() : memref<8xf32>
    scf.if %arg0 {
    } else {
      %cast = memref.cast %alloca_0 : memref<8xf32> to memref<?xf32>
    }
    %alloc = memref.alloc() : memref<8xf32>
    %2 = arith.select %arg0, %alloc, %arg3 : memref<8xf32>
    memref.dealloc %2 : memref<8xf32>
    return
  }
}
