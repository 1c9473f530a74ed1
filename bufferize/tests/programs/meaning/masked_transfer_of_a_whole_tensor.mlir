// Masked-off lanes of a read are padding, also if the whole tensor is read and written.
// values: 1 -1
func.func @main() -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %pad = arith.constant -1.0 : f32
  %t = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %e = tensor.empty() : tensor<3xf32>
  %m = vector.create_mask %c2 : vector<3xi1>
  %v = vector.transfer_read %t[%c0], %pad, %m : tensor<3xf32>, vector<3xf32>
  %w = vector.transfer_write %v, %e[%c0] {in_bounds = [true]} : vector<3xf32>, tensor<3xf32>
  %first = tensor.extract %w[%c0] : tensor<3xf32>
  %last = tensor.extract %w[%c2] : tensor<3xf32>
  return %first, %last : f32, f32
}
