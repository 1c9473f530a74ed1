// test: ownership 
// Something else depends on what is still to be freed: the program goes on freeing all of it.

func.func @f(%c: i1, %x: f32) -> i1 {
  %a = memref.alloc() : memref<4xf32>
  %b = memref.alloc() : memref<4xf32>
  %p = arith.select %c, %a, %b : memref<4xf32>
  %true = arith.constant true
  %own = bufferization.dealloc (%a : memref<4xf32>) if (%true) retain (%p : memref<4xf32>)
  scf.if %own {
    memref.dealloc %p : memref<4xf32>
  }
  return %own : i1
}
// -----
// expect:
module {
  func.func @f(%arg0: i1, %arg1: f32) -> i1 {
    %alloc = memref.alloc() : memref<4xf32>
    %alloc_0 = memref.alloc() : memref<4xf32>
    %0 = arith.select %arg0, %alloc, %alloc_0 : memref<4xf32>
    %true = arith.constant true
    %1 = bufferization.dealloc (%alloc : memref<4xf32>) if (%true) retain (%0 : memref<4xf32>)
    scf.if %1 {
      memref.dealloc %0 : memref<4xf32>
    }
    return %1 : i1
  }
}
