//! Forms of convolutions that CPUs get: unfolded windows, and short lines as columns. Right values on every kind of device.

use crate::backend::from_runtime;
use crate::host::{devices, f32s, ramp, run};
use monopour_ir::{Context, Module};
use monopour_testkit::approx::{self, Tolerance};
use monopour_testkit::evaluate;

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

/// Compares with the evaluator on every device; returns the dispatches of a run on the CPU.
fn check(text: &str, shapes: &[&[u64]]) -> u64 {
    let inputs: Vec<_> = shapes.iter().map(|s| f32s(s, &ramp(s.iter().product::<u64>() as usize))).collect();
    let values: Vec<_> = inputs.iter().map(from_runtime).collect();
    let expected = Context::scope(|cx| {
        let module = Module::parse(cx, text.as_bytes(), "test.mlir").unwrap_or_else(|d| panic!("{d}"));
        evaluate(&module, "main", &values).unwrap_or_else(|e| panic!("{e}"))
    });
    let mut dispatches = vec![];
    for device in devices() {
        let (results, stats, leaks) = run(text, &[], &device, &inputs);
        for (found, expected) in results.iter().zip(&expected) {
            let rounding = Tolerance { absolute: 1e-4, relative: 1e-4 };
            approx::compare(&from_runtime(found), expected, rounding)
                .unwrap_or_else(|e| panic!("{}: {e}", stats.device));
        }
        assert!(leaks.is_clean(), "{}: {leaks:?}", stats.device);
        assert_eq!(stats.counts.copies, 0, "{}", stats.device);
        dispatches.push(stats.counts.dispatches);
    }
    dispatches[0]
}

#[test]
fn windows_of_strided_lines_are_unfolded() {
    assert_eq!(check(STRIDED, &[&[1, 8, 31, 29], &[32, 8, 3, 3]]), 2, "the windows, and their product");
}

#[test]
fn short_lines_are_columns_of_a_product() {
    assert_eq!(
        check(SHORT_LINES, &[&[24, 9, 7], &[40, 24], &[40], &[40, 9, 7]]),
        2,
        "the product is a result of its own"
    );
}
