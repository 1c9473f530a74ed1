// options: use-encoding-for-memory-space
// The output of tiling for a CPU.
#map = affine_map<(d0) -> (d0 * 128)>
#map1 = affine_map<(d0)[s0] -> (d0 * 128 + s0)>
#map2 = affine_map<()[s0, s1] -> (s0 + s1)>
#map3 = affine_map<(d0, d1, d2) -> (d0, d2)>
#map4 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map5 = affine_map<(d0, d1, d2) -> (d0, d1)>
module {
  func.func public @main(%arg0: tensor<64x784xf32>, %arg1: tensor<784x1024xf32>, %arg2: tensor<1024xf32>, %arg3: tensor<1024x1024xf32>, %arg4: tensor<1024xf32>, %arg5: tensor<1024x10xf32>, %arg6: tensor<10xf32>) -> tensor<64x10xf32> {
    %cst = arith.constant dense<0.000000e+00> : vector<16x10xf32>
    %0 = ub.poison : f32
    %cst_0 = arith.constant dense<0.000000e+00> : vector<1x32xf32>
    %c16 = arith.constant 16 : index
    %c256 = arith.constant 256 : index
    %c1024 = arith.constant 1024 : index
    %c8 = arith.constant 8 : index
    %c196 = arith.constant 196 : index
    %c784 = arith.constant 784 : index
    %c32 = arith.constant 32 : index
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    %c64 = arith.constant 64 : index
    %c0 = arith.constant 0 : index
    %1 = tensor.empty() : tensor<64x1024xf32>
    %2 = tensor.empty() : tensor<64x1024xf32>
    %3 = scf.forall (%arg7, %arg8) in (1, 8) shared_outs(%arg9 = %2) -> (tensor<64x1024xf32>) {
      %7 = affine.apply #map(%arg8)
      %extracted_slice = tensor.extract_slice %arg9[0, %7] [64, 128] [1, 1] : tensor<64x1024xf32> to tensor<64x128xf32>
      %8 = scf.for %arg10 = %c0 to %c64 step %c1 iter_args(%arg11 = %extracted_slice) -> (tensor<64x128xf32>) {
        %11 = scf.for %arg12 = %c0 to %c128 step %c32 iter_args(%arg13 = %arg11) -> (tensor<64x128xf32>) {
          %12 = vector.transfer_write %cst_0, %arg13[%arg10, %arg12] {in_bounds = [true, true]} : vector<1x32xf32>, tensor<64x128xf32>
          scf.yield %12 : tensor<64x128xf32>
        }
        scf.yield %11 : tensor<64x128xf32>
      }
      %9 = scf.for %arg10 = %c0 to %c784 step %c196 iter_args(%arg11 = %8) -> (tensor<64x128xf32>) {
        %11 = scf.for %arg12 = %c0 to %c128 step %c32 iter_args(%arg13 = %arg11) -> (tensor<64x128xf32>) {
          %12 = affine.apply #map1(%arg8)[%arg12]
          %13 = scf.for %arg14 = %c0 to %c64 step %c8 iter_args(%arg15 = %arg13) -> (tensor<64x128xf32>) {
            %extracted_slice_1 = tensor.extract_slice %arg15[%arg14, %arg12] [8, 32] [1, 1] : tensor<64x128xf32> to tensor<8x32xf32>
            %14 = vector.transfer_read %extracted_slice_1[%c0, %c0], %0 {in_bounds = [true, true]} : tensor<8x32xf32>, vector<8x32xf32>
            %15 = scf.for %arg16 = %c0 to %c196 step %c1 iter_args(%arg17 = %14) -> (vector<8x32xf32>) {
              %17 = affine.apply #map2()[%arg10, %arg16]
              %18 = vector.transfer_read %arg0[%arg14, %17], %0 {in_bounds = [true, true]} : tensor<64x784xf32>, vector<8x1xf32>
              %19 = vector.transfer_read %arg1[%17, %12], %0 {in_bounds = [true, true]} : tensor<784x1024xf32>, vector<1x32xf32>
              %20 = vector.contract {indexing_maps = [#map3, #map4, #map5], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %18, %19, %arg17 : vector<8x1xf32>, vector<1x32xf32> into vector<8x32xf32>
              scf.yield %20 : vector<8x32xf32>
            }
            %16 = vector.transfer_write %15, %extracted_slice_1[%c0, %c0] {in_bounds = [true, true]} : vector<8x32xf32>, tensor<8x32xf32>
            %inserted_slice = tensor.insert_slice %16 into %arg15[%arg14, %arg12] [8, 32] [1, 1] : tensor<8x32xf32> into tensor<64x128xf32>
            scf.yield %inserted_slice : tensor<64x128xf32>
          }
          scf.yield %13 : tensor<64x128xf32>
        }
        scf.yield %11 : tensor<64x128xf32>
      }
      %10 = scf.for %arg10 = %c0 to %c64 step %c1 iter_args(%arg11 = %9) -> (tensor<64x128xf32>) {
        %11 = scf.for %arg12 = %c0 to %c128 step %c32 iter_args(%arg13 = %arg11) -> (tensor<64x128xf32>) {
          %12 = affine.apply #map1(%arg8)[%arg12]
          %13 = vector.transfer_read %arg2[%12], %0 {in_bounds = [true]} : tensor<1024xf32>, vector<32xf32>
          %14 = vector.broadcast %13 : vector<32xf32> to vector<1x32xf32>
          %15 = vector.transfer_read %arg13[%arg10, %arg12], %0 {in_bounds = [true, true]} : tensor<64x128xf32>, vector<1x32xf32>
          %16 = arith.addf %15, %14 : vector<1x32xf32>
          %17 = arith.maximumf %16, %cst_0 : vector<1x32xf32>
          %18 = vector.transfer_write %17, %arg13[%arg10, %arg12] {in_bounds = [true, true]} : vector<1x32xf32>, tensor<64x128xf32>
          scf.yield %18 : tensor<64x128xf32>
        }
        scf.yield %11 : tensor<64x128xf32>
      }
      scf.forall.in_parallel {
        tensor.parallel_insert_slice %10 into %arg9[0, %7] [64, 128] [1, 1] : tensor<64x128xf32> into tensor<64x1024xf32>
      }
    } {monopour.kernel = {class = "contraction", reduction_step = 1 : i64, register_tile = array<i64: 8, 32>, share = "none", tile = array<i64: 64, 128>, vector_width = 16 : i64, workgroup_size = array<i32: 1, 1, 1>}}
    %4 = scf.forall (%arg7, %arg8) in (1, 8) shared_outs(%arg9 = %1) -> (tensor<64x1024xf32>) {
      %7 = affine.apply #map(%arg8)
      %extracted_slice = tensor.extract_slice %arg9[0, %7] [64, 128] [1, 1] : tensor<64x1024xf32> to tensor<64x128xf32>
      %8 = scf.for %arg10 = %c0 to %c64 step %c1 iter_args(%arg11 = %extracted_slice) -> (tensor<64x128xf32>) {
        %11 = scf.for %arg12 = %c0 to %c128 step %c32 iter_args(%arg13 = %arg11) -> (tensor<64x128xf32>) {
          %12 = vector.transfer_write %cst_0, %arg13[%arg10, %arg12] {in_bounds = [true, true]} : vector<1x32xf32>, tensor<64x128xf32>
          scf.yield %12 : tensor<64x128xf32>
        }
        scf.yield %11 : tensor<64x128xf32>
      }
      %9 = scf.for %arg10 = %c0 to %c1024 step %c256 iter_args(%arg11 = %8) -> (tensor<64x128xf32>) {
        %11 = scf.for %arg12 = %c0 to %c128 step %c32 iter_args(%arg13 = %arg11) -> (tensor<64x128xf32>) {
          %12 = affine.apply #map1(%arg8)[%arg12]
          %13 = scf.for %arg14 = %c0 to %c64 step %c8 iter_args(%arg15 = %arg13) -> (tensor<64x128xf32>) {
            %extracted_slice_1 = tensor.extract_slice %arg15[%arg14, %arg12] [8, 32] [1, 1] : tensor<64x128xf32> to tensor<8x32xf32>
            %14 = vector.transfer_read %extracted_slice_1[%c0, %c0], %0 {in_bounds = [true, true]} : tensor<8x32xf32>, vector<8x32xf32>
            %15 = scf.for %arg16 = %c0 to %c256 step %c1 iter_args(%arg17 = %14) -> (vector<8x32xf32>) {
              %17 = affine.apply #map2()[%arg10, %arg16]
              %18 = vector.transfer_read %3[%arg14, %17], %0 {in_bounds = [true, true]} : tensor<64x1024xf32>, vector<8x1xf32>
              %19 = vector.transfer_read %arg3[%17, %12], %0 {in_bounds = [true, true]} : tensor<1024x1024xf32>, vector<1x32xf32>
              %20 = vector.contract {indexing_maps = [#map3, #map4, #map5], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %18, %19, %arg17 : vector<8x1xf32>, vector<1x32xf32> into vector<8x32xf32>
              scf.yield %20 : vector<8x32xf32>
            }
            %16 = vector.transfer_write %15, %extracted_slice_1[%c0, %c0] {in_bounds = [true, true]} : vector<8x32xf32>, tensor<8x32xf32>
            %inserted_slice = tensor.insert_slice %16 into %arg15[%arg14, %arg12] [8, 32] [1, 1] : tensor<8x32xf32> into tensor<64x128xf32>
            scf.yield %inserted_slice : tensor<64x128xf32>
          }
          scf.yield %13 : tensor<64x128xf32>
        }
        scf.yield %11 : tensor<64x128xf32>
      }
      %10 = scf.for %arg10 = %c0 to %c64 step %c1 iter_args(%arg11 = %9) -> (tensor<64x128xf32>) {
        %11 = scf.for %arg12 = %c0 to %c128 step %c32 iter_args(%arg13 = %arg11) -> (tensor<64x128xf32>) {
          %12 = affine.apply #map1(%arg8)[%arg12]
          %13 = vector.transfer_read %arg4[%12], %0 {in_bounds = [true]} : tensor<1024xf32>, vector<32xf32>
          %14 = vector.broadcast %13 : vector<32xf32> to vector<1x32xf32>
          %15 = vector.transfer_read %arg13[%arg10, %arg12], %0 {in_bounds = [true, true]} : tensor<64x128xf32>, vector<1x32xf32>
          %16 = arith.addf %15, %14 : vector<1x32xf32>
          %17 = arith.maximumf %16, %cst_0 : vector<1x32xf32>
          %18 = vector.transfer_write %17, %arg13[%arg10, %arg12] {in_bounds = [true, true]} : vector<1x32xf32>, tensor<64x128xf32>
          scf.yield %18 : tensor<64x128xf32>
        }
        scf.yield %11 : tensor<64x128xf32>
      }
      scf.forall.in_parallel {
        tensor.parallel_insert_slice %10 into %arg9[0, %7] [64, 128] [1, 1] : tensor<64x128xf32> into tensor<64x1024xf32>
      }
    } {monopour.kernel = {class = "contraction", reduction_step = 1 : i64, register_tile = array<i64: 8, 32>, share = "none", tile = array<i64: 64, 128>, vector_width = 16 : i64, workgroup_size = array<i32: 1, 1, 1>}}
    %5 = tensor.empty() : tensor<64x10xf32>
    %6 = scf.forall (%arg7, %arg8) in (1, 1) shared_outs(%arg9 = %5) -> (tensor<64x10xf32>) {
      %extracted_slice = tensor.extract_slice %arg9[0, 0] [64, 10] [1, 1] : tensor<64x10xf32> to tensor<64x10xf32>
      %7 = vector.transfer_read %arg6[%c0], %0 {in_bounds = [true]} : tensor<10xf32>, vector<10xf32>
      %8 = vector.broadcast %7 : vector<10xf32> to vector<16x10xf32>
      %9 = scf.for %arg10 = %c0 to %c64 step %c16 iter_args(%arg11 = %extracted_slice) -> (tensor<64x10xf32>) {
        %10 = scf.for %arg12 = %c0 to %c1024 step %c1 iter_args(%arg13 = %cst) -> (vector<16x10xf32>) {
          %13 = vector.transfer_read %4[%arg10, %arg12], %0 {in_bounds = [true, true]} : tensor<64x1024xf32>, vector<16x1xf32>
          %14 = vector.transfer_read %arg5[%arg12, %c0], %0 {in_bounds = [true, true]} : tensor<1024x10xf32>, vector<1x10xf32>
          %15 = vector.contract {indexing_maps = [#map3, #map4, #map5], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %13, %14, %arg13 : vector<16x1xf32>, vector<1x10xf32> into vector<16x10xf32>
          scf.yield %15 : vector<16x10xf32>
        }
        %11 = arith.addf %10, %8 : vector<16x10xf32>
        %12 = vector.transfer_write %11, %arg11[%arg10, %c0] {in_bounds = [true, true]} : vector<16x10xf32>, tensor<64x10xf32>
        scf.yield %12 : tensor<64x10xf32>
      }
      scf.forall.in_parallel {
        tensor.parallel_insert_slice %9 into %arg9[0, 0] [64, 10] [1, 1] : tensor<64x10xf32> into tensor<64x10xf32>
      }
    } {monopour.kernel = {class = "contraction", reduction_step = 1 : i64, register_tile = array<i64: 16, 10>, share = "none", tile = array<i64: 64, 10>, vector_width = 16 : i64, workgroup_size = array<i32: 1, 1, 1>}}
    return %6 : tensor<64x10xf32>
  }
}
