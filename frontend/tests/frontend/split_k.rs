//! Parts of a reduction side by side, and rows in several dimensions as one, on hardware GPUs.

use crate::support::{import_text, lavapipe, portable, reparses};
use monopour_frontend::{TargetDescription, attention, collapse_lines, fuse, layouts};
use monopour_ir::Module;
use monopour_program::{DeviceType, GpuDescription};

fn description(target: TargetDescription) -> GpuDescription {
    let TargetDescription::Gpu(gpu) = target else { panic!("it is a GPU") };
    gpu
}

fn hardware() -> GpuDescription {
    GpuDescription { device_type: DeviceType::Discrete, ..description(portable()) }
}

/// A product of these rows, terms and columns, and what follows it.
fn product([m, k, n]: [i64; 3], after: &str) -> String {
    format!(
        "func.func @main(%x: tensor<{m}x{k}xf32>, %w: tensor<{k}x{n}xf32>, %e: tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32> {{
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  %p = linalg.matmul ins(%x, %w : tensor<{m}x{k}xf32>, tensor<{k}x{n}xf32>) outs(%f : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
{after}  return %p : tensor<{m}x{n}xf32>
}}"
    )
}

/// The first dimension of the results of one dimension more than the function's.
fn parts(module: &Module) -> Vec<i64> {
    let shapes = module.op().find_all("linalg.generic").into_iter().filter_map(|op| op.result(0).ty().shape());
    shapes.filter(|shape| shape.len() == 3).map(|shape| shape[0]).collect()
}

fn fused<'c>(text: &str, gpu: &GpuDescription) -> Module<'c> {
    let module = import_text(text).expect("imports").module;
    fuse::run_for(&module, Some(&TargetDescription::Gpu(gpu.clone()))).expect("fuses");
    reparses(&module);
    module
}

#[test]
fn products_of_few_tiles_are_parts_of_their_reduction() {
    for (sizes, expected) in [
        // Tiles of 64 x 64, three for each of 132 units at most: 24 and 48 of them.
        ([128, 3072, 768], vec![16]),
        ([256, 3072, 768], vec![8]),
        // No more parts than of 96 terms each.
        ([128, 768, 768], vec![8]),
        ([128, 180, 768], vec![]),
        // A divisor.
        ([128, 1535, 768], vec![5]),
        // As many tiles as units.
        ([1024, 3072, 768], vec![]),
        // A row times columns is cut by its kernel.
        ([1, 3072, 768], vec![]),
    ] {
        assert_eq!(parts(&fused(&product(sizes, ""), &hardware())), expected, "{sizes:?}");
    }
    for other in [portable(), lavapipe()] {
        assert_eq!(parts(&fused(&product([128, 3072, 768], ""), &description(other))), Vec::<i64>::new());
    }
}

/// Scores stay whole: their softmax may become an attention.
#[test]
fn scores_of_a_softmax_stay_whole() {
    let text = product([128, 3072, 768], "").replace("-> tensor<128x768xf32> {\n", "-> tensor<128xf32> {\n");
    let maximum = "  %i = tensor.empty() : tensor<128xf32>
  %low = arith.constant 0xFF800000 : f32
  %g = linalg.fill ins(%low : f32) outs(%i : tensor<128xf32>) -> tensor<128xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = [\"parallel\", \"reduction\"]} ins(%p : tensor<128x768xf32>) outs(%g : tensor<128xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.maximumf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<128xf32>
  return %m : tensor<128xf32>";
    let text = text.replace("  return %p : tensor<128x768xf32>", maximum);
    assert_eq!(parts(&fused(&text, &hardware())), Vec::<i64>::new(), "{text}");
}

/// A batch of sequences times weights has one dimension of rows, also behind it.
#[test]
fn rows_of_a_batch_are_one_dimension() {
    let text = "func.func @main(%x: tensor<16x197x768xf32>, %w: tensor<768x768xf32>, %b: tensor<768xf32>,
    %e: tensor<16x197x768xf32>) -> tensor<16x197x768xf32> {
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<16x197x768xf32>) -> tensor<16x197x768xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (k, n)>,
      affine_map<(b, m, n, k) -> (b, m, n)>], iterator_types = [\"parallel\", \"parallel\", \"parallel\", \"reduction\"]}
    ins(%x, %w : tensor<16x197x768xf32>, tensor<768x768xf32>) outs(%f : tensor<16x197x768xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %m = arith.mulf %a, %c : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<16x197x768xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(b, m, n) -> (b, m, n)>, affine_map<(b, m, n) -> (n)>,
      affine_map<(b, m, n) -> (b, m, n)>], iterator_types = [\"parallel\", \"parallel\", \"parallel\"]}
    ins(%p, %b : tensor<16x197x768xf32>, tensor<768xf32>) outs(%e : tensor<16x197x768xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<16x197x768xf32>
  return %r : tensor<16x197x768xf32>
}";
    for (gpu, rows) in [(hardware(), vec![3152, 768]), (description(lavapipe()), vec![16, 197, 768])] {
        let module = fused(text, &gpu);
        attention::run(&module, &TargetDescription::Gpu(gpu.clone())).expect("joins");
        collapse_lines::run_on_gpu(&module, &gpu).expect("collapses");
        reparses(&module);
        let shapes: Vec<_> =
            module.op().find_all("linalg.generic").into_iter().filter_map(|op| op.result(0).ty().shape()).collect();
        assert_eq!(shapes, [rows.clone(), rows]);
    }
}

/// The channels of images are last on hardware, and filters follow.
#[test]
fn channels_are_last_on_hardware() {
    let filter = "AB".repeat(64 * 32 * 9 * 4);
    let text = format!(
        "func.func @main(%x: tensor<2x32x16x16xf32>) -> tensor<2x64x14x14xf32> {{
  %w = arith.constant dense<\"0x{filter}\"> : tensor<64x32x3x3xf32>
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x64x14x14xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<2x64x14x14xf32>) -> tensor<2x64x14x14xf32>
  %c = linalg.conv_2d_nchw_fchw {{strides = dense<1> : vector<2xi64>}}
    ins(%x, %w : tensor<2x32x16x16xf32>, tensor<64x32x3x3xf32>) outs(%f : tensor<2x64x14x14xf32>) -> tensor<2x64x14x14xf32>
  return %c : tensor<2x64x14x14xf32>
}}"
    );
    for (gpu, expected) in [(hardware(), vec![2, 14, 14, 64]), (description(lavapipe()), vec![2, 64, 14, 14])] {
        let mut imported = import_text(&text).expect("imports");
        layouts::run_on_gpu(&imported.module, &mut imported.weights, &gpu).expect("lays out");
        reparses(&imported.module);
        let is_sum = |op: &monopour_ir::Op| op.num_operands() == 3;
        let ops = imported.module.op().nested(monopour_ir::WalkOrder::Pre);
        let sums = ops.into_iter().filter(|op| op.dialect() == "linalg" && is_sum(op));
        let shapes: Vec<_> = sums.filter_map(|op| op.result(0).ty().shape()).collect();
        assert_eq!(shapes, [expected]);
    }
}
