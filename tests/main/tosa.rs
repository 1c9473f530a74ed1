//! Models in TOSA: values by loops over what the specification says, on every kind of device.

use crate::host::{compare, devices, f32s, ramp, raw, run};
use monopour::program::{CpuTarget, DType, TensorDesc};
use monopour::runtime::HostTensor;
use monopour::{CompileOptions, TargetDescription, compile};

/// Runs on every device; the dispatches of a run on each.
fn check(name: &str, text: &str, inputs: &[HostTensor], expected: &[HostTensor]) -> Vec<u64> {
    let each = devices().into_iter().map(|device| {
        let (results, stats, leaks) = run(text, &[], &device, inputs);
        compare(&format!("{name} on {}", stats.device), &results, expected);
        assert!(leaks.is_clean(), "{name}: {leaks:?}");
        stats.counts.dispatches
    });
    each.collect()
}

fn for_cpu() -> CompileOptions {
    CompileOptions { targets: vec![TargetDescription::Cpu(CpuTarget::host())], ..Default::default() }
}

fn i8s(shape: &[u64], values: &[i32]) -> HostTensor {
    let bytes: Vec<u8> = values.iter().map(|v| i8::try_from(*v).expect("a value of 8 bits") as u8).collect();
    raw(DType::I8, shape, &bytes)
}

fn i32s(shape: &[u64], values: &[i32]) -> HostTensor {
    raw(DType::I32, shape, &values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>())
}

/// Numbers of `least..most`, in no order.
fn numbers(count: usize, least: i32, most: i32) -> Vec<i32> {
    (0..count as i32).map(|i| least + (i * 37 + i / 7 * 11) % (most - least)).collect()
}

/// Images `[height, width, channels]`, of one batch.
#[derive(Clone, Copy)]
struct Image {
    height: usize,
    width: usize,
    channels: usize,
}

impl Image {
    fn len(self) -> usize {
        self.height * self.width * self.channels
    }

    /// The place of an element, if it is in the image.
    fn at(self, y: isize, x: isize, c: usize) -> Option<usize> {
        let (y, x) = (usize::try_from(y).ok()?, usize::try_from(x).ok()?);
        (y < self.height && x < self.width).then_some((y * self.width + x) * self.channels + c)
    }

    /// The terms of a window of 3 x 3 around a position of a result: places in the image and in the window.
    fn window(self, y: usize, x: usize, stride: usize) -> impl Iterator<Item = (isize, isize, usize)> {
        (0..9).map(move |at| {
            let (i, j) = (at / 3, at % 3);
            ((y * stride + i) as isize - 1, (x * stride + j) as isize - 1, at)
        })
    }
}

