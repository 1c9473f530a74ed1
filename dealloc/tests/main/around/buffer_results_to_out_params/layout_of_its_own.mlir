// test: buffer-results-to-out-params modify-public-functions
// A layout that is neither row-major nor dynamic cannot be passed (D0120).
func.func @f() -> memref<2xf32, strided<[3], offset: 1>> {
  %b = memref.alloc() : memref<2xf32, strided<[3], offset: 1>>
  return %b : memref<2xf32, strided<[3], offset: 1>>
}
// -----
// expect:
error[D0120]: cannot create out param for result with unsupported layout
  --> layout_of_its_own.mlir:3:1
  help: give results row-major or fully dynamic layouts, or set extensions
