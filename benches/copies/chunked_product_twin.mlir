// What the chunks overwrite is read after the loop.
func.func @main(%x: tensor<256x64xf32>, %w: tensor<64x64xf32>, %into: tensor<256x64xf32> {monopour.donate}) -> (tensor<256x64xf32>, tensor<256x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %out = scf.for %i = %c0 to %c256 step %c64 iter_args(%t = %into) -> (tensor<256x64xf32>) {
    %part = tensor.extract_slice %x[%i, 0] [64, 64] [1, 1] : tensor<256x64xf32> to tensor<64x64xf32>
    %place = tensor.extract_slice %t[%i, 0] [64, 64] [1, 1] : tensor<256x64xf32> to tensor<64x64xf32>
    %z = linalg.fill ins(%zero : f32) outs(%place : tensor<64x64xf32>) -> tensor<64x64xf32>
    %p = linalg.matmul ins(%part, %w : tensor<64x64xf32>, tensor<64x64xf32>) outs(%z : tensor<64x64xf32>) -> tensor<64x64xf32>
    %n = tensor.insert_slice %p into %t[%i, 0] [64, 64] [1, 1] : tensor<64x64xf32> into tensor<256x64xf32>
    scf.yield %n : tensor<256x64xf32>
  }
  %e = tensor.empty() : tensor<256x64xf32>
  %last = linalg.exp ins(%into : tensor<256x64xf32>) outs(%e : tensor<256x64xf32>) -> tensor<256x64xf32>
  return %out, %last : tensor<256x64xf32>, tensor<256x64xf32>
}
