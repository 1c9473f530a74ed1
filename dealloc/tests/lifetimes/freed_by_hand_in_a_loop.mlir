// test: ownership 
// A loop frees its iteration argument explicitly when it is replaced: the analysis frees it there, and the last one after the loop.

func.func @f(%n: index, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<4xf32>
  linalg.fill ins(%x : f32) outs(%a : memref<4xf32>)
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%k = %a) -> (memref<4xf32>) {
    %b = memref.alloc() : memref<4xf32>
    memref.copy %k, %b : memref<4xf32> to memref<4xf32>
    memref.dealloc %k : memref<4xf32>
    scf.yield %b : memref<4xf32>
  }
  linalg.fill ins(%x : f32) outs(%r : memref<4xf32>)
  memref.dealloc %r : memref<4xf32>
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: index, %arg1: f32) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %alloc = memref.alloc() : memref<4xf32>
    linalg.fill ins(%arg1 : f32) outs(%alloc : memref<4xf32>)
    %0 = scf.for %arg2 = %c0 to %arg0 step %c1 iter_args(%arg3 = %alloc) -> (memref<4xf32>) {
      %alloc_0 = memref.alloc() : memref<4xf32>
      memref.copy %arg3, %alloc_0 : memref<4xf32> to memref<4xf32>
      memref.dealloc %arg3 : memref<4xf32>
      scf.yield %alloc_0 : memref<4xf32>
    }
    linalg.fill ins(%arg1 : f32) outs(%0 : memref<4xf32>)
    memref.dealloc %0 : memref<4xf32>
    return
  }
}
