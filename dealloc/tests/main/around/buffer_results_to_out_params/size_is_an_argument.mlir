// test: buffer-results-to-out-params hoist-dynamic-allocs
// The caller makes the buffer as large as the function would; nothing is copied.
func.func private @make(%n: index, %x: f32) -> memref<?x2xf32> {
  %i = arith.constant 0 : index
  %a = memref.alloc(%n) : memref<?x2xf32>
  memref.store %x, %a[%i, %i] : memref<?x2xf32>
  return %a : memref<?x2xf32>
}
func.func @caller(%n: index, %x: f32, %out: memref<?x2xf32>) {
  %r = call @make(%n, %x) : (index, f32) -> memref<?x2xf32>
  memref.copy %r, %out : memref<?x2xf32> to memref<?x2xf32>
  return
}
// -----
// expect:
module {
  func.func private @make(%arg0: index, %arg1: f32, %arg2: memref<?x2xf32>) {
    %c0 = arith.constant 0 : index
    memref.store %arg1, %arg2[%c0, %c0] : memref<?x2xf32>
    return
  }
  func.func @caller(%arg0: index, %arg1: f32, %arg2: memref<?x2xf32>) {
    %alloc = memref.alloc(%arg0) : memref<?x2xf32>
    call @make(%arg0, %arg1, %alloc) : (index, f32, memref<?x2xf32>) -> ()
    memref.copy %alloc, %arg2 : memref<?x2xf32> to memref<?x2xf32>
    return
  }
}
