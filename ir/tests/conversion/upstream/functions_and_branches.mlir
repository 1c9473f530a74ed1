// Calls, declarations, attributes of functions, arguments and results, indirect calls, all kinds of branches, assertions.
module attributes {foo.bar} {
func.func private @ext(index, f32) -> (index, f32)
func.func @c(%a: index {llvm.noundef}, %f: f32) -> (index {my.x}, f32) attributes {passthrough = ["noinline"]} {
  %0:2 = call @ext(%a, %f) : (index, f32) -> (index, f32)
  %1 = call @one(%0#0) {foo} : (index) -> index
  %2 = constant @one : (index) -> index
  %3 = call_indirect %2(%1) : (index) -> index
  return %3, %0#1 : index, f32
}
func.func private @one(%a: index) -> (index {llvm.noundef}) {
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
// -----
// Nothing.
module {}
// -----
// A loop of blocks, with the block that is branched to before and behind.
func.func @count(%n: index, %one: index) -> index {
  cf.br ^check(%one : index)
^body(%i: index):
  %0 = arith.addi %i, %one : index
  cf.br ^check(%0 : index)
^check(%j: index):
  %1 = arith.cmpi ult, %j, %n : index
  cf.cond_br %1, ^body(%j : index), ^end
^end:
  return %j : index
}
// -----
// A branch hands on the argument of a block that changes later than the one it goes to.
func.func @backwards(%a: index) -> index {
  cf.br ^c(%a : index)
^b(%x: index):
  return %x : index
^c(%y: index):
  cf.br ^b(%y : index)
}
// -----
// A block that branches to itself, and swaps what it hands over.
func.func @swap(%p: i1, %a: index, %b: index) -> (index, index) {
  cf.br ^loop(%a, %b : index, index)
^loop(%x: index, %y: index):
  cf.cond_br %p, ^loop(%y, %x : index, index), ^end
^end:
  return %x, %y : index, index
}
// -----
// Both ways to one block, with other values.
func.func @both(%p: i1, %a: index, %b: index) -> index {
  cf.cond_br %p, ^end(%a, %b : index, index), ^end(%b, %a : index, index)
^end(%x: index, %y: index):
  %0 = arith.subi %x, %y : index
  return %0 : index
}
// -----
// Even and odd call each other.
func.func @even(%n: index, %one: index, %zero: index) -> i1 {
  %0 = arith.cmpi eq, %n, %zero : index
  cf.cond_br %0, ^done(%0 : i1), ^more
^more:
  %1 = arith.subi %n, %one : index
  %2 = call @odd(%1, %one, %zero) : (index, index, index) -> i1
  cf.br ^done(%2 : i1)
^done(%r: i1):
  return %r : i1
}
func.func @odd(%n: index, %one: index, %zero: index) -> i1 {
  %0 = arith.cmpi ne, %n, %zero : index
  cf.cond_br %0, ^more, ^done(%0 : i1)
^more:
  %1 = arith.subi %n, %one : index
  %2 = call @even(%1, %one, %zero) : (index, index, index) -> i1
  cf.br ^done(%2 : i1)
^done(%r: i1):
  return %r : i1
}
// -----
// Five results in and out, handed on as they are.
func.func private @five() -> (index, i1, f16, bf16, vector<4xindex>)
func.func @hand_on() -> (vector<4xindex>, bf16, f16, i1, index) {
  %0:5 = call @five() : () -> (index, i1, f16, bf16, vector<4xindex>)
  return %0#4, %0#3, %0#2, %0#1, %0#0 : vector<4xindex>, bf16, f16, i1, index
}
// -----
// A function as an argument.
func.func @apply(%f: (index, index) -> (index, index), %a: index) -> index {
  %0:2 = call_indirect %f(%a, %a) : (index, index) -> (index, index)
  return %0#1 : index
}
func.func @given(%a: index) -> index {
  %0 = constant @two : (index, index) -> (index, index)
  %1 = call @apply(%0, %a) : ((index, index) -> (index, index), index) -> index
  return %1 : index
}
func.func private @two(index, index) -> (index, index)
// -----
// A call that is not inlined, with attributes of its own.
func.func private @f(index) -> index attributes {baz}
func.func @g(%a: index) -> index {
  %0 = call @f(%a) {no_inline, foo = 1 : i8} : (index) -> index
  return {bar} %0 : index
}
// -----
// Returns in several blocks.
func.func @early(%p: i1, %a: index, %x: f32) -> (index, f32) {
  cf.cond_br %p, ^a, ^b
^a:
  return %a, %x : index, f32
^b:
  %0 = arith.negf %x : f32
  return %a, %0 : index, f32
}
// -----
// A switch of 64 bits with nothing but successors.
func.func @switch(%f: i64) {
  cf.switch %f : i64, [default: ^a, 0: ^b, -1: ^a, 4294967296: ^b]
^a:
  return
^b:
  return
}
// -----
// An assertion in a loop, with the C library's functions there already.
func.func private @puts(!llvm.ptr)
func.func @assertion(%p: i1, %a: index) -> index {
  cf.br ^loop(%a : index)
^loop(%x: index):
  %0 = arith.addi %x, %a : index
  cf.assert %p, "ä \"quoted\" text"
  %1 = arith.cmpi slt, %0, %x : index
  cf.cond_br %1, ^loop(%0 : index), ^end
^end:
  return %0 : index
}
// -----
// A module in a module.
module @outer {
  module @inner {
    func.func @f(%a: index) -> index {
      cf.br ^b(%a : index)
    ^b(%b: index):
      return %b : index
    }
  }
  func.func @f(%a: index) -> index {
    return %a : index
  }
}
