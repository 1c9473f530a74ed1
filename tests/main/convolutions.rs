//! Forms of convolutions that CPUs get: packed or unfolded windows, short lines as columns. Right values on all devices.

use crate::backend::from_runtime;
use crate::host::{devices, evaluated, f32s, ramp, run, run_each};
use monopour::program::DType;
use monopour::runtime::{HostTensor, Options, Session};
use monopour::{CompileOptions, compile};
use monopour_testkit::approx::{self, Tolerance};
use std::sync::Arc;

/// A convolution of stride 2 over lines of 29, with a pointwise epilogue.
const STRIDED: &str = "
func.func @main(%x: tensor<1x8x31x29xf32>, %w: tensor<32x8x3x3xf32>) -> tensor<1x32x15x14xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x32x15x14xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x32x15x14xf32>) -> tensor<1x32x15x14xf32>
  %c = linalg.conv_2d_nchw_fchw {strides = dense<2> : vector<2xi64>}
    ins(%x, %w : tensor<1x8x31x29xf32>, tensor<32x8x3x3xf32>) outs(%f : tensor<1x32x15x14xf32>) -> tensor<1x32x15x14xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n, o, y, x) -> (n, o, y, x)>, affine_map<(n, o, y, x) -> (n, o, y, x)>],
      iterator_types = [\"parallel\", \"parallel\", \"parallel\", \"parallel\"]}
    ins(%c : tensor<1x32x15x14xf32>) outs(%e : tensor<1x32x15x14xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.maximumf %a, %zero : f32
    linalg.yield %s : f32
  } -> tensor<1x32x15x14xf32>
  return %r : tensor<1x32x15x14xf32>
}";

