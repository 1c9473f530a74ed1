// test: ownership 
// One of two buffers is freed by hand: what selected it tells which one is left.

func.func @f(%c: i1, %x: f32) {
  %a = memref.alloc() : memref<4xf32>
  %b = memref.alloc() : memref<4xf32>
  %p = arith.select %c, %a, %b : memref<4xf32>
  linalg.fill ins(%x : f32) outs(%p : memref<4xf32>)
  memref.dealloc %p : memref<4xf32>
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: i1, %arg1: f32) {
    %alloc = memref.alloc() : memref<4xf32>
    %alloc_0 = memref.alloc() : memref<4xf32>
    %0 = arith.select %arg0, %alloc, %alloc_0 : memref<4xf32>
    linalg.fill ins(%arg1 : f32) outs(%0 : memref<4xf32>)
    %true = arith.constant true
    %1 = arith.xori %arg0, %true : i1
    %true_1 = arith.constant true
    %2 = arith.xori %arg0, %true_1 : i1
    %true_2 = arith.constant true
    %3 = arith.xori %2, %true_2 : i1
    memref.dealloc %0 : memref<4xf32>
    scf.if %1 {
      memref.dealloc %alloc : memref<4xf32>
    }
    scf.if %3 {
      memref.dealloc %alloc_0 : memref<4xf32>
    }
    return
  }
}
