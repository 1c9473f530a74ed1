// options: use-encoding-for-memory-space
// The output of tiling for a GPU.
#map = affine_map<(d0) -> (d0 * 16)>
#map1 = affine_map<(d0) -> (d0 * 64)>
module {
  func.func public @main(%arg0: tensor<256x256xf32, #gpu.address_space<global>>, %arg1: tensor<256x256xf32, #gpu.address_space<global>>) -> tensor<256x256xf32, #gpu.address_space<global>> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<256x256xf32, #gpu.address_space<global>>
    %1 = scf.forall (%arg2, %arg3) in (16, 4) shared_outs(%arg4 = %0) -> (tensor<256x256xf32, #gpu.address_space<global>>) {
      %2 = affine.apply #map(%arg2)
      %3 = affine.apply #map1(%arg3)
      %extracted_slice = tensor.extract_slice %arg0[%2, 0] [16, 256] [1, 1] : tensor<256x256xf32, #gpu.address_space<global>> to tensor<16x256xf32, #gpu.address_space<global>>
      %extracted_slice_0 = tensor.extract_slice %arg1[0, %3] [256, 64] [1, 1] : tensor<256x256xf32, #gpu.address_space<global>> to tensor<256x64xf32, #gpu.address_space<global>>
      %extracted_slice_1 = tensor.extract_slice %arg4[%2, %3] [16, 64] [1, 1] : tensor<256x256xf32, #gpu.address_space<global>> to tensor<16x64xf32, #gpu.address_space<global>>
      %4 = linalg.fill ins(%cst : f32) outs(%extracted_slice_1 : tensor<16x64xf32, #gpu.address_space<global>>) -> tensor<16x64xf32, #gpu.address_space<global>>
      %5 = linalg.matmul ins(%extracted_slice, %extracted_slice_0 : tensor<16x256xf32, #gpu.address_space<global>>, tensor<256x64xf32, #gpu.address_space<global>>) outs(%4 : tensor<16x64xf32, #gpu.address_space<global>>) -> tensor<16x64xf32, #gpu.address_space<global>>
      scf.forall.in_parallel {
        tensor.parallel_insert_slice %5 into %arg4[%2, %3] [16, 64] [1, 1] : tensor<16x64xf32, #gpu.address_space<global>> into tensor<256x256xf32, #gpu.address_space<global>>
      }
    } {mapping = [#gpu.block<y>, #gpu.block<x>], monopour.kernel = {class = "contraction", reduction_step = 8 : i64, register_tile = array<i64: 16, 8>, share = "subgroup", subgroup_size = 8 : i64, tile = array<i64: 16, 64>, vector_width = 8 : i64, workgroup_size = array<i32: 8, 1, 1>}}
    return %1 : tensor<256x256xf32, #gpu.address_space<global>>
  }
}
