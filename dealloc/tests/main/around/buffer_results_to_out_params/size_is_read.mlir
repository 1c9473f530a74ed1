// test: buffer-results-to-out-params hoist-dynamic-allocs extensions
// A size that only the function knows leaves the result a result; so does a layout of its own.
func.func private @make(%m: memref<index>) -> (memref<?xf32>, memref<2xf32, strided<[3], offset: 1>>) {
  %n = memref.load %m[] : memref<index>
  %a = memref.alloc(%n) : memref<?xf32>
  %b = memref.alloc() : memref<2xf32, strided<[3], offset: 1>>
  return %a, %b : memref<?xf32>, memref<2xf32, strided<[3], offset: 1>>
}
func.func @caller(%m: memref<index>) -> memref<?xf32> {
  %r:2 = call @make(%m) : (memref<index>) -> (memref<?xf32>, memref<2xf32, strided<[3], offset: 1>>)
  return %r#0 : memref<?xf32>
}
// -----
// expect:
module {
  func.func private @make(%arg0: memref<index>) -> (memref<?xf32>, memref<2xf32, strided<[3], offset: 1>>) {
    %0 = memref.load %arg0[] : memref<index>
    %alloc = memref.alloc(%0) : memref<?xf32>
    %alloc_0 = memref.alloc() : memref<2xf32, strided<[3], offset: 1>>
    return %alloc, %alloc_0 : memref<?xf32>, memref<2xf32, strided<[3], offset: 1>>
  }
  func.func @caller(%arg0: memref<index>) -> memref<?xf32> {
    %0:2 = call @make(%arg0) : (memref<index>) -> (memref<?xf32>, memref<2xf32, strided<[3], offset: 1>>)
    return %0#0 : memref<?xf32>
  }
}