/// A product over the channels of lines of 7, with a bias and a residual, of which both the sum and the product leave.
const SHORT_LINES: &str = "
#image = affine_map<(o, y, x, c) -> (c, y, x)>
#filter = affine_map<(o, y, x, c) -> (o, c)>
#out = affine_map<(o, y, x, c) -> (o, y, x)>
#id = affine_map<(o, y, x) -> (o, y, x)>
func.func @main(%x: tensor<24x9x7xf32>, %w: tensor<40x24xf32>, %b: tensor<40xf32>, %r: tensor<40x9x7xf32>)
    -> (tensor<40x9x7xf32>, tensor<40x9x7xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<40x9x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<40x9x7xf32>) -> tensor<40x9x7xf32>
  %p = linalg.generic {indexing_maps = [#image, #filter, #out],
      iterator_types = [\"parallel\", \"parallel\", \"parallel\", \"reduction\"]}
    ins(%x, %w : tensor<24x9x7xf32>, tensor<40x24xf32>) outs(%f : tensor<40x9x7xf32>) {
  ^bb0(%a: f32, %k: f32, %o: f32):
    %m = arith.mulf %a, %k : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<40x9x7xf32>
  %q = linalg.generic {indexing_maps = [#id, affine_map<(o, y, x) -> (o)>, #id, #id],
      iterator_types = [\"parallel\", \"parallel\", \"parallel\"]}
    ins(%p, %b, %r : tensor<40x9x7xf32>, tensor<40xf32>, tensor<40x9x7xf32>) outs(%e : tensor<40x9x7xf32>) {
  ^bb0(%a: f32, %k: f32, %i: f32, %o: f32):
    %s = arith.addf %a, %k : f32
    %t = arith.addf %s, %i : f32
    linalg.yield %t : f32
  } -> tensor<40x9x7xf32>
  return %q, %p : tensor<40x9x7xf32>, tensor<40x9x7xf32>
}";

/// A convolution and a product over channels, of images and filters of half precision, with the same filter twice.
const HALVES: &str = "
#image = affine_map<(o, y, x, c, i, j) -> (c, y + i, x + j)>
#filter = affine_map<(o, y, x, c, i, j) -> (o, c, i, j)>
#out = affine_map<(o, y, x, c, i, j) -> (o, y, x)>
func.func @main(%a: tensor<2x6x21xf16>, %b: tensor<4x5x19xf16>, %s: tensor<3x2x2x2xf16>)
    -> (tensor<3x5x20xf32>, tensor<3x5x20xf32>, tensor<3x5x19xf32>, tensor<3x2x2x2xf16>) {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<[[[[1.0, -2.0], [0.5, 3.0]], [[0.25, 6.1e-5], [-1.0, 2.0]]], [[[4.0, 5.0], [-0.0, 7.0]],
    [[1.5, 2.5], [3.5, 4.5]]], [[[-6.0, 1.0], [2.0, -3.0]], [[0.125, 8.0], [1.0, 1.0]]]]> : tensor<3x2x2x2xf16>
  %k = arith.constant dense<[[1.0, 2.0, 3.0, 4.0], [-1.0, 0.5, -0.5, 0.25], [3.0, 1.0, 4.0, 1.0]]> : tensor<3x4xf16>
  %e = tensor.empty() : tensor<3x5x20xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x5x20xf32>) -> tensor<3x5x20xf32>
  %p = linalg.generic {indexing_maps = [#image, #filter, #out],
      iterator_types = [\"parallel\", \"parallel\", \"parallel\", \"reduction\", \"reduction\", \"reduction\"]}
    ins(%a, %w : tensor<2x6x21xf16>, tensor<3x2x2x2xf16>) outs(%f : tensor<3x5x20xf32>) {
  ^bb0(%x: f16, %y: f16, %o: f32):
    %u = arith.extf %x : f16 to f32
    %v = arith.extf %y : f16 to f32
    %m = arith.mulf %u, %v : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<3x5x20xf32>
  %q = linalg.generic {indexing_maps = [#image, #filter, #out],
      iterator_types = [\"parallel\", \"parallel\", \"parallel\", \"reduction\", \"reduction\", \"reduction\"]}
    ins(%a, %s : tensor<2x6x21xf16>, tensor<3x2x2x2xf16>) outs(%f : tensor<3x5x20xf32>) {
  ^bb0(%x: f16, %y: f16, %o: f32):
    %u = arith.extf %x : f16 to f32
    %v = arith.extf %y : f16 to f32
    %m = arith.mulf %u, %v : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<3x5x20xf32>
  %g = tensor.empty() : tensor<3x5x19xf32>
  %h = linalg.fill ins(%zero : f32) outs(%g : tensor<3x5x19xf32>) -> tensor<3x5x19xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(o, y, x, c) -> (c, y, x)>, affine_map<(o, y, x, c) -> (o, c)>,
      affine_map<(o, y, x, c) -> (o, y, x)>], iterator_types = [\"parallel\", \"parallel\", \"parallel\", \"reduction\"]}
    ins(%b, %k : tensor<4x5x19xf16>, tensor<3x4xf16>) outs(%h : tensor<3x5x19xf32>) {
  ^bb0(%x: f16, %y: f16, %o: f32):
    %u = arith.extf %x : f16 to f32
    %v = arith.extf %y : f16 to f32
    %m = arith.mulf %u, %v : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<3x5x19xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(o, c, i, j) -> (o, c, i, j)>, affine_map<(o, c, i, j) -> (o, c, i, j)>,
      affine_map<(o, c, i, j) -> (o, c, i, j)>], iterator_types = [\"parallel\", \"parallel\", \"parallel\", \"parallel\"]}
    ins(%s, %w : tensor<3x2x2x2xf16>, tensor<3x2x2x2xf16>) outs(%s : tensor<3x2x2x2xf16>) {
  ^bb0(%x: f16, %y: f16, %o: f16):
    %t = arith.addf %x, %y : f16
    linalg.yield %t : f16
  } -> tensor<3x2x2x2xf16>
  return %p, %q, %r, %n : tensor<3x5x20xf32>, tensor<3x5x20xf32>, tensor<3x5x19xf32>, tensor<3x2x2x2xf16>
}";

fn compare(results: &[HostTensor], expected: &[monopour_testkit::HostTensor], rounding: f64, device: &str) {
    assert_eq!(results.len(), expected.len(), "{device}");
    for (found, expected) in results.iter().zip(expected) {
        let rounding = Tolerance { absolute: rounding, relative: rounding };
        approx::compare(&from_runtime(found), expected, rounding).unwrap_or_else(|e| panic!("{device}: {e}"));
    }
}

/// Compares with the evaluator on every device; returns the dispatches of a run on the CPU.
fn check(text: &str, shapes: &[&[u64]]) -> u64 {
    let inputs: Vec<_> = shapes.iter().map(|s| f32s(s, &ramp(s.iter().product::<u64>() as usize))).collect();
    let expected = evaluated(text, &inputs);
    let mut dispatches = vec![];
    for device in devices() {
        let (results, stats, leaks) = run(text, &[], &device, &inputs);
        compare(&results, &expected, 1e-4, &stats.device);
        assert!(leaks.is_clean(), "{}: {leaks:?}", stats.device);
        assert_eq!(stats.counts.copies, 0, "{}", stats.device);
        dispatches.push(stats.counts.dispatches);
    }
    dispatches[0]
}

/// Two padded poolings in a row, the first one of a tensor that is read again at the end.
const PADDED: &str = "
#in = affine_map<(c, y, x, i, j) -> (c, y + i, x + j)>
#window = affine_map<(c, y, x, i, j) -> (i, j)>
#out = affine_map<(c, y, x, i, j) -> (c, y, x)>
#id = affine_map<(c, y, x) -> (c, y, x)>
func.func @main(%x: tensor<4x9x7xf32>) -> (tensor<4x9x7xf32>, tensor<4x9x7xf32>) {
  %low = arith.constant -9.0 : f32
  %half = arith.constant 0.5 : f32
  %w = tensor.empty() : tensor<3x3xf32>
  %e = tensor.empty() : tensor<4x9x7xf32>
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = [\"parallel\", \"parallel\", \"parallel\"]}
    ins(%x : tensor<4x9x7xf32>) outs(%e : tensor<4x9x7xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.mulf %a, %half : f32
    linalg.yield %t : f32
  } -> tensor<4x9x7xf32>
  %p = tensor.pad %s low[0, 1, 1] high[0, 1, 1] {
  ^bb0(%c: index, %y: index, %z: index):
    tensor.yield %low : f32
  } : tensor<4x9x7xf32> to tensor<4x11x9xf32>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<4x9x7xf32>) -> tensor<4x9x7xf32>
  %m = linalg.generic {indexing_maps = [#in, #window, #out],
      iterator_types = [\"parallel\", \"parallel\", \"parallel\", \"reduction\", \"reduction\"]}
    ins(%p, %w : tensor<4x11x9xf32>, tensor<3x3xf32>) outs(%f : tensor<4x9x7xf32>) {
  ^bb0(%a: f32, %k: f32, %o: f32):
    %t = arith.maximumf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<4x9x7xf32>
  %q = tensor.pad %m low[0, 1, 1] high[0, 1, 1] {
  ^bb0(%c: index, %y: index, %z: index):
    tensor.yield %low : f32
  } : tensor<4x9x7xf32> to tensor<4x11x9xf32>
  %n = linalg.generic {indexing_maps = [#in, #window, #out],
      iterator_types = [\"parallel\", \"parallel\", \"parallel\", \"reduction\", \"reduction\"]}
    ins(%q, %w : tensor<4x11x9xf32>, tensor<3x3xf32>) outs(%f : tensor<4x9x7xf32>) {
  ^bb0(%a: f32, %k: f32, %o: f32):
    %t = arith.maximumf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<4x9x7xf32>
  %d = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = [\"parallel\", \"parallel\", \"parallel\"]}
    ins(%n, %s : tensor<4x9x7xf32>, tensor<4x9x7xf32>) outs(%e : tensor<4x9x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.subf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<4x9x7xf32>
  return %n, %d : tensor<4x9x7xf32>, tensor<4x9x7xf32>
}";

/// A padded tensor that a loop changes as a whole, border and all, and then reads.
const CHANGED_BORDER: &str = "
#id = affine_map<(y, x) -> (y, x)>
func.func @main(%x: tensor<5x6xf32>) -> tensor<7x8xf32> {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %e = tensor.empty() : tensor<7x8xf32>
  %p = tensor.pad %x low[1, 1] high[1, 1] {
  ^bb0(%y: index, %z: index):
    tensor.yield %one : f32
  } : tensor<5x6xf32> to tensor<7x8xf32>
  %l = scf.for %i = %c0 to %c3 step %c1 iter_args(%t = %p) -> tensor<7x8xf32> {
    %g = linalg.generic {indexing_maps = [#id], iterator_types = [\"parallel\", \"parallel\"]} outs(%t : tensor<7x8xf32>) {
    ^bb0(%o: f32):
      %s = arith.addf %o, %one : f32
      linalg.yield %s : f32
    } -> tensor<7x8xf32>
    scf.yield %g : tensor<7x8xf32>
  }
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = [\"parallel\", \"parallel\"]}
    ins(%l : tensor<7x8xf32>) outs(%e : tensor<7x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.mulf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<7x8xf32>
  return %r : tensor<7x8xf32>
}";

/// Values of several runs with other inputs each, on every device; the last run's dispatches and copies.
fn check_runs(text: &str, shape: &[u64]) -> Vec<(u64, u64)> {
    let values = |n: usize| ramp(shape.iter().product::<u64>() as usize).iter().map(|v| v * n as f32 - 1.0).collect();
    let values: Vec<Vec<f32>> = (1..4).map(values).collect();
    let inputs: Vec<_> = values.iter().map(|values| vec![f32s(shape, values)]).collect();
    let expected: Vec<_> = inputs.iter().map(|inputs| evaluated(text, inputs)).collect();
    let mut counts = vec![];
    for device in devices() {
        let (results, stats, leaks) = run_each(text, &[], &device, &inputs);
        for (results, expected) in results.iter().zip(&expected) {
            compare(results, expected, 1e-5, &stats.device);
        }
        assert!(leaks.is_clean(), "{}: {leaks:?}", stats.device);
        counts.push((stats.counts.dispatches, stats.counts.copies));
    }
    counts
}

#[test]
fn pads_are_filled_in_the_first_run_only() {
    let counts = check_runs(PADDED, &[4, 9, 7]);
    // GPUs have the last pooling and the difference in one.
    let (cpu, gpus) = counts.split_first().expect("a CPU is always there");
    assert_eq!(*cpu, (4, 0), "the scaling, two poolings and the difference");
    assert!(gpus.iter().all(|count| *count == (3, 0)), "{counts:?}");
}

#[test]
fn a_border_that_the_program_changes_is_filled_in_each_run() {
    assert!(!check_runs(CHANGED_BORDER, &[5, 6]).is_empty());
}

#[test]
fn windows_of_strided_lines_are_packed() {
    assert_eq!(check(STRIDED, &[&[1, 8, 31, 29], &[32, 8, 3, 3]]), 1, "tasks pack the windows");
}

#[test]
fn windows_of_lines_of_far_elements_are_unfolded() {
    let far = STRIDED.replace("dense<2>", "dense<5>").replace("31x29", "73x68");
    assert_eq!(check(&far, &[&[1, 8, 73, 68], &[32, 8, 3, 3]]), 2, "the windows, and their product");
}

#[test]
fn short_lines_are_columns_of_a_product() {
    assert_eq!(
        check(SHORT_LINES, &[&[24, 9, 7], &[40, 24], &[40], &[40, 9, 7]]),
        2,
        "the product is a result of its own"
    );
}

/// One artifact with a variant per device: the CPU's has filters of f32, and those of f16 that other ops read.
#[test]
fn filters_of_half_precision_are_widened_for_cpus() {
    let halves = |shape: &[u64]| {
        let bytes = (0..shape.iter().product::<u64>()).flat_map(|i| (0x3800 + (i as u16 * 37) % 1024).to_le_bytes());
        HostTensor::new(DType::F16, shape.to_vec(), bytes.collect()).expect("as many bytes as the type says")
    };
    let inputs = vec![halves(&[2, 6, 21]), halves(&[4, 5, 19]), halves(&[3, 2, 2, 2])];
    let expected = evaluated(HALVES, &inputs);
    let devices = devices();
    for order in [devices.iter().collect::<Vec<_>>(), devices.iter().rev().collect()] {
        let targets = order.iter().map(|(_, target)| target.clone()).collect();
        let options = CompileOptions { targets, verify: true, ..Default::default() };
        let program = compile(HALVES.as_bytes(), "test.mlir", &options).unwrap_or_else(|e| panic!("{e}")).program;
        let types: Vec<_> = program.constants.iter().map(|c| (c.dtype, c.shape.len())).collect();
        for constant in [(DType::F16, 4), (DType::F32, 4), (DType::F32, 2)] {
            assert!(types.contains(&constant), "{constant:?} of {types:?}");
        }
        // A GPU multiplies by the narrow filter.
        assert_eq!(types.contains(&(DType::F16, 2)), devices.len() > 1, "{types:?}");
        let program = Arc::new(program);
        for (device, _) in &devices {
            let mut session =
                Session::load(device, program.clone(), &Options::default()).unwrap_or_else(|e| panic!("{e}"));
            let results = session.run(&inputs).unwrap_or_else(|e| panic!("{e}"));
            compare(&results, &expected, 1e-3, &session.stats().device);
        }
    }
}
