func.func @main(%x: tensor<64x64xf32>, %g1w: tensor<64xf32>, %b1w: tensor<64xf32>, %wa: tensor<64x192xf32>, %ba: tensor<192xf32>, %wp: tensor<64x64xf32>, %bp: tensor<64xf32>, %g2w: tensor<64xf32>, %b2w: tensor<64xf32>, %wf: tensor<64x256xf32>, %bf: tensor<256xf32>, %wo: tensor<256x64xf32>, %bo: tensor<64xf32>) -> tensor<64x64xf32> {
  %z = arith.constant 0.000000e+00 : f32
  %ne = arith.constant 6.400000e+01 : f32
  %eps = arith.constant 1.000000e-05 : f32
  %g1 = arith.constant 4.471500e-02 : f32
  %g2 = arith.constant 7.978846e-01 : f32
  %one = arith.constant 1.000000e+00 : f32
  %half = arith.constant 5.000000e-01 : f32
  %sc = arith.constant 2.500000e-01 : f32
  %neg = arith.constant -1.000000e+09 : f32
  %v1 = tensor.empty() : tensor<64xf32>
  %v2 = linalg.fill ins(%z : f32) outs(%v1 : tensor<64xf32>) -> tensor<64xf32>
  %v3 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x64xf32>) outs(%v2 : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %u = arith.addf %o, %a : f32
    linalg.yield %u : f32
  } -> tensor<64xf32>
  %v5 = tensor.empty() : tensor<64x64xf32>
  %v4 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x, %v3 : tensor<64x64xf32>, tensor<64xf32>) outs(%v5 : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.divf %b, %ne : f32
    %u = arith.subf %a, %m : f32
    linalg.yield %u : f32
  } -> tensor<64x64xf32>
  %v6 = tensor.empty() : tensor<64xf32>
  %v7 = linalg.fill ins(%z : f32) outs(%v6 : tensor<64xf32>) -> tensor<64xf32>
  %v8 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%v4 : tensor<64x64xf32>) outs(%v7 : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.mulf %a, %a : f32
    %u = arith.addf %o, %t : f32
    linalg.yield %u : f32
  } -> tensor<64xf32>
  %v10 = tensor.empty() : tensor<64x64xf32>
  %v9 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%v4, %v8, %g1w, %b1w : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) outs(%v10 : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32, %o: f32):
    %m = arith.divf %b, %ne : f32
    %t = arith.addf %m, %eps : f32
    %r = math.rsqrt %t : f32
    %u = arith.mulf %a, %r : f32
    %w = arith.mulf %u, %c : f32
    %y = arith.addf %w, %d : f32
    linalg.yield %y : f32
  } -> tensor<64x64xf32>
  %v12 = tensor.empty() : tensor<64x192xf32>
  %v13 = linalg.fill ins(%z : f32) outs(%v12 : tensor<64x192xf32>) -> tensor<64x192xf32>
  %v11 = linalg.matmul ins(%v9, %wa : tensor<64x64xf32>, tensor<64x192xf32>) outs(%v13 : tensor<64x192xf32>) -> tensor<64x192xf32>
  %v15 = tensor.empty() : tensor<64x192xf32>
  %v14 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%v11, %ba : tensor<64x192xf32>, tensor<192xf32>) outs(%v15 : tensor<64x192xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %u = arith.addf %a, %b : f32
    linalg.yield %u : f32
  } -> tensor<64x192xf32>
  %v16 = tensor.expand_shape %v14 [[0], [1, 2, 3]] output_shape [64, 3, 4, 16] : tensor<64x192xf32> into tensor<64x3x4x16xf32>
  %v17 = tensor.extract_slice %v16[0, 0, 0, 0] [64, 1, 4, 16] [1, 1, 1, 1] : tensor<64x3x4x16xf32> to tensor<64x4x16xf32>
  %v18 = tensor.extract_slice %v16[0, 1, 0, 0] [64, 1, 4, 16] [1, 1, 1, 1] : tensor<64x3x4x16xf32> to tensor<64x4x16xf32>
  %v19 = tensor.extract_slice %v16[0, 2, 0, 0] [64, 1, 4, 16] [1, 1, 1, 1] : tensor<64x3x4x16xf32> to tensor<64x4x16xf32>
  %v20 = tensor.empty() : tensor<4x64x16xf32>
  %v21 = linalg.transpose ins(%v17 : tensor<64x4x16xf32>) outs(%v20 : tensor<4x64x16xf32>) permutation = [1, 0, 2]
  %v22 = tensor.empty() : tensor<4x16x64xf32>
  %v23 = linalg.transpose ins(%v18 : tensor<64x4x16xf32>) outs(%v22 : tensor<4x16x64xf32>) permutation = [1, 2, 0]
  %v24 = tensor.empty() : tensor<4x64x16xf32>
  %v25 = linalg.transpose ins(%v19 : tensor<64x4x16xf32>) outs(%v24 : tensor<4x64x16xf32>) permutation = [1, 0, 2]
  %v26 = tensor.empty() : tensor<4x64x64xf32>
  %v27 = linalg.fill ins(%z : f32) outs(%v26 : tensor<4x64x64xf32>) -> tensor<4x64x64xf32>
  %v28 = linalg.batch_matmul ins(%v21, %v23 : tensor<4x64x16xf32>, tensor<4x16x64xf32>) outs(%v27 : tensor<4x64x64xf32>) -> tensor<4x64x64xf32>
  %v30 = tensor.empty() : tensor<4x64x64xf32>
  %v29 = linalg.generic {indexing_maps = [affine_map<(h, i, j) -> (h, i, j)>, affine_map<(h, i, j) -> (h, i, j)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%v28 : tensor<4x64x64xf32>) outs(%v30 : tensor<4x64x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.mulf %a, %sc : f32
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %keep = arith.cmpi ule, %j, %i : index
    %r = arith.select %keep, %t, %neg : f32
    linalg.yield %r : f32
  } -> tensor<4x64x64xf32>
  %v31 = tensor.empty() : tensor<4x64x64xf32>
  %v32 = linalg.softmax dimension(2) ins(%v29 : tensor<4x64x64xf32>) outs(%v31 : tensor<4x64x64xf32>) -> tensor<4x64x64xf32>
  %v33 = tensor.empty() : tensor<4x64x16xf32>
  %v34 = linalg.fill ins(%z : f32) outs(%v33 : tensor<4x64x16xf32>) -> tensor<4x64x16xf32>
  %v35 = linalg.batch_matmul ins(%v32, %v25 : tensor<4x64x64xf32>, tensor<4x64x16xf32>) outs(%v34 : tensor<4x64x16xf32>) -> tensor<4x64x16xf32>
  %v36 = tensor.empty() : tensor<64x4x16xf32>
  %v37 = linalg.transpose ins(%v35 : tensor<4x64x16xf32>) outs(%v36 : tensor<64x4x16xf32>) permutation = [1, 0, 2]
  %v38 = tensor.collapse_shape %v37 [[0], [1, 2]] : tensor<64x4x16xf32> into tensor<64x64xf32>
  %v40 = tensor.empty() : tensor<64x64xf32>
  %v41 = linalg.fill ins(%z : f32) outs(%v40 : tensor<64x64xf32>) -> tensor<64x64xf32>
  %v39 = linalg.matmul ins(%v38, %wp : tensor<64x64xf32>, tensor<64x64xf32>) outs(%v41 : tensor<64x64xf32>) -> tensor<64x64xf32>
  %v43 = tensor.empty() : tensor<64x64xf32>
  %v42 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%v39, %bp, %x : tensor<64x64xf32>, tensor<64xf32>, tensor<64x64xf32>) outs(%v43 : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
    %u = arith.addf %a, %b : f32
    %uu = arith.addf %u, %c : f32
    linalg.yield %uu : f32
  } -> tensor<64x64xf32>
  %v44 = tensor.empty() : tensor<64xf32>
  %v45 = linalg.fill ins(%z : f32) outs(%v44 : tensor<64xf32>) -> tensor<64xf32>
  %v46 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%v42 : tensor<64x64xf32>) outs(%v45 : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %u = arith.addf %o, %a : f32
    linalg.yield %u : f32
  } -> tensor<64xf32>
  %v48 = tensor.empty() : tensor<64x64xf32>
  %v47 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%v42, %v46 : tensor<64x64xf32>, tensor<64xf32>) outs(%v48 : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.divf %b, %ne : f32
    %u = arith.subf %a, %m : f32
    linalg.yield %u : f32
  } -> tensor<64x64xf32>
  %v49 = tensor.empty() : tensor<64xf32>
  %v50 = linalg.fill ins(%z : f32) outs(%v49 : tensor<64xf32>) -> tensor<64xf32>
  %v51 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%v47 : tensor<64x64xf32>) outs(%v50 : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.mulf %a, %a : f32
    %u = arith.addf %o, %t : f32
    linalg.yield %u : f32
  } -> tensor<64xf32>
  %v53 = tensor.empty() : tensor<64x64xf32>
  %v52 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%v47, %v51, %g2w, %b2w : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) outs(%v53 : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32, %o: f32):
    %m = arith.divf %b, %ne : f32
    %t = arith.addf %m, %eps : f32
    %r = math.rsqrt %t : f32
    %u = arith.mulf %a, %r : f32
    %w = arith.mulf %u, %c : f32
    %y = arith.addf %w, %d : f32
    linalg.yield %y : f32
  } -> tensor<64x64xf32>
  %v55 = tensor.empty() : tensor<64x256xf32>
  %v56 = linalg.fill ins(%z : f32) outs(%v55 : tensor<64x256xf32>) -> tensor<64x256xf32>
  %v54 = linalg.matmul ins(%v52, %wf : tensor<64x64xf32>, tensor<64x256xf32>) outs(%v56 : tensor<64x256xf32>) -> tensor<64x256xf32>
  %v58 = tensor.empty() : tensor<64x256xf32>
  %v57 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%v54, %bf : tensor<64x256xf32>, tensor<256xf32>) outs(%v58 : tensor<64x256xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %u = arith.addf %a, %b : f32
    linalg.yield %u : f32
  } -> tensor<64x256xf32>
  %v60 = tensor.empty() : tensor<64x256xf32>
  %v59 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%v57 : tensor<64x256xf32>) outs(%v60 : tensor<64x256xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.mulf %a, %a : f32
    %t2 = arith.mulf %t, %a : f32
    %t3 = arith.mulf %t2, %g1 : f32
    %t4 = arith.addf %a, %t3 : f32
    %t5 = arith.mulf %t4, %g2 : f32
    %t6 = math.tanh %t5 : f32
    %t7 = arith.addf %t6, %one : f32
    %t8 = arith.mulf %a, %half : f32
    %t9 = arith.mulf %t8, %t7 : f32
    linalg.yield %t9 : f32
  } -> tensor<64x256xf32>
  %v62 = tensor.empty() : tensor<64x64xf32>
  %v63 = linalg.fill ins(%z : f32) outs(%v62 : tensor<64x64xf32>) -> tensor<64x64xf32>
  %v61 = linalg.matmul ins(%v59, %wo : tensor<64x256xf32>, tensor<256x64xf32>) outs(%v63 : tensor<64x64xf32>) -> tensor<64x64xf32>
  %v65 = tensor.empty() : tensor<64x64xf32>
  %v64 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%v61, %bo, %v42 : tensor<64x64xf32>, tensor<64xf32>, tensor<64x64xf32>) outs(%v65 : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
    %u = arith.addf %a, %b : f32
    %uu = arith.addf %u, %c : f32
    linalg.yield %uu : f32
  } -> tensor<64x64xf32>
  return %v64 : tensor<64x64xf32>
}
