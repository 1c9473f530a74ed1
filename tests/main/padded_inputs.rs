//! Convolutions of padded inputs: each tile pads its part, and nothing is copied before it.

use crate::backend::from_runtime;
use crate::host::{devices, evaluated, f32s, ramp, run};
use monopour::TargetDescription;
use monopour::program::GpuDescription;
use monopour::runtime::{Device, HostTensor};
use monopour_testkit::approx::{self, Tolerance};

/// A convolution of images of `[channels, height, width]`.
struct Convolution {
    channels: i64,
    image: [i64; 2],
    /// Pads in front and behind, of the height and of the width.
    pads: [[i64; 2]; 2],
    filters: i64,
    window: [i64; 2],
    stride: i64,
    dilation: i64,
}

impl Convolution {
    fn result(&self) -> [i64; 2] {
        [0, 1].map(|d| {
            let padded = self.image[d] + self.pads[d][0] + self.pads[d][1];
            (padded - (self.window[d] - 1) * self.dilation - 1) / self.stride + 1
        })
    }

    /// Batches of two, or of any size, padded with 0.5, with a maximum with zero behind it.
    fn text(&self, any: bool) -> String {
        let (n, size) = if any { ("?", "%size") } else { ("2", "") };
        let Self {
            channels: c, image: [h, w], pads: [[top, bottom], [left, right]], filters: f, window: [i, j], ..
        } = self;
        let [y, x] = self.result();
        let padded = format!("tensor<{n}x{c}x{}x{}xf32>", h + top + bottom, w + left + right);
        let out = format!("tensor<{n}x{f}x{y}x{x}xf32>");
        let Self { stride, dilation, .. } = self;
        format!(
            "#id = affine_map<(n, f, y, x) -> (n, f, y, x)>
func.func @main(%x: tensor<{n}x{c}x{h}x{w}xf32>, %w: tensor<{f}x{c}x{i}x{j}xf32>) -> {out} {{
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %size = tensor.dim %x, %c0 : tensor<{n}x{c}x{h}x{w}xf32>
  %half = arith.constant 0.5 : f32
  %p = tensor.pad %x low[0, 0, {top}, {left}] high[0, 0, {bottom}, {right}] {{
  ^bb0(%n: index, %c: index, %y: index, %z: index):
    tensor.yield %half : f32
  }} : tensor<{n}x{c}x{h}x{w}xf32> to {padded}
  %e = tensor.empty({size}) : {out}
  %f = linalg.fill ins(%zero : f32) outs(%e : {out}) -> {out}
  %r = linalg.conv_2d_nchw_fchw {{strides = dense<{stride}> : vector<2xi64>, dilations = dense<{dilation}> : vector<2xi64>}}
    ins(%p, %w : {padded}, tensor<{f}x{c}x{i}x{j}xf32>) outs(%f : {out}) -> {out}
  %m = linalg.generic {{indexing_maps = [#id, #id], iterator_types = [\"parallel\", \"parallel\", \"parallel\", \"parallel\"]}}
    ins(%r : {out}) outs(%e : {out}) {{
  ^bb0(%a: f32, %o: f32):
    %s = arith.maximumf %a, %zero : f32
    linalg.yield %s : f32
  }} -> {out}
  return %m : {out}
}}"
        )
    }
}

/// The GPU by its own description, and by that of every WebGPU device.
fn gpus() -> Vec<(Device, TargetDescription)> {
    let gpus = || devices().into_iter().filter(|(_, target)| matches!(target, TargetDescription::Gpu(_)));
    let portable = gpus().map(|(device, _)| (device, TargetDescription::Gpu(GpuDescription::portable())));
    gpus().chain(portable).collect()
}

/// The CPU.
fn cpus() -> Vec<(Device, TargetDescription)> {
    devices().into_iter().filter(|(_, target)| matches!(target, TargetDescription::Cpu(_))).collect()
}

/// Values on every device of a list, with batches of two and of any size; the dispatches and copies of a run on each.
fn check(convolution: &Convolution, devices: fn() -> Vec<(Device, TargetDescription)>) -> Vec<(u64, u64)> {
    let Convolution { channels, image: [h, w], filters, window: [i, j], .. } = convolution;
    let tensor = |shape: [i64; 4]| {
        let shape = shape.map(|extent| extent as u64);
        f32s(&shape, &ramp(shape.iter().product::<u64>() as usize))
    };
    let inputs = [tensor([2, *channels, *h, *w]), tensor([*filters, *channels, *i, *j])];
    let compare = |any: bool| compare(&convolution.text(any), &inputs, devices());
    compare(false).into_iter().chain(compare(true)).collect()
}

/// Compares with the evaluator; the dispatches and copies of a run on each device.
fn compare(text: &str, inputs: &[HostTensor], devices: Vec<(Device, TargetDescription)>) -> Vec<(u64, u64)> {
    let expected = evaluated(text, inputs);
    let mut counts = vec![];
    for device in devices {
        let (results, stats, leaks) = run(text, &[], &device, inputs);
        let tolerance = Tolerance { absolute: 1e-3, relative: 1e-4 };
        approx::compare(&from_runtime(&results[0]), &expected[0], tolerance)
            .unwrap_or_else(|e| panic!("{}: {e}\n{text}", stats.device));
        assert!(leaks.is_clean(), "{}: {leaks:?}", stats.device);
        counts.push((stats.counts.dispatches, stats.counts.copies));
    }
    counts
}

const STEM: Convolution = Convolution {
    channels: 3,
    image: [30, 29],
    pads: [[3, 3], [3, 3]],
    filters: 20,
    window: [7, 7],
    stride: 2,
    dilation: 1,
};

#[test]
fn tiles_pad_what_they_read_of_an_input() {
    let cases = [
        STEM,
        Convolution { pads: [[0, 1], [0, 1]], window: [3, 3], ..STEM },
        Convolution { pads: [[2, 0], [0, 3]], window: [3, 5], stride: 1, ..STEM },
        Convolution { pads: [[2, 2], [4, 4]], window: [3, 5], stride: 1, dilation: 2, ..STEM },
        Convolution {
            channels: 1,
            image: [5, 4],
            pads: [[1, 1], [1, 1]],
            filters: 1,
            window: [3, 3],
            stride: 1,
            ..STEM
        },
    ];
    for case in &cases {
        // More filters of strided lines are unfolded on a CPU.
        let few = Convolution { filters: case.filters.min(8), ..*case };
        for counts in check(case, gpus).into_iter().chain(check(&few, cpus)) {
            assert_eq!(counts, (1, 0), "{}", case.text(false));
        }
    }
}

/// The pads of whole tiles, which have several lines on hardware where the batch is not known, and images of which a tile reads
/// more than it may hold.
#[test]
fn other_padded_inputs_are_copied_once() {
    let wide = Convolution { pads: [[5, 5], [0, 0]], window: [3, 3], stride: 1, ..STEM };
    let deep = Convolution { channels: 300, image: [6, 6], pads: [[1, 1], [1, 1]], window: [3, 3], stride: 1, ..STEM };
    for (case, on_hardware) in [(&wide, 0), (&deep, 1)] {
        let devices = gpus();
        for (i, (_, copies)) in check(case, gpus).into_iter().enumerate() {
            let TargetDescription::Gpu(gpu) = &devices[i % devices.len()].1 else { continue };
            let is_known = i < devices.len();
            let expected = if is_known || gpu.is_cpu_adapter() { 1 } else { on_hardware };
            assert_eq!(copies, expected, "{}: {}", gpu.name, case.text(false));
        }
    }
}

/// Windows of volumes that do not overlap: two elements of a padded tile could be one access, but it is written one by one.
const VOLUME: &str = "
func.func @main(%x: tensor<2x3x5x5x5xf32>, %w: tensor<4x3x2x2x2xf32>) -> tensor<2x4x3x3x3xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0, 1, 1, 1] high[0, 0, 1, 1, 1] {
  ^bb0(%n: index, %c: index, %z: index, %y: index, %i: index):
    tensor.yield %zero : f32
  } : tensor<2x3x5x5x5xf32> to tensor<2x3x7x7x7xf32>
  %e = tensor.empty() : tensor<2x4x3x3x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x3x3x3xf32>) -> tensor<2x4x3x3x3xf32>
  %r = linalg.conv_3d_ncdhw_fcdhw {strides = dense<2> : vector<3xi64>, dilations = dense<1> : vector<3xi64>}
    ins(%p, %w : tensor<2x3x7x7x7xf32>, tensor<4x3x2x2x2xf32>) outs(%f : tensor<2x4x3x3x3xf32>) -> tensor<2x4x3x3x3xf32>
  return %r : tensor<2x4x3x3x3xf32>
}";

