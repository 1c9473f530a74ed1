// test: pipeline builtin.module(cse)
// What does not parse has its diagnostics as output.
func.func @f( {
// -----
// expect:
error[I0001]: expected non-function type
  --> invalid.mlir:3:14
