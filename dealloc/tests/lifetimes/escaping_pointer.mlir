// test: ownership 
// A pointer that is kept in memory may be followed at any time: the buffer lives until its block ends. Finds an escaping
// pointer that does not pin its buffer.

func.func private @follow(memref<1xindex>)
func.func @f(%x: f32, %kept: memref<1xindex>, %b: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %a = memref.alloc() : memref<4xf32>
  linalg.fill ins(%x : f32) outs(%a : memref<4xf32>)
  %p = memref.extract_aligned_pointer_as_index %a : memref<4xf32> -> index
  memref.store %p, %kept[%c0] : memref<1xindex>
  func.call @follow(%kept) : (memref<1xindex>) -> ()
  linalg.fill ins(%x : f32) outs(%b : memref<4xf32>)
  return
}
// -----
// expect:
module {
  func.func private @follow(memref<1xindex>)
  func.func @f(%arg0: f32, %arg1: memref<1xindex>, %arg2: memref<4xf32>) {
    %c0 = arith.constant 0 : index
    %alloc = memref.alloc() : memref<4xf32>
    linalg.fill ins(%arg0 : f32) outs(%alloc : memref<4xf32>)
    %intptr = memref.extract_aligned_pointer_as_index %alloc : memref<4xf32> -> index
    memref.store %intptr, %arg1[%c0] : memref<1xindex>
    call @follow(%arg1) : (memref<1xindex>) -> ()
    linalg.fill ins(%arg0 : f32) outs(%arg2 : memref<4xf32>)
    memref.dealloc %alloc : memref<4xf32>
    return
  }
}
