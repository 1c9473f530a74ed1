module attributes {foo.bar} {
func.func private @ext(index, f32) -> (index, f32)
func.func @c(%a: index {llvm.noundef}, %f: f32) -> (index {my.x}, f32) attributes {passthrough = ["noinline"]} {
  %0:2 = call @ext(%a, %f) : (index, f32) -> (index, f32)
  %1 = call @one(%0#0) {foo} : (index) -> index
  %2 = constant @one : (index) -> index
  %3 = call_indirect %2(%1) : (index) -> index
  return %3, %0#1 : index, f32
}
func.func private @one(%a: index) -> index {
  return %a : index
}
func.func @none() { return }
func.func @br(%p: i1, %a: index, %i: i32) -> index {
  cf.cond_br %p weights([1, 3]), ^a(%a: index), ^b
^a(%x: index):
  cf.br ^c(%x: index)
^b:
  cf.switch %i : i32, [default: ^c(%a: index), 3: ^a(%a: index), 4: ^d]
^c(%y: index):
  cf.assert %p, "oh no"
  cf.assert %p, "oh no"
  return %y : index
^d:
  cf.switch %i : i32, [default: ^c(%a: index)]
}
}