const LAYER: &str = "
func.func @main(%x: tensor<1x7x6x4xi8>, %w: tensor<8x3x3x4xi8>, %b: tensor<8xi32>) -> tensor<1x7x6x8xi8> {
  %xz = \"tosa.const\"() {values = dense<-3> : tensor<1xi8>} : () -> tensor<1xi8>
  %wz = \"tosa.const\"() {values = dense<0> : tensor<1xi8>} : () -> tensor<1xi8>
  %c = tosa.conv2d %x, %w, %b, %xz, %wz {acc_type = i32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>,
    stride = array<i64: 1, 1>} : (tensor<1x7x6x4xi8>, tensor<8x3x3x4xi8>, tensor<8xi32>, tensor<1xi8>, tensor<1xi8>) -> tensor<1x7x6x8xi32>
  %m = \"tosa.const\"() {values = dense<[1073741824, 1200000000, 1300000000, 1400000000, 1500000000, 1600000000, 2000000000, 2147483647]> : tensor<8xi32>} : () -> tensor<8xi32>
  %s = \"tosa.const\"() {values = dense<[38, 39, 37, 38, 40, 38, 39, 41]> : tensor<8xi8>} : () -> tensor<8xi8>
  %iz = \"tosa.const\"() {values = dense<0> : tensor<1xi32>} : () -> tensor<1xi32>
  %oz = \"tosa.const\"() {values = dense<5> : tensor<1xi8>} : () -> tensor<1xi8>
  %r = tosa.rescale %c, %m, %s, %iz, %oz {input_unsigned = false, output_unsigned = false, per_channel = true,
    rounding_mode = SINGLE_ROUND, scale32 = true} : (tensor<1x7x6x8xi32>, tensor<8xi32>, tensor<8xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<1x7x6x8xi8>
  %k = tosa.clamp %r {min_val = -100 : i8, max_val = 90 : i8} : (tensor<1x7x6x8xi8>) -> tensor<1x7x6x8xi8>
  return %k : tensor<1x7x6x8xi8>
}";

#[test]
fn a_quantised_layer_is_exact() {
    let (image, filters) = (Image { height: 7, width: 6, channels: 4 }, 8);
    let (x, w) = (numbers(image.len(), -128, 128), numbers(filters * 36, -127, 128));
    let bias = numbers(filters, -5_000, 5_000);
    let scales: [(i64, u32); 8] = [
        (1_073_741_824, 38),
        (1_200_000_000, 39),
        (1_300_000_000, 37),
        (1_400_000_000, 38),
        (1_500_000_000, 40),
        (1_600_000_000, 38),
        (2_000_000_000, 39),
        (2_147_483_647, 41),
    ];
    let mut expected = vec![];
    for at in 0..image.height * image.width * filters {
        let (y, column, f) = (at / filters / image.width, at / filters % image.width, at % filters);
        let mut sum = i64::from(bias[f]);
        for (i, j, place) in image.window(y, column, 1) {
            for c in 0..image.channels {
                // Pads have the zero point.
                let element = image.at(i, j, c).map_or(0, |at| i64::from(x[at]) + 3);
                sum += element * i64::from(w[(f * 9 + place) * image.channels + c]);
            }
        }
        let (multiplier, shift) = scales[f];
        let scaled = (sum * multiplier + (1 << (shift - 1))) >> shift;
        expected.push((scaled + 5).clamp(-128, 127).clamp(-100, 90) as i32);
    }
    assert!(expected.iter().collect::<std::collections::HashSet<_>>().len() > 100, "the scales keep values apart");
    let inputs = [i8s(&[1, 7, 6, 4], &x), i8s(&[8, 3, 3, 4], &w), i32s(&[8], &bias)];
    check("a quantised layer", LAYER, &inputs, &[i8s(&[1, 7, 6, 8], &expected)]);
}

const CLASSIFIER: &str = "
func.func @main(%x: tensor<1x8x8x3xf32>, %w: tensor<8x3x3x3xf32>, %d: tensor<3x3x8x1xf32>, %b: tensor<8xf32>, %m: tensor<1x8x10xf32>)
    -> (tensor<1x10xf32>, tensor<1x1xi32>) {
  %z = \"tosa.const\"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %c = tosa.conv2d %x, %w, %b, %z, %z {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 0, 1, 0>, stride = array<i64: 2, 2>}
    : (tensor<1x8x8x3xf32>, tensor<8x3x3x3xf32>, tensor<8xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4x4x8xf32>
  %r = tosa.clamp %c {min_val = 0.0 : f32, max_val = 6.0 : f32} : (tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32>
  %e = tosa.depthwise_conv2d %r, %d, %b, %z, %z {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>}
    : (tensor<1x4x4x8xf32>, tensor<3x3x8x1xf32>, tensor<8xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4x4x8xf32>
  %a = tosa.add %e, %r : (tensor<1x4x4x8xf32>, tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32>
  %p = tosa.avg_pool2d %a, %z, %z {acc_type = f32, kernel = array<i64: 4, 4>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>}
    : (tensor<1x4x4x8xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x1x1x8xf32>
  %s3 = tosa.const_shape {values = dense<[1, 1, 8]> : tensor<3xindex>} : () -> !tosa.shape<3>
  %f = tosa.reshape %p, %s3 : (tensor<1x1x1x8xf32>, !tosa.shape<3>) -> tensor<1x1x8xf32>
  %q = tosa.matmul %f, %m, %z, %z : (tensor<1x1x8xf32>, tensor<1x8x10xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x1x10xf32>
  %s2 = tosa.const_shape {values = dense<[1, 10]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %o = tosa.reshape %q, %s2 : (tensor<1x1x10xf32>, !tosa.shape<2>) -> tensor<1x10xf32>
  %most = tosa.reduce_max %o {axis = 1 : i32} : (tensor<1x10xf32>) -> tensor<1x1xf32>
  %less = tosa.sub %o, %most : (tensor<1x10xf32>, tensor<1x1xf32>) -> tensor<1x10xf32>
  %power = tosa.exp %less : (tensor<1x10xf32>) -> tensor<1x10xf32>
  %total = tosa.reduce_sum %power {axis = 1 : i32} : (tensor<1x10xf32>) -> tensor<1x1xf32>
  %inverse = tosa.reciprocal %total : (tensor<1x1xf32>) -> tensor<1x1xf32>
  %shift = \"tosa.const\"() {values = dense<0> : tensor<1xi8>} : () -> tensor<1xi8>
  %y = tosa.mul %power, %inverse, %shift : (tensor<1x10xf32>, tensor<1x1xf32>, tensor<1xi8>) -> tensor<1x10xf32>
  %best = tosa.argmax %y {axis = 1 : i32} : (tensor<1x10xf32>) -> tensor<1xi32>
  %s11 = tosa.const_shape {values = dense<1> : tensor<2xindex>} : () -> !tosa.shape<2>
  %k = tosa.reshape %best, %s11 : (tensor<1xi32>, !tosa.shape<2>) -> tensor<1x1xi32>
  return %y, %k : tensor<1x10xf32>, tensor<1x1xi32>
}";

#[test]
fn a_classifier_has_the_values_of_its_layers() {
    let (image, inner) = (Image { height: 8, width: 8, channels: 3 }, Image { height: 4, width: 4, channels: 8 });
    let (x, w, d, b, m) = (ramp(image.len()), ramp(216), ramp(72), ramp(8), ramp(80));
    let mut first = vec![0.0f64; inner.len()];
    for (at, out) in first.iter_mut().enumerate() {
        let (y, column, f) = (at / 8 / 4, at / 8 % 4, at % 8);
        let mut sum = f64::from(b[f]);
        for (i, j, place) in image.window(y, column, 2) {
            for c in 0..3 {
                sum += image.at(i, j, c).map_or(0.0, |at| f64::from(x[at]) * f64::from(w[(f * 9 + place) * 3 + c]));
            }
        }
        *out = sum.clamp(0.0, 6.0);
    }
    let mut means = [0.0; 8];
    for at in 0..inner.len() {
        let (y, column, c) = (at / 8 / 4, at / 8 % 4, at % 8);
        let mut sum = f64::from(b[c]) + first[at];
        for (i, j, place) in inner.window(y, column, 1) {
            sum += inner.at(i, j, c).map_or(0.0, |at| first[at] * f64::from(d[place * 8 + c]));
        }
        means[c] += sum / 16.0;
    }
    let scores: Vec<f64> = (0..10).map(|n| (0..8).map(|c| means[c] * f64::from(m[c * 10 + n])).sum()).collect();
    let total: f64 = scores.iter().map(|s| s.exp()).sum();
    let shares: Vec<f32> = scores.iter().map(|s| (s.exp() / total) as f32).collect();
    let best = (0..10).max_by(|a, b| scores[*a].total_cmp(&scores[*b])).expect("ten classes") as i32;
    let inputs = [
        f32s(&[1, 8, 8, 3], &x),
        f32s(&[8, 3, 3, 3], &w),
        f32s(&[3, 3, 8, 1], &d),
        f32s(&[8], &b),
        f32s(&[1, 8, 10], &m),
    ];
    check("a classifier", CLASSIFIER, &inputs, &[f32s(&[1, 10], &shares), i32s(&[1, 1], &[best])]);
}

const MOVED: &str = "
func.func @main(%x: tensor<2x5x3xf32>, %at: tensor<2x4xi32>, %v: tensor<2x4x3xf32>) -> (tensor<2x4x3xf32>, tensor<2x5x3xf32>) {
  %g = tosa.gather %x, %at : (tensor<2x5x3xf32>, tensor<2x4xi32>) -> tensor<2x4x3xf32>
  %s = tosa.scatter %x, %at, %v : (tensor<2x5x3xf32>, tensor<2x4xi32>, tensor<2x4x3xf32>) -> tensor<2x5x3xf32>
  return %g, %s : tensor<2x4x3xf32>, tensor<2x5x3xf32>
}";

/// As torch-mlir writes a linear layer and a softmax: dimensions of one element in between.
const HEAD: &str = "
func.func @main(%x: tensor<1x30x20xf32>, %w: tensor<1x20x24xf32>, %b: tensor<1x24xf32>) -> tensor<1x30x24xf32> {
  %z = \"tosa.const\"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %p = tosa.matmul %x, %w, %z, %z : (tensor<1x30x20xf32>, tensor<1x20x24xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x30x24xf32>
  %s2 = tosa.const_shape {values = dense<[30, 24]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %q = tosa.reshape %p, %s2 : (tensor<1x30x24xf32>, !tosa.shape<2>) -> tensor<30x24xf32>
  %a = tosa.add %q, %b : (tensor<30x24xf32>, tensor<1x24xf32>) -> tensor<30x24xf32>
  %s3 = tosa.const_shape {values = dense<[1, 30, 24]> : tensor<3xindex>} : () -> !tosa.shape<3>
  %o = tosa.reshape %a, %s3 : (tensor<30x24xf32>, !tosa.shape<3>) -> tensor<1x30x24xf32>
  %most = tosa.reduce_max %o {axis = 2 : i32} : (tensor<1x30x24xf32>) -> tensor<1x30x1xf32>
  %less = tosa.sub %o, %most : (tensor<1x30x24xf32>, tensor<1x30x1xf32>) -> tensor<1x30x24xf32>
  %power = tosa.exp %less : (tensor<1x30x24xf32>) -> tensor<1x30x24xf32>
  %total = tosa.reduce_sum %power {axis = 2 : i32} : (tensor<1x30x24xf32>) -> tensor<1x30x1xf32>
  %inverse = tosa.reciprocal %total : (tensor<1x30x1xf32>) -> tensor<1x30x1xf32>
  %shift = \"tosa.const\"() {values = dense<0> : tensor<1xi8>} : () -> tensor<1xi8>
  %y = tosa.mul %power, %inverse, %shift : (tensor<1x30x24xf32>, tensor<1x30x1xf32>, tensor<1xi8>) -> tensor<1x30x24xf32>
  return %y : tensor<1x30x24xf32>
}";

/// The product with its bias, and the softmax.
#[test]
fn dimensions_of_one_element_part_no_ops() {
    let (x, w, b) = (ramp(600), ramp(480), ramp(24));
    let mut expected = vec![];
    for row in x.chunks(20) {
        let score =
            |n: usize| f64::from(b[n]) + (0..20).map(|k| f64::from(row[k]) * f64::from(w[k * 24 + n])).sum::<f64>();
        let total: f64 = (0..24).map(|n| score(n).exp()).sum();
        expected.extend((0..24).map(|n| (score(n).exp() / total) as f32));
    }
    let inputs = [f32s(&[1, 30, 20], &x), f32s(&[1, 20, 24], &w), f32s(&[1, 24], &b)];
    let dispatches = check("a head", HEAD, &inputs, &[f32s(&[1, 30, 24], &expected)]);
    assert!(dispatches.iter().all(|n| *n == 2), "{dispatches:?}");
}

/// One dispatch each, also of the scatter.
#[test]
fn gathers_and_scatters_are_kernels() {
    let (x, v, at) = (ramp(30), ramp(54)[30..].to_vec(), [4, 0, 2, 1, 3, 1, 0, 4]);
    let (mut gathered, mut scattered) = (vec![], x.clone());
    for (i, row) in at.iter().enumerate() {
        let from = (i / 4 * 5 + *row as usize) * 3;
        gathered.extend_from_slice(&x[from..from + 3]);
        scattered[from..from + 3].copy_from_slice(&v[i * 3..i * 3 + 3]);
    }
    let inputs = [f32s(&[2, 5, 3], &x), i32s(&[2, 4], &at), f32s(&[2, 4, 3], &v)];
    let dispatches = check("moves", MOVED, &inputs, &[f32s(&[2, 4, 3], &gathered), f32s(&[2, 5, 3], &scattered)]);
    assert!(dispatches.iter().all(|n| *n == 2), "{dispatches:?}");
}

/// Weights of 4 bits, and sums of 48.
const WIDTHS: &str = "
func.func @main(%x: tensor<1x3x3x2xi8>, %h: tensor<1x2x3xi16>, %k: tensor<1x3x2xi16>) -> (tensor<1x3x3x2xi32>, tensor<1x2x2xi48>) {
  %w = \"tosa.const\"() {values = dense<[[[[7, -8]]], [[[-1, 3]]]]> : tensor<2x1x1x2xi4>} : () -> tensor<2x1x1x2xi4>
  %b = \"tosa.const\"() {values = dense<[10, -20]> : tensor<2xi32>} : () -> tensor<2xi32>
  %xz = \"tosa.const\"() {values = dense<1> : tensor<1xi8>} : () -> tensor<1xi8>
  %wz = \"tosa.const\"() {values = dense<0> : tensor<1xi4>} : () -> tensor<1xi4>
  %c = tosa.conv2d %x, %w, %b, %xz, %wz {acc_type = i32, dilation = array<i64: 1, 1>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>}
    : (tensor<1x3x3x2xi8>, tensor<2x1x1x2xi4>, tensor<2xi32>, tensor<1xi8>, tensor<1xi4>) -> tensor<1x3x3x2xi32>
  %hz = \"tosa.const\"() {values = dense<0> : tensor<1xi16>} : () -> tensor<1xi16>
  %m = tosa.matmul %h, %k, %hz, %hz : (tensor<1x2x3xi16>, tensor<1x3x2xi16>, tensor<1xi16>, tensor<1xi16>) -> tensor<1x2x2xi48>
  return %c, %m : tensor<1x3x3x2xi32>, tensor<1x2x2xi48>
}";

#[test]
fn integers_of_4_and_48_bits_are_stored_wider() {
    let x = numbers(18, -128, 128);
    let sums = (0..18).map(|at| {
        let (a, b) = (x[at / 2 * 2] - 1, x[at / 2 * 2 + 1] - 1);
        if at % 2 == 0 { 10 + 7 * a - 8 * b } else { 3 * b - a - 20 }
    });
    let i16s = |shape: &[u64], values: &[i16]| {
        raw(DType::I16, shape, &values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>())
    };
    let (h, k) = ([i16::MAX, i16::MAX, i16::MAX, -7, 8, 9], [i16::MIN, 1, i16::MIN, 2, i16::MIN, 3]);
    let products = (0..4).map(|at| {
        let (i, j) = (at / 2, at % 2);
        (0..3).map(|t| i64::from(h[i * 3 + t]) * i64::from(k[t * 2 + j])).sum::<i64>()
    });
    let products: Vec<u8> = products.flat_map(i64::to_le_bytes).collect();
    let inputs = [i8s(&[1, 3, 3, 2], &x), i16s(&[1, 2, 3], &h), i16s(&[1, 3, 2], &k)];
    let expected = [i32s(&[1, 3, 3, 2], &sums.collect::<Vec<_>>()), raw(DType::I64, &[1, 2, 2], &products)];
    check("widths", WIDTHS, &inputs, &expected);
}

/// Conditions of one dimension, which upstream's passes do not take; a batch of unknown size.
const FLOW: &str = "
func.func @main(%x: tensor<?x4xf32>, %n: tensor<1xi32>) -> (tensor<?x4xf32>, tensor<1xi32>) {
  %one = \"tosa.const\"() {values = dense<1> : tensor<1xi32>} : () -> tensor<1xi32>
  %ten = \"tosa.const\"() {values = dense<10> : tensor<1xi32>} : () -> tensor<1xi32>
  %y, %k = tosa.while_loop (%a = %x, %i = %n) : (tensor<?x4xf32>, tensor<1xi32>) -> (tensor<?x4xf32>, tensor<1xi32>) {
    %more = tosa.greater %ten, %i : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
    tosa.yield %more : tensor<1xi1>
  } do {
  ^bb0(%a: tensor<?x4xf32>, %i: tensor<1xi32>):
    %b = tosa.add %a, %a : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
    %j = tosa.add %i, %one : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32>
    tosa.yield %b, %j : tensor<?x4xf32>, tensor<1xi32>
  }
  %is_small = tosa.greater %ten, %n : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
  %r = tosa.cond_if %is_small (%c = %y) : tensor<1xi1> (tensor<?x4xf32>) -> tensor<?x4xf32> {
  ^bb0(%c: tensor<?x4xf32>):
    %d = tosa.abs %c : (tensor<?x4xf32>) -> tensor<?x4xf32>
    tosa.yield %d : tensor<?x4xf32>
  } else {
  ^bb0(%c: tensor<?x4xf32>):
    tosa.yield %c : tensor<?x4xf32>
  }
  return %r, %k : tensor<?x4xf32>, tensor<1xi32>
}";

#[test]
fn loops_and_branches_take_conditions_of_any_rank() {
    let x = ramp(12);
    for (start, times) in [(7, 3), (10, 0), (12, 0)] {
        let doubled = x.iter().map(|v| v * 2f32.powi(times));
        let expected: Vec<f32> = if start < 10 { doubled.map(f32::abs).collect() } else { doubled.collect() };
        let inputs = [f32s(&[3, 4], &x), i32s(&[1], &[start])];
        check("flow", FLOW, &inputs, &[f32s(&[3, 4], &expected), i32s(&[1], &[start.max(10)])]);
    }
}

/// Names of the flatbuffer that a model came from.
#[test]
fn tensors_have_their_names() {
    let text = "func.func @main(%a: tensor<4xf32> {tosa.tensor_name = \"image\"}, %b: tensor<4xf32>)
      -> (tensor<4xf32> {tosa.tensor_name = \"scores\"}) {
      %r = tosa.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      return %r : tensor<4xf32>
    }";
    let compiled = compile(text.as_bytes(), "test.mlir", &for_cpu()).unwrap_or_else(|e| panic!("{e}"));
    let names = |of: &[TensorDesc]| of.iter().map(|t| t.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&compiled.program.signature.inputs), ["image", "arg1"]);
    assert_eq!(names(&compiled.program.signature.results), ["scores"]);
}

#[test]
fn ops_without_a_lowering_are_named() {
    let refused = |text: &str, words: &str| {
        let error = compile(text.as_bytes(), "test.mlir", &for_cpu()).err().expect("is refused").to_string();
        assert!(
            error.starts_with("error[F0002]") && error.contains(words) && error.contains("docs/tosa.md"),
            "{error}"
        );
    };
    refused(
        "func.func @main(%a: tensor<1x4x4xf32>) -> (tensor<1x4x4xf32>, tensor<1x4x4xf32>) {
  %r, %i = tosa.fft2d %a, %a {inverse = false} : (tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> (tensor<1x4x4xf32>, tensor<1x4x4xf32>)
  return %r, %i : tensor<1x4x4xf32>, tensor<1x4x4xf32>
}",
        "op 'tosa.fft2d' is not supported\n  --> test.mlir:2:",
    );
    refused(
        "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %r = tosa.custom %a {operator_name = \"mine\", domain_name = \"d\", implementation_attrs = \"\"} : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}",
        "op 'tosa.custom' is not supported\n  --> test.mlir:2:",
    );
}

#[test]
fn unsigned_integers_are_cast_and_moved() {
    let text = "
func.func @main(%x: tensor<4xui8>) -> (tensor<8xui8>, tensor<4xf32>, tensor<4xi32>, tensor<4xi8>) {
  %c = \"tosa.const\"() {values = dense<[1, 200, 255, 3]> : tensor<4xui8>} : () -> tensor<4xui8>
  %0 = tosa.concat %x, %c {axis = 0 : i32} : (tensor<4xui8>, tensor<4xui8>) -> tensor<8xui8>
  %1 = tosa.cast %x : (tensor<4xui8>) -> tensor<4xf32>
  %2 = tosa.cast %x : (tensor<4xui8>) -> tensor<4xi32>
  %m = \"tosa.const\"() {values = dense<1073741824> : tensor<1xi32>} : () -> tensor<1xi32>
  %s = \"tosa.const\"() {values = dense<30> : tensor<1xi8>} : () -> tensor<1xi8>
  %iz = \"tosa.const\"() {values = dense<128> : tensor<1xui8>} : () -> tensor<1xui8>
  %oz = \"tosa.const\"() {values = dense<0> : tensor<1xi8>} : () -> tensor<1xi8>
  %3 = tosa.rescale %x, %m, %s, %iz, %oz {scale32 = true, rounding_mode = SINGLE_ROUND, per_channel = false, input_unsigned = true,
    output_unsigned = false} : (tensor<4xui8>, tensor<1xi32>, tensor<1xi8>, tensor<1xui8>, tensor<1xi8>) -> tensor<4xi8>
  return %0, %1, %2, %3 : tensor<8xui8>, tensor<4xf32>, tensor<4xi32>, tensor<4xi8>
}";
    let expected = [
        raw(DType::U8, &[8], &[0, 127, 128, 255, 1, 200, 255, 3]),
        f32s(&[4], &[0.0, 127.0, 128.0, 255.0]),
        i32s(&[4], &[0, 127, 128, 255]),
        i8s(&[4], &[-128, -1, 0, 127]),
    ];
    check("unsigned integers", text, &[raw(DType::U8, &[4], &[0, 127, 128, 255])], &expected);
}

#[test]
fn unsigned_integers_are_never_read_as_signed_ones() {
    for (op, ty) in [("maximum %x, %x", "(tensor<4xui8>, tensor<4xui8>)"), ("abs %x", "(tensor<4xui8>)")] {
        let text = format!(
            "func.func @main(%x: tensor<4xui8>) -> tensor<4xui8> {{\n  %0 = tosa.{op} : {ty} -> tensor<4xui8>\n  return %0 : tensor<4xui8>\n}}"
        );
        let error = compile(text.as_bytes(), "unsigned.mlir", &for_cpu()).err().expect("it is refused").to_string();
        assert!(error.contains("error[F0002]") && error.contains("unsigned integers"), "{error}");
        assert!(error.contains("unsigned.mlir:2:"), "{error}");
    }
}
