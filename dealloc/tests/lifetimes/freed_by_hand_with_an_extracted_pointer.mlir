// test: ownership 
// Freed by hand in a region, with the address as a number beside it: the use of the address counts, the free does not.

func.func private @use(index)
func.func @f(%c: i1, %x: f32, %b: memref<4xf32>) {
  %a = memref.alloc() : memref<4xf32>
  %p = memref.extract_aligned_pointer_as_index %a : memref<4xf32> -> index
  linalg.fill ins(%x : f32) outs(%a : memref<4xf32>)
  scf.if %c {
    memref.dealloc %a : memref<4xf32>
  } else {
    func.call @use(%p) : (index) -> ()
    memref.dealloc %a : memref<4xf32>
  }
  linalg.fill ins(%x : f32) outs(%b : memref<4xf32>)
  return
}
// -----
// expect:
module {
  func.func private @use(index)
  func.func @f(%arg0: i1, %arg1: f32, %arg2: memref<4xf32>) {
    %alloc = memref.alloc() : memref<4xf32>
    %intptr = memref.extract_aligned_pointer_as_index %alloc : memref<4xf32> -> index
    linalg.fill ins(%arg1 : f32) outs(%alloc : memref<4xf32>)
    scf.if %arg0 {
    } else {
      func.call @use(%intptr) : (index) -> ()
    }
    memref.dealloc %alloc : memref<4xf32>
    linalg.fill ins(%arg1 : f32) outs(%arg2 : memref<4xf32>)
    return
  }
}
