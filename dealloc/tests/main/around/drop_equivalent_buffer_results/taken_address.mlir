// test: drop-equivalent-buffer-results
// A function that something else than a call names keeps its results.
func.func private @callee(%a: memref<4xf32>) -> memref<4xf32> {
  return %a : memref<4xf32>
}
func.func @caller(%a: memref<4xf32>) -> memref<4xf32> {
  %f = func.constant @callee : (memref<4xf32>) -> memref<4xf32>
  %r = call_indirect %f(%a) : (memref<4xf32>) -> memref<4xf32>
  return %r : memref<4xf32>
}
// -----
// expect:
module {
  func.func private @callee(%arg0: memref<4xf32>) -> memref<4xf32> {
    return %arg0 : memref<4xf32>
  }
  func.func @caller(%arg0: memref<4xf32>) -> memref<4xf32> {
    %f = constant @callee : (memref<4xf32>) -> memref<4xf32>
    %0 = call_indirect %f(%arg0) : (memref<4xf32>) -> memref<4xf32>
    return %0 : memref<4xf32>
  }
}
