// Tiles of a donated tensor, doubled in a nest of loops.
func.func @main(%x: tensor<256x256xf32> {monopour.donate}) -> tensor<256x256xf32> {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %y = scf.for %i = %c0 to %c256 step %c128 iter_args(%s = %x) -> (tensor<256x256xf32>) {
    %row = scf.for %j = %c0 to %c256 step %c128 iter_args(%t = %s) -> (tensor<256x256xf32>) {
      %p = tensor.extract_slice %t[%i, %j] [128, 128] [1, 1] : tensor<256x256xf32> to tensor<128x128xf32>
      %d = linalg.add ins(%p, %p : tensor<128x128xf32>, tensor<128x128xf32>) outs(%p : tensor<128x128xf32>) -> tensor<128x128xf32>
      %n = tensor.insert_slice %d into %t[%i, %j] [128, 128] [1, 1] : tensor<128x128xf32> into tensor<256x256xf32>
      scf.yield %n : tensor<256x256xf32>
    }
    scf.yield %row : tensor<256x256xf32>
  }
  return %y : tensor<256x256xf32>
}
