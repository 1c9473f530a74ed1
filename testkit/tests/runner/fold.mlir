// test: pipeline builtin.module(canonicalize)
// Constants fold; the output is compared to the letter.
func.func @f() -> index {
  %a = arith.constant 1 : index
  %b = arith.addi %a, %a : index
  return %b : index
}
// -----
// expect:
module {
  func.func @f() -> index {
    %c2 = arith.constant 2 : index
    return %c2 : index
  }
}
