// test: ownership 
// A use of an extracted pointer, whatever is computed from it, is a use of the buffer.

func.func private @use(i64)
func.func @f(%x: f32, %b: memref<4xf32>) {
  %a = memref.alloc() : memref<4xf32>
  %p = memref.extract_aligned_pointer_as_index %a : memref<4xf32> -> index
  %c8 = arith.constant 8 : index
  %q = arith.addi %p, %c8 : index
  %i = arith.index_cast %q : index to i64
  linalg.fill ins(%x : f32) outs(%a : memref<4xf32>)
  func.call @use(%i) : (i64) -> ()
  linalg.fill ins(%x : f32) outs(%b : memref<4xf32>)
  return
}
// -----
// expect:
module {
  func.func private @use(i64)
  func.func @f(%arg0: f32, %arg1: memref<4xf32>) {
    %alloc = memref.alloc() : memref<4xf32>
    %intptr = memref.extract_aligned_pointer_as_index %alloc : memref<4xf32> -> index
    %c8 = arith.constant 8 : index
    %0 = arith.addi %intptr, %c8 : index
    %1 = arith.index_cast %0 : index to i64
    linalg.fill ins(%arg0 : f32) outs(%alloc : memref<4xf32>)
    call @use(%1) : (i64) -> ()
    memref.dealloc %alloc : memref<4xf32>
    linalg.fill ins(%arg0 : f32) outs(%arg1 : memref<4xf32>)
    return
  }
}
