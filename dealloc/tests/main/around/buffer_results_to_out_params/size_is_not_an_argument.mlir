// test: buffer-results-to-out-params hoist-dynamic-allocs
// Without extensions a size must be an argument (D0121).
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
error[D0121]: cannot create out param for dynamically shaped result
  --> size_is_not_an_argument.mlir:12:10
  help: set hoist-dynamic-allocs where the sizes are arguments of the function, or extensions
