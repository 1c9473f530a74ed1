// test: ownership 
// Without that option it is refused.

func.func @f(%x: f32) {
  %a = memref.alloc() : memref<4xf32>
  %r = "test.unknown"(%a) : (memref<4xf32>) -> memref<4xf32>
  linalg.fill ins(%x : f32) outs(%r : memref<4xf32>)
  return
}
// -----
// expect:
error[D0103]: test.unknown makes a memref, and nothing says who owns it
  --> unknown_effects_refused.mlir:6:8
  help: allocate with memref.alloc, and make views with memref operations
