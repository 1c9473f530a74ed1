// test: copy-removal
// A call may look at an argument of its caller, so the copy stays.
func.func private @other()
func.func @f(%x: f32, %out: memref<2xf32>) {
  %i = arith.constant 0 : index
  %a = memref.alloc() : memref<2xf32>
  memref.store %x, %a[%i] : memref<2xf32>
  call @other() : () -> ()
  memref.copy %a, %out : memref<2xf32> to memref<2xf32>
  memref.dealloc %a : memref<2xf32>
  return
}
// -----
// expect:
module {
  func.func private @other()
  func.func @f(%arg0: f32, %arg1: memref<2xf32>) {
    %c0 = arith.constant 0 : index
    %alloc = memref.alloc() : memref<2xf32>
    memref.store %arg0, %alloc[%c0] : memref<2xf32>
    call @other() : () -> ()
    memref.copy %alloc, %arg1 : memref<2xf32> to memref<2xf32>
    memref.dealloc %alloc : memref<2xf32>
    return
  }
}
