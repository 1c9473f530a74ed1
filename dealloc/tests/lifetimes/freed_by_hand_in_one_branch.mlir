// test: ownership 
// Freed in one branch, and used in the other: the free by hand goes, and the buffer is freed once behind the last use.

func.func @f(%c: i1, %x: f32, %b: memref<4xf32>) {
  %a = memref.alloc() : memref<4xf32>
  linalg.fill ins(%x : f32) outs(%a : memref<4xf32>)
  scf.if %c {
    linalg.fill ins(%x : f32) outs(%b : memref<4xf32>)
    memref.dealloc %a : memref<4xf32>
  } else {
    memref.copy %a, %b : memref<4xf32> to memref<4xf32>
  }
  linalg.fill ins(%x : f32) outs(%b : memref<4xf32>)
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: i1, %arg1: f32, %arg2: memref<4xf32>) {
    %alloc = memref.alloc() : memref<4xf32>
    linalg.fill ins(%arg1 : f32) outs(%alloc : memref<4xf32>)
    scf.if %arg0 {
      linalg.fill ins(%arg1 : f32) outs(%arg2 : memref<4xf32>)
    } else {
      memref.copy %alloc, %arg2 : memref<4xf32> to memref<4xf32>
    }
    memref.dealloc %alloc : memref<4xf32>
    linalg.fill ins(%arg1 : f32) outs(%arg2 : memref<4xf32>)
    return
  }
}
