// The argument says that it must not be written.
func.func @f(%t: tensor<8xf32> {bufferization.writable = false}, %x: f32, %i: index) -> tensor<8xf32> {
  %a = tensor.insert %x into %t[%i] : tensor<8xf32>
  return %a : tensor<8xf32>
}
