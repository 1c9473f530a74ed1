// test: ownership 
// The memrefs of a `bufferization.dealloc`, or those retained for a later one, are freed after the last use instead.

func.func @f(%c: i1, %x: f32) {
  %a = memref.alloc() : memref<4xf32>
  %b = memref.alloc() : memref<4xf32>
  %p = arith.select %c, %a, %b : memref<4xf32>
  %true = arith.constant true
  %own:1 = bufferization.dealloc (%a, %b : memref<4xf32>, memref<4xf32>) if (%true, %true) retain (%p : memref<4xf32>)
  linalg.fill ins(%x : f32) outs(%p : memref<4xf32>)
  scf.if %own {
    memref.dealloc %p : memref<4xf32>
  }
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: i1, %arg1: f32) {
    %alloc = memref.alloc() : memref<4xf32>
    %alloc_0 = memref.alloc() : memref<4xf32>
    %0 = arith.select %arg0, %alloc, %alloc_0 : memref<4xf32>
    %true = arith.constant true
    linalg.fill ins(%arg1 : f32) outs(%0 : memref<4xf32>)
    memref.dealloc %alloc : memref<4xf32>
    memref.dealloc %alloc_0 : memref<4xf32>
    return
  }
}
