// test: decisions bufferize-function-boundaries
// oracle: -one-shot-bufferize="bufferize-function-boundaries test-analysis-only"
// A value that is read after it was written over must be copied.
func.func @main(%t: tensor<4xf32>, %f: f32, %i: index) -> (tensor<4xf32>, f32) {
  %a = tensor.insert %f into %t[%i] : tensor<4xf32>
  %b = tensor.extract %t[%i] : tensor<4xf32>
  return %a, %b : tensor<4xf32>, f32
}
// -----
// expect:
module {
  func.func @main(%arg0: tensor<4xf32> {bufferization.access = "read"}, %arg1: f32, %arg2: index) -> (tensor<4xf32>, f32) {
    %inserted = tensor.insert %arg1 into %arg0[%arg2] {__inplace_operands_attr__ = ["none", "false", "none"]} : tensor<4xf32>
    %extracted = tensor.extract %arg0[%arg2] {__inplace_operands_attr__ = ["true", "none"]} : tensor<4xf32>
    return {__inplace_operands_attr__ = ["true", "none"]} %inserted, %extracted : tensor<4xf32>, f32
  }
}
