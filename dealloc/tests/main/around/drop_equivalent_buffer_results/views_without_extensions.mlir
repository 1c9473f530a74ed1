// test: drop-equivalent-buffer-results
// Upstream's form drops what is an argument itself, not a view of one.
func.func private @slice(%a: memref<8xf32>) -> (memref<8xf32>, memref<2xf32, strided<[1], offset: 3>>) {
  %v = memref.subview %a[3] [2] [1] : memref<8xf32> to memref<2xf32, strided<[1], offset: 3>>
  return %a, %v : memref<8xf32>, memref<2xf32, strided<[1], offset: 3>>
}
func.func @caller(%a: memref<8xf32>, %i: index, %x: f32) {
  %b, %v = call @slice(%a) : (memref<8xf32>) -> (memref<8xf32>, memref<2xf32, strided<[1], offset: 3>>)
  memref.store %x, %b[%i] : memref<8xf32>
  memref.store %x, %v[%i] : memref<2xf32, strided<[1], offset: 3>>
  return
}
// -----
// expect:
module {
  func.func private @slice(%arg0: memref<8xf32>) -> memref<2xf32, strided<[1], offset: 3>> {
    %subview = memref.subview %arg0[3] [2] [1] : memref<8xf32> to memref<2xf32, strided<[1], offset: 3>>
    return %subview : memref<2xf32, strided<[1], offset: 3>>
  }
  func.func @caller(%arg0: memref<8xf32>, %arg1: index, %arg2: f32) {
    %0 = call @slice(%arg0) : (memref<8xf32>) -> memref<2xf32, strided<[1], offset: 3>>
    memref.store %arg2, %arg0[%arg1] : memref<8xf32>
    memref.store %arg2, %0[%arg1] : memref<2xf32, strided<[1], offset: 3>>
    return
  }
}
