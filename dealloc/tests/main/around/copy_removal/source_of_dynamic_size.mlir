// test: copy-removal
// The copy of a buffer that is freed right away is the buffer.
func.func @f(%n: index, %m: index, %x: f32) -> memref<?x?xf32> {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %a = memref.alloc(%n, %m) : memref<?x?xf32>
  memref.store %x, %a[%i, %i] : memref<?x?xf32>
  %rows = memref.dim %a, %i : memref<?x?xf32>
  %columns = memref.dim %a, %one : memref<?x?xf32>
  %b = memref.alloc(%rows, %columns) {alignment = 64 : i64} : memref<?x?xf32>
  memref.copy %a, %b : memref<?x?xf32> to memref<?x?xf32>
  memref.dealloc %a : memref<?x?xf32>
  return %b : memref<?x?xf32>
}
// -----
// expect:
module {
  func.func @f(%arg0: index, %arg1: index, %arg2: f32) -> memref<?x?xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %alloc = memref.alloc(%arg0, %arg1) {alignment = 64 : i64} : memref<?x?xf32>
    memref.store %arg2, %alloc[%c0, %c0] : memref<?x?xf32>
    %dim = memref.dim %alloc, %c0 : memref<?x?xf32>
    %dim_0 = memref.dim %alloc, %c1 : memref<?x?xf32>
    return %alloc : memref<?x?xf32>
  }
}
