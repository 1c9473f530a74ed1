// A tiled update: two loops carry one tensor, the slice is updated in place.
func.func @f(%t: tensor<64x64xf32>, %a: tensor<64x32xf32>, %b: tensor<32x64xf32>) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %r = scf.for %i = %c0 to %c64 step %c16 iter_args(%o = %t) -> tensor<64x64xf32> {
    %q = scf.for %j = %c0 to %c64 step %c16 iter_args(%p = %o) -> tensor<64x64xf32> {
      %as = tensor.extract_slice %a[%i, 0] [16, 32] [1, 1] : tensor<64x32xf32> to tensor<16x32xf32>
      %bs = tensor.extract_slice %b[0, %j] [32, 16] [1, 1] : tensor<32x64xf32> to tensor<32x16xf32>
      %cs = tensor.extract_slice %p[%i, %j] [16, 16] [1, 1] : tensor<64x64xf32> to tensor<16x16xf32>
      %m = linalg.matmul ins(%as, %bs : tensor<16x32xf32>, tensor<32x16xf32>) outs(%cs : tensor<16x16xf32>) -> tensor<16x16xf32>
      %s = tensor.insert_slice %m into %p[%i, %j] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<64x64xf32>
      scf.yield %s : tensor<64x64xf32>
    }
    scf.yield %q : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}
