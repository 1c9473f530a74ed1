// A loop adds the upper half of a tensor to its lower half. Donated: arg0. Possible without a copy: the halves do not meet.
#m = affine_map<(d0) -> (d0)>
func.func @main(%t: tensor<2048xf32>, %n: index) -> tensor<2048xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %hi = tensor.extract_slice %t[1024][1024][1] : tensor<2048xf32> to tensor<1024xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %t) -> tensor<2048xf32> {
    %lo = tensor.extract_slice %a[0][1024][1] : tensor<2048xf32> to tensor<1024xf32>
    %w = linalg.generic {indexing_maps=[#m,#m],iterator_types=["parallel"]} ins(%hi : tensor<1024xf32>) outs(%lo : tensor<1024xf32>) {
    ^bb0(%x: f32, %o: f32): %s = arith.addf %x, %o : f32
      linalg.yield %s : f32 } -> tensor<1024xf32>
    %b = tensor.insert_slice %w into %a[0][1024][1] : tensor<1024xf32> into tensor<2048xf32>
    scf.yield %b : tensor<2048xf32>
  }
  return %r : tensor<2048xf32>
}
