// test: ownership 
// The scalar that a call computes from a buffer is no alias: the buffer is freed before it is returned.

func.func private @sum(memref<4xf32>) -> f32
func.func @f(%x: f32) -> f32 {
  %a = memref.alloc() : memref<4xf32>
  linalg.fill ins(%x : f32) outs(%a : memref<4xf32>)
  %p = memref.extract_aligned_pointer_as_index %a : memref<4xf32> -> index
  %s = func.call @sum(%a) : (memref<4xf32>) -> f32
  return %s : f32
}
// -----
// expect:
module {
  func.func private @sum(memref<4xf32>) -> f32
  func.func @f(%arg0: f32) -> f32 {
    %alloc = memref.alloc() : memref<4xf32>
    linalg.fill ins(%arg0 : f32) outs(%alloc : memref<4xf32>)
    %intptr = memref.extract_aligned_pointer_as_index %alloc : memref<4xf32> -> index
    %0 = call @sum(%alloc) : (memref<4xf32>) -> f32
    memref.dealloc %alloc : memref<4xf32>
    return %0 : f32
  }
}
