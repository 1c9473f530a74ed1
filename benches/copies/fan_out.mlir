// Two updates of a donated tensor, one after the other.
func.func @main(%x: tensor<256x256xf32> {monopour.donate}, %a: tensor<64x256xf32>, %b: tensor<64x256xf32>) -> tensor<256x256xf32> {
  %one = tensor.insert_slice %a into %x[0, 0] [64, 256] [1, 1] : tensor<64x256xf32> into tensor<256x256xf32>
  %two = tensor.insert_slice %b into %one[128, 0] [64, 256] [1, 1] : tensor<64x256xf32> into tensor<256x256xf32>
  return %two : tensor<256x256xf32>
}