#[test]
fn volumes_are_padded_by_tiles() {
    let inputs = [[2, 3, 5, 5, 5], [4, 3, 2, 2, 2]]
        .map(|shape: [u64; 5]| f32s(&shape, &ramp(shape.iter().product::<u64>() as usize)));
    for counts in compare(VOLUME, &inputs, gpus()) {
        assert_eq!(counts, (1, 0));
    }
}

/// A product by groups, whose channels are shuffled and padded for windows of each channel.
const SHUFFLED: &str = "
#product = affine_map<(g, o, p, k) -> (g, k, p)>
#filter = affine_map<(g, o, p, k) -> (g, o, k)>
#out = affine_map<(g, o, p, k) -> (g, o, p)>
#all = affine_map<(g, o, p) -> (g, o, p)>
#turned = affine_map<(g, o, p) -> (o, g, p)>
func.func @main(%x: tensor<4x16x784xf32>, %w: tensor<4x16x16xf32>, %v: tensor<64x3x3xf32>) -> tensor<64x28x28xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x16x784xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x16x784xf32>) -> tensor<4x16x784xf32>
  %y = linalg.generic {indexing_maps = [#product, #filter, #out],
      iterator_types = [\"parallel\", \"parallel\", \"parallel\", \"reduction\"]}
    ins(%x, %w : tensor<4x16x784xf32>, tensor<4x16x16xf32>) outs(%f : tensor<4x16x784xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x16x784xf32>
  %te = tensor.empty() : tensor<16x4x784xf32>
  %t = linalg.generic {indexing_maps = [#all, #turned], iterator_types = [\"parallel\", \"parallel\", \"parallel\"]}
    ins(%y : tensor<4x16x784xf32>) outs(%te : tensor<16x4x784xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.maximumf %a, %zero : f32
    linalg.yield %s : f32
  } -> tensor<16x4x784xf32>
  %whole = tensor.expand_shape %t [[0], [1], [2, 3]] output_shape [16, 4, 28, 28]
    : tensor<16x4x784xf32> into tensor<16x4x28x28xf32>
  %image = tensor.collapse_shape %whole [[0, 1], [2], [3]] : tensor<16x4x28x28xf32> into tensor<64x28x28xf32>
  %p = tensor.pad %image low[0, 1, 1] high[0, 1, 1] {
  ^bb0(%c: index, %i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<64x28x28xf32> to tensor<64x30x30xf32>
  %de = tensor.empty() : tensor<64x28x28xf32>
  %df = linalg.fill ins(%zero : f32) outs(%de : tensor<64x28x28xf32>) -> tensor<64x28x28xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(c, y, x, i, j) -> (c, y + i, x + j)>,
      affine_map<(c, y, x, i, j) -> (c, i, j)>, affine_map<(c, y, x, i, j) -> (c, y, x)>],
      iterator_types = [\"parallel\", \"parallel\", \"parallel\", \"reduction\", \"reduction\"]}
    ins(%p, %v : tensor<64x30x30xf32>, tensor<64x3x3xf32>) outs(%df : tensor<64x28x28xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<64x28x28xf32>
  return %d : tensor<64x28x28xf32>
}";

#[test]
fn groups_of_channels_are_padded_by_tiles_on_cpus() {
    let shapes: [&[u64]; 3] = [&[4, 16, 784], &[4, 16, 16], &[64, 3, 3]];
    let inputs = shapes.map(|shape| f32s(shape, &ramp(shape.iter().product::<u64>() as usize)));
    assert_eq!(compare(SHUFFLED, &inputs, cpus()), [(2, 0)]);
}
