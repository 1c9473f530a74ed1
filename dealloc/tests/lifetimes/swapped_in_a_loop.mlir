// test: ownership 
// Buffers that change places in a loop stay where they are: nothing is compared, nothing copied.

func.func @f(%n: index, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<4xf32>
  %b = memref.alloc() : memref<4xf32>
  linalg.fill ins(%x : f32) outs(%a : memref<4xf32>)
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a, %q = %b) -> (memref<4xf32>, memref<4xf32>) {
    memref.copy %p, %q : memref<4xf32> to memref<4xf32>
    scf.yield %q, %p : memref<4xf32>, memref<4xf32>
  }
  linalg.fill ins(%x : f32) outs(%r#0 : memref<4xf32>)
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: index, %arg1: f32) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %alloc = memref.alloc() : memref<4xf32>
    %alloc_0 = memref.alloc() : memref<4xf32>
    linalg.fill ins(%arg1 : f32) outs(%alloc : memref<4xf32>)
    %0:2 = scf.for %arg2 = %c0 to %arg0 step %c1 iter_args(%arg3 = %alloc, %arg4 = %alloc_0) -> (memref<4xf32>, memref<4xf32>) {
      memref.copy %arg3, %arg4 : memref<4xf32> to memref<4xf32>
      %false = arith.constant false
      %false_1 = arith.constant false
      scf.yield %arg4, %arg3 : memref<4xf32>, memref<4xf32>
    }
    linalg.fill ins(%arg1 : f32) outs(%0#0 : memref<4xf32>)
    memref.dealloc %alloc_0 : memref<4xf32>
    memref.dealloc %alloc : memref<4xf32>
    return
  }
}
