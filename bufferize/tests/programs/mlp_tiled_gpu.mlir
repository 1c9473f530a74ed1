// options: use-encoding-for-memory-space
// The output of tiling for a GPU.
#map = affine_map<(d0) -> (d0 * 16)>
#map1 = affine_map<(d0) -> (d0 * 64)>
#map2 = affine_map<(d0, d1) -> (d1)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func public @main(%arg0: tensor<64x784xf32, #gpu.address_space<global>>, %arg1: tensor<784x1024xf32, #gpu.address_space<global>>, %arg2: tensor<1024xf32, #gpu.address_space<global>>, %arg3: tensor<1024x1024xf32, #gpu.address_space<global>>, %arg4: tensor<1024xf32, #gpu.address_space<global>>, %arg5: tensor<1024x10xf32, #gpu.address_space<global>>, %arg6: tensor<10xf32, #gpu.address_space<global>>) -> tensor<64x10xf32, #gpu.address_space<global>> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<64x1024xf32, #gpu.address_space<global>>
    %1 = tensor.empty() : tensor<64x1024xf32, #gpu.address_space<global>>
    %2 = scf.forall (%arg7, %arg8) in (4, 16) shared_outs(%arg9 = %1) -> (tensor<64x1024xf32, #gpu.address_space<global>>) {
      %6 = affine.apply #map(%arg7)
      %7 = affine.apply #map1(%arg8)
      %extracted_slice = tensor.extract_slice %arg2[%7] [64] [1] : tensor<1024xf32, #gpu.address_space<global>> to tensor<64xf32, #gpu.address_space<global>>
      %extracted_slice_0 = tensor.extract_slice %arg0[%6, 0] [16, 784] [1, 1] : tensor<64x784xf32, #gpu.address_space<global>> to tensor<16x784xf32, #gpu.address_space<global>>
      %extracted_slice_1 = tensor.extract_slice %arg1[0, %7] [784, 64] [1, 1] : tensor<784x1024xf32, #gpu.address_space<global>> to tensor<784x64xf32, #gpu.address_space<global>>
      %extracted_slice_2 = tensor.extract_slice %arg9[%6, %7] [16, 64] [1, 1] : tensor<64x1024xf32, #gpu.address_space<global>> to tensor<16x64xf32, #gpu.address_space<global>>
      %8 = linalg.fill ins(%cst : f32) outs(%extracted_slice_2 : tensor<16x64xf32, #gpu.address_space<global>>) -> tensor<16x64xf32, #gpu.address_space<global>>
      %9 = linalg.matmul ins(%extracted_slice_0, %extracted_slice_1 : tensor<16x784xf32, #gpu.address_space<global>>, tensor<784x64xf32, #gpu.address_space<global>>) outs(%8 : tensor<16x64xf32, #gpu.address_space<global>>) -> tensor<16x64xf32, #gpu.address_space<global>>
      %10 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "parallel"]} ins(%extracted_slice : tensor<64xf32, #gpu.address_space<global>>) outs(%9 : tensor<16x64xf32, #gpu.address_space<global>>) {
      ^bb0(%in: f32, %out: f32):
        %11 = arith.addf %out, %in : f32
        %12 = arith.maximumf %11, %cst : f32
        linalg.yield %12 : f32
      } -> tensor<16x64xf32, #gpu.address_space<global>>
      scf.forall.in_parallel {
        tensor.parallel_insert_slice %10 into %arg9[%6, %7] [16, 64] [1, 1] : tensor<16x64xf32, #gpu.address_space<global>> into tensor<64x1024xf32, #gpu.address_space<global>>
      }
    } {mapping = [#gpu.block<y>, #gpu.block<x>], monopour.kernel = {class = "contraction", reduction_step = 8 : i64, register_tile = array<i64: 16, 8>, share = "subgroup", subgroup_size = 8 : i64, tile = array<i64: 16, 64>, vector_width = 8 : i64, workgroup_size = array<i32: 8, 1, 1>}}
    %3 = scf.forall (%arg7, %arg8) in (4, 16) shared_outs(%arg9 = %0) -> (tensor<64x1024xf32, #gpu.address_space<global>>) {
      %6 = affine.apply #map(%arg7)
      %7 = affine.apply #map1(%arg8)
      %extracted_slice = tensor.extract_slice %arg4[%7] [64] [1] : tensor<1024xf32, #gpu.address_space<global>> to tensor<64xf32, #gpu.address_space<global>>
      %extracted_slice_0 = tensor.extract_slice %2[%6, 0] [16, 1024] [1, 1] : tensor<64x1024xf32, #gpu.address_space<global>> to tensor<16x1024xf32, #gpu.address_space<global>>
      %extracted_slice_1 = tensor.extract_slice %arg3[0, %7] [1024, 64] [1, 1] : tensor<1024x1024xf32, #gpu.address_space<global>> to tensor<1024x64xf32, #gpu.address_space<global>>
      %extracted_slice_2 = tensor.extract_slice %arg9[%6, %7] [16, 64] [1, 1] : tensor<64x1024xf32, #gpu.address_space<global>> to tensor<16x64xf32, #gpu.address_space<global>>
      %8 = linalg.fill ins(%cst : f32) outs(%extracted_slice_2 : tensor<16x64xf32, #gpu.address_space<global>>) -> tensor<16x64xf32, #gpu.address_space<global>>
      %9 = linalg.matmul ins(%extracted_slice_0, %extracted_slice_1 : tensor<16x1024xf32, #gpu.address_space<global>>, tensor<1024x64xf32, #gpu.address_space<global>>) outs(%8 : tensor<16x64xf32, #gpu.address_space<global>>) -> tensor<16x64xf32, #gpu.address_space<global>>
      %10 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "parallel"]} ins(%extracted_slice : tensor<64xf32, #gpu.address_space<global>>) outs(%9 : tensor<16x64xf32, #gpu.address_space<global>>) {
      ^bb0(%in: f32, %out: f32):
        %11 = arith.addf %out, %in : f32
        %12 = arith.maximumf %11, %cst : f32
        linalg.yield %12 : f32
      } -> tensor<16x64xf32, #gpu.address_space<global>>
      scf.forall.in_parallel {
        tensor.parallel_insert_slice %10 into %arg9[%6, %7] [16, 64] [1, 1] : tensor<16x64xf32, #gpu.address_space<global>> into tensor<64x1024xf32, #gpu.address_space<global>>
      }
    } {mapping = [#gpu.block<y>, #gpu.block<x>], monopour.kernel = {class = "contraction", reduction_step = 8 : i64, register_tile = array<i64: 16, 8>, share = "subgroup", subgroup_size = 8 : i64, tile = array<i64: 16, 64>, vector_width = 8 : i64, workgroup_size = array<i32: 8, 1, 1>}}
    %4 = tensor.empty() : tensor<64x10xf32, #gpu.address_space<global>>
    %5 = scf.forall (%arg7, %arg8) in (4, 1) shared_outs(%arg9 = %4) -> (tensor<64x10xf32, #gpu.address_space<global>>) {
      %6 = affine.apply #map(%arg7)
      %extracted_slice = tensor.extract_slice %3[%6, 0] [16, 1024] [1, 1] : tensor<64x1024xf32, #gpu.address_space<global>> to tensor<16x1024xf32, #gpu.address_space<global>>
      %extracted_slice_0 = tensor.extract_slice %arg9[%6, 0] [16, 10] [1, 1] : tensor<64x10xf32, #gpu.address_space<global>> to tensor<16x10xf32, #gpu.address_space<global>>
      %7 = linalg.fill ins(%cst : f32) outs(%extracted_slice_0 : tensor<16x10xf32, #gpu.address_space<global>>) -> tensor<16x10xf32, #gpu.address_space<global>>
      %8 = linalg.matmul ins(%extracted_slice, %arg5 : tensor<16x1024xf32, #gpu.address_space<global>>, tensor<1024x10xf32, #gpu.address_space<global>>) outs(%7 : tensor<16x10xf32, #gpu.address_space<global>>) -> tensor<16x10xf32, #gpu.address_space<global>>
      %9 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "parallel"]} ins(%arg6 : tensor<10xf32, #gpu.address_space<global>>) outs(%8 : tensor<16x10xf32, #gpu.address_space<global>>) {
      ^bb0(%in: f32, %out: f32):
        %10 = arith.addf %out, %in : f32
        linalg.yield %10 : f32
      } -> tensor<16x10xf32, #gpu.address_space<global>>
      scf.forall.in_parallel {
        tensor.parallel_insert_slice %9 into %arg9[%6, 0] [16, 10] [1, 1] : tensor<16x10xf32, #gpu.address_space<global>> into tensor<64x10xf32, #gpu.address_space<global>>
      }
    } {mapping = [#gpu.block<y>, #gpu.block<x>], monopour.kernel = {class = "contraction", reduction_step = 8 : i64, register_tile = array<i64: 16, 8>, share = "subgroup", subgroup_size = 8 : i64, tile = array<i64: 16, 10>, vector_width = 2 : i64, workgroup_size = array<i32: 8, 1, 1>}}
    return %5 : tensor<64x10xf32, #gpu.address_space<global>>
  }
}
