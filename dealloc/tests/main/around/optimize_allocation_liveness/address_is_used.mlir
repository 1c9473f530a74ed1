// test: optimize-allocation-liveness
// A call that gets the address is a use, and so is one that gets a number made of it.
func.func private @look(index)
func.func @f(%x: f32, %out: memref<4xf32>) {
  %i = arith.constant 0 : index
  %a = memref.alloc() : memref<4xf32>
  %p = memref.extract_aligned_pointer_as_index %a : memref<4xf32> -> index
  %q = arith.addi %p, %i : index
  memref.store %x, %out[%i] : memref<4xf32>
  call @look(%q) : (index) -> ()
  memref.store %x, %out[%i] : memref<4xf32>
  memref.dealloc %a : memref<4xf32>
  return
}
// -----
// expect:
module {
  func.func private @look(index)
  func.func @f(%arg0: f32, %arg1: memref<4xf32>) {
    %c0 = arith.constant 0 : index
    %alloc = memref.alloc() : memref<4xf32>
    %intptr = memref.extract_aligned_pointer_as_index %alloc : memref<4xf32> -> index
    %0 = arith.addi %intptr, %c0 : index
    memref.store %arg0, %arg1[%c0] : memref<4xf32>
    call @look(%0) : (index) -> ()
    memref.dealloc %alloc : memref<4xf32>
    memref.store %arg0, %arg1[%c0] : memref<4xf32>
    return
  }
}
