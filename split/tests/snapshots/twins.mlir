module {
  func.func private @main_dispatch_0_whole(%arg0: memref<f32>, %arg1: memref<f32>, %arg2: memref<f32>, %arg3: index, %arg4: index, %arg5: index, %arg6: index, %arg7: index) attributes {monopour.general = "main_dispatch_0", monopour.grid_rank = 1 : i64, monopour.kernel = {class = "contraction", reduction_step = 8 : i64, register_tile = array<i64: 1, 8>, tile = array<i64: 1>, vector_width = 8 : i64, workgroup_size = array<i32: 8, 1, 1>}} {
    %c8 = arith.constant 8 : index
    %0 = arith.divui %arg4, %c8 : index
    %1 = arith.muli %0, %c8 : index
    %reinterpret_cast = memref.reinterpret_cast %arg0 to offset: [0], sizes: [%arg3, %1], strides: [%1, 1] : memref<f32> to memref<?x?xf32>
    %reinterpret_cast_0 = memref.reinterpret_cast %arg1 to offset: [0], sizes: [%arg5, 16], strides: [16, 1] : memref<f32> to memref<?x16xf32>
    %reinterpret_cast_1 = memref.reinterpret_cast %arg2 to offset: [0], sizes: [%arg6, 16], strides: [16, 1] : memref<f32> to memref<?x16xf32>
    %subview = memref.subview %reinterpret_cast[%arg7, 0] [1, %1] [1, 1] : memref<?x?xf32> to memref<1x?xf32, strided<[?, 1], offset: ?>>
    %subview_2 = memref.subview %reinterpret_cast_0[%arg7, 0] [1, 16] [1, 1] : memref<?x16xf32> to memref<1x16xf32, strided<[16, 1], offset: ?>>
    linalg.matmul ins(%subview, %reinterpret_cast_1 : memref<1x?xf32, strided<[?, 1], offset: ?>>, memref<?x16xf32>) outs(%subview_2 : memref<1x16xf32, strided<[16, 1], offset: ?>>)
    return
  }
  func.func private @main_dispatch_0(%arg0: memref<f32>, %arg1: memref<f32>, %arg2: memref<f32>, %arg3: index, %arg4: index, %arg5: index, %arg6: index, %arg7: index) attributes {monopour.grid_rank = 1 : i64, monopour.kernel = {class = "contraction", reduction_step = 8 : i64, register_tile = array<i64: 1, 8>, tile = array<i64: 1>, vector_width = 8 : i64, workgroup_size = array<i32: 8, 1, 1>}} {
    %reinterpret_cast = memref.reinterpret_cast %arg0 to offset: [0], sizes: [%arg3, %arg4], strides: [%arg4, 1] : memref<f32> to memref<?x?xf32>
    %reinterpret_cast_0 = memref.reinterpret_cast %arg1 to offset: [0], sizes: [%arg5, 16], strides: [16, 1] : memref<f32> to memref<?x16xf32>
    %reinterpret_cast_1 = memref.reinterpret_cast %arg2 to offset: [0], sizes: [%arg6, 16], strides: [16, 1] : memref<f32> to memref<?x16xf32>
    %subview = memref.subview %reinterpret_cast[%arg7, 0] [1, %arg4] [1, 1] : memref<?x?xf32> to memref<1x?xf32, strided<[?, 1], offset: ?>>
    %subview_2 = memref.subview %reinterpret_cast_0[%arg7, 0] [1, 16] [1, 1] : memref<?x16xf32> to memref<1x16xf32, strided<[16, 1], offset: ?>>
    linalg.matmul ins(%subview, %reinterpret_cast_1 : memref<1x?xf32, strided<[?, 1], offset: ?>>, memref<?x16xf32>) outs(%subview_2 : memref<1x16xf32, strided<[16, 1], offset: ?>>)
    return
  }
  func.func @main(%arg0: memref<?x?xf32>, %arg1: memref<?x16xf32>, %arg2: memref<?x16xf32>) {
    %c0 = arith.constant 0 : index
    %dim = memref.dim %arg1, %c0 : memref<?x16xf32>
    %c0_0 = arith.constant 0 : index
    %dim_1 = memref.dim %arg2, %c0_0 : memref<?x16xf32>
    %c1 = arith.constant 1 : index
    %dim_2 = memref.dim %arg0, %c1 : memref<?x?xf32>
    %c0_3 = arith.constant 0 : index
    %dim_4 = memref.dim %arg0, %c0_3 : memref<?x?xf32>
    %c0_5 = arith.constant 0 : index
    %c1_6 = arith.constant 1 : index
    %base_buffer, %offset, %sizes:2, %strides:2 = memref.extract_strided_metadata %arg0 : memref<?x?xf32> -> memref<f32>, index, index, index, index, index
    %base_buffer_7, %offset_8, %sizes_9:2, %strides_10:2 = memref.extract_strided_metadata %arg2 : memref<?x16xf32> -> memref<f32>, index, index, index, index, index
    %base_buffer_11, %offset_12, %sizes_13:2, %strides_14:2 = memref.extract_strided_metadata %arg1 : memref<?x16xf32> -> memref<f32>, index, index, index, index, index
    %c8 = arith.constant 8 : index
    %c0_15 = arith.constant 0 : index
    %0 = arith.remui %dim_2, %c8 : index
    %1 = arith.cmpi eq, %0, %c0_15 : index
    scf.if %1 {
      scf.forall (%arg3) in (%dim_4) {
        func.call @main_dispatch_0_whole(%base_buffer, %base_buffer_7, %base_buffer_11, %dim_4, %dim_2, %dim_1, %dim, %arg3) : (memref<f32>, memref<f32>, memref<f32>, index, index, index, index, index) -> ()
      } {monopour.kernel = {class = "contraction", reduction_step = 8 : i64, register_tile = array<i64: 1, 8>, tile = array<i64: 1>, vector_width = 8 : i64, workgroup_size = array<i32: 8, 1, 1>}}
    } else {
      scf.forall (%arg3) in (%dim_4) {
        func.call @main_dispatch_0(%base_buffer, %base_buffer_7, %base_buffer_11, %dim_4, %dim_2, %dim_1, %dim, %arg3) : (memref<f32>, memref<f32>, memref<f32>, index, index, index, index, index) -> ()
      } {monopour.kernel = {class = "contraction", reduction_step = 8 : i64, register_tile = array<i64: 1, 8>, tile = array<i64: 1>, vector_width = 8 : i64, workgroup_size = array<i32: 8, 1, 1>}}
    }
    return
  }
}
