// A write of the whole does not read; one at an index does.
func.func @f(%t: tensor<8xf32>, %v: vector<8xf32>, %i: index, %z: f32) -> (tensor<8xf32>, vector<8xf32>) {
  %c0 = arith.constant 0 : index
  %a = vector.transfer_write %v, %t[%c0] {in_bounds = [true]} : vector<8xf32>, tensor<8xf32>
  %b = vector.transfer_write %v, %a[%i] : vector<8xf32>, tensor<8xf32>
  %c = vector.transfer_read %a[%c0], %z {in_bounds = [true]} : tensor<8xf32>, vector<8xf32>
  return %b, %c : tensor<8xf32>, vector<8xf32>
}
