// test: ownership 
// An op that only takes a memref may keep a pointer, too: it is not freed after the last use.

func.func @f(%x: f32) {
  %a = memref.alloc() : memref<4xf32>
  "test.unknown"(%a) : (memref<4xf32>) -> ()
  return
}
// -----
// expect:
error[D0107]: test.unknown does not say what it does to memory: it might keep or free its memrefs
  --> unknown_effects_of_a_use.mlir:6:3
  help: give the op memory effects, or allow it with allow-unknown-effects: its memrefs then live to the end of their scope
