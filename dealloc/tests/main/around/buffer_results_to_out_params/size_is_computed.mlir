// test: buffer-results-to-out-params hoist-dynamic-allocs extensions
// A size that follows from arguments is computed again by the caller.
func.func private @make(%n: index, %x: f32) -> (i32, memref<?x2xf32>) {
  %i = arith.constant 0 : index
  %s = arith.constant 7 : i32
  %m = arith.addi %n, %n : index
  %a = memref.alloc(%m) : memref<?x2xf32>
  memref.store %x, %a[%i, %i] : memref<?x2xf32>
  return %s, %a : i32, memref<?x2xf32>
}
func.func @caller(%n: index, %x: f32, %out: memref<?x2xf32>) -> i32 {
  %r:2 = call @make(%n, %x) : (index, f32) -> (i32, memref<?x2xf32>)
  memref.copy %r#1, %out : memref<?x2xf32> to memref<?x2xf32>
  return %r#0 : i32
}
// -----
// expect:
module {
  func.func private @make(%arg0: index, %arg1: f32, %arg2: memref<?x2xf32>) -> i32 {
    %c0 = arith.constant 0 : index
    %c7_i32 = arith.constant 7 : i32
    %0 = arith.addi %arg0, %arg0 : index
    memref.store %arg1, %arg2[%c0, %c0] : memref<?x2xf32>
    return %c7_i32 : i32
  }
  func.func @caller(%arg0: index, %arg1: f32, %arg2: memref<?x2xf32>) -> i32 {
    %0 = arith.addi %arg0, %arg0 : index
    %alloc = memref.alloc(%0) : memref<?x2xf32>
    %1 = call @make(%arg0, %arg1, %alloc) : (index, f32, memref<?x2xf32>) -> i32
    memref.copy %alloc, %arg2 : memref<?x2xf32> to memref<?x2xf32>
    return %1 : i32
  }
}
