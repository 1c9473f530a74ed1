// Masked reads and writes of a ragged slice.
func.func @f(%t: tensor<?xf32>, %n: index, %z: f32) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %m = vector.create_mask %n : vector<8xi1>
  %v = vector.mask %m { vector.transfer_read %t[%c0], %z {in_bounds = [true]} : tensor<?xf32>, vector<8xf32> } : vector<8xi1> -> vector<8xf32>
  %w = arith.addf %v, %v : vector<8xf32>
  %r = vector.mask %m { vector.transfer_write %w, %t[%c0] {in_bounds = [true]} : vector<8xf32>, tensor<?xf32> } : vector<8xi1> -> tensor<?xf32>
  return %r : tensor<?xf32>
}
