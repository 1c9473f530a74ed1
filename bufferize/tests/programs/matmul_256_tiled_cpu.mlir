// options: use-encoding-for-memory-space
// The output of tiling for a CPU.
#map = affine_map<(d0) -> (d0 * 64)>
#map1 = affine_map<(d0) -> (d0 * 128)>
#map2 = affine_map<(d0)[s0] -> (d0 * 128 + s0)>
#map3 = affine_map<(d0)[s0] -> (d0 * 64 + s0)>
#map4 = affine_map<(d0, d1, d2) -> (d0, d2)>
#map5 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map6 = affine_map<(d0, d1, d2) -> (d0, d1)>
module {
  func.func public @main(%arg0: tensor<256x256xf32>, %arg1: tensor<256x256xf32>) -> tensor<256x256xf32> {
    %0 = ub.poison : f32
    %c1 = arith.constant 1 : index
    %c256 = arith.constant 256 : index
    %cst = arith.constant dense<0.000000e+00> : vector<8x32xf32>
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %c0 = arith.constant 0 : index
    %1 = tensor.empty() : tensor<256x256xf32>
    %2 = scf.forall (%arg2, %arg3) in (4, 2) shared_outs(%arg4 = %1) -> (tensor<256x256xf32>) {
      %3 = affine.apply #map(%arg2)
      %4 = affine.apply #map1(%arg3)
      %extracted_slice = tensor.extract_slice %arg4[%3, %4] [64, 128] [1, 1] : tensor<256x256xf32> to tensor<64x128xf32>
      %5 = scf.for %arg5 = %c0 to %c128 step %c32 iter_args(%arg6 = %extracted_slice) -> (tensor<64x128xf32>) {
        %6 = affine.apply #map2(%arg3)[%arg5]
        %7 = scf.for %arg7 = %c0 to %c64 step %c8 iter_args(%arg8 = %arg6) -> (tensor<64x128xf32>) {
          %extracted_slice_0 = tensor.extract_slice %arg8[%arg7, %arg5] [8, 32] [1, 1] : tensor<64x128xf32> to tensor<8x32xf32>
          %8 = affine.apply #map3(%arg2)[%arg7]
          %9 = scf.for %arg9 = %c0 to %c256 step %c1 iter_args(%arg10 = %cst) -> (vector<8x32xf32>) {
            %11 = vector.transfer_read %arg0[%8, %arg9], %0 {in_bounds = [true, true]} : tensor<256x256xf32>, vector<8x1xf32>
            %12 = vector.transfer_read %arg1[%arg9, %6], %0 {in_bounds = [true, true]} : tensor<256x256xf32>, vector<1x32xf32>
            %13 = vector.contract {indexing_maps = [#map4, #map5, #map6], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %11, %12, %arg10 : vector<8x1xf32>, vector<1x32xf32> into vector<8x32xf32>
            scf.yield %13 : vector<8x32xf32>
          }
          %10 = vector.transfer_write %9, %extracted_slice_0[%c0, %c0] {in_bounds = [true, true]} : vector<8x32xf32>, tensor<8x32xf32>
          %inserted_slice = tensor.insert_slice %10 into %arg8[%arg7, %arg5] [8, 32] [1, 1] : tensor<8x32xf32> into tensor<64x128xf32>
          scf.yield %inserted_slice : tensor<64x128xf32>
        }
        scf.yield %7 : tensor<64x128xf32>
      }
      scf.forall.in_parallel {
        tensor.parallel_insert_slice %5 into %arg4[%3, %4] [64, 128] [1, 1] : tensor<64x128xf32> into tensor<256x256xf32>
      }
    } {monopour.kernel = {class = "contraction", reduction_step = 1 : i64, register_tile = array<i64: 8, 32>, share = "none", tile = array<i64: 64, 128>, vector_width = 16 : i64, workgroup_size = array<i32: 1, 1, 1>}}
    return %2 : tensor<256x256xf32>
  }
}
