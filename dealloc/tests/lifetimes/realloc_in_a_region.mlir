// test: ownership 
// A realloc in a nested region frees, and cannot go: what it may free stays the program's, other buffers do not.

func.func @f(%c: i1, %n: index, %x: f32) {
  %c4 = arith.constant 4 : index
  %a = memref.alloc(%c4) : memref<?xf32>
  %b = memref.alloc(%c4) : memref<?xf32>
  linalg.fill ins(%x : f32) outs(%b : memref<?xf32>)
  scf.if %c {
    %r = memref.realloc %a(%n) : memref<?xf32> to memref<?xf32>
    linalg.fill ins(%x : f32) outs(%r : memref<?xf32>)
    memref.dealloc %b : memref<?xf32>
  } else {
    memref.dealloc %a : memref<?xf32>
  }
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: i1, %arg1: index, %arg2: f32) {
    %c4 = arith.constant 4 : index
    %alloc = memref.alloc(%c4) : memref<?xf32>
    %alloc_0 = memref.alloc(%c4) : memref<?xf32>
    linalg.fill ins(%arg2 : f32) outs(%alloc_0 : memref<?xf32>)
    memref.dealloc %alloc_0 : memref<?xf32>
    scf.if %arg0 {
      %0 = memref.realloc %alloc(%arg1) : memref<?xf32> to memref<?xf32>
      linalg.fill ins(%arg2 : f32) outs(%0 : memref<?xf32>)
      memref.dealloc %0 : memref<?xf32>
    } else {
      memref.dealloc %alloc : memref<?xf32>
    }
    return
  }
}
