//! Depthwise convolutions and pools on CPUs: tiles of whole lines with pads of their own, or whole images with their channels side by
//! side. Right values for each kind of line and each level of the CPU, and nothing copied.

use crate::backend::from_runtime;
use crate::host::{evaluated, f32s, ramp, run};
use monopour::TargetDescription;
use monopour::program::CpuTarget;
use monopour::runtime::{Device, DeviceChoice, HostTensor};
use monopour_testkit::approx::{self, Tolerance};

/// A window over images of `[2, channels, height, width]`.
struct Images {
    channels: usize,
    image: [usize; 2],
    /// Pads in front and behind, of the height and of the width.
    pads: [[usize; 2]; 2],
    window: usize,
    stride: usize,
}

impl Images {
    fn result(&self) -> [usize; 2] {
        [0, 1].map(|d| (self.image[d] + self.pads[d][0] + self.pads[d][1] - self.window) / self.stride + 1)
    }

    /// The padded image as `%p`, and the types of it and of the result.
    fn padded(&self, value: &str) -> [String; 4] {
        let Self { channels: c, image: [h, w], pads: [[top, bottom], [left, right]], .. } = self;
        let [y, x] = self.result();
        let given = format!("tensor<2x{c}x{h}x{w}xf32>");
        let padded = format!("tensor<2x{c}x{}x{}xf32>", h + top + bottom, w + left + right);
        let text = format!(
            "%value = arith.constant {value} : f32
%p = tensor.pad %x low[0, 0, {top}, {left}] high[0, 0, {bottom}, {right}] {{
^bb0(%i0: index, %i1: index, %i2: index, %i3: index):
  tensor.yield %value : f32
}} : {given} to {padded}"
        );
        [text, given, padded, format!("tensor<2x{c}x{y}x{x}xf32>")]
    }

    /// With a bias per channel and a maximum with zero behind it; the filter is a constant.
    fn depthwise(&self) -> String {
        let [pad, given, padded, out] = self.padded("0.0");
        let Self { channels: c, window: i, stride, .. } = self;
        let filter = format!("tensor<{c}x{i}x{i}xf32>");
        let elements: String =
            ramp(c * i * i).iter().flat_map(|v| v.to_le_bytes()).map(|b| format!("{b:02X}")).collect();
        format!(
            "#id = affine_map<(n, c, y, x) -> (n, c, y, x)>
func.func @main(%x: {given}, %b: tensor<{c}xf32>) -> {out} {{
{pad}
%w = arith.constant dense<\"0x{elements}\"> : {filter}
%zero = arith.constant 0.0 : f32
%e = tensor.empty() : {out}
%f = linalg.fill ins(%zero : f32) outs(%e : {out}) -> {out}
%q = linalg.depthwise_conv_2d_nchw_chw {{strides = dense<{stride}> : vector<2xi64>, dilations = dense<1> : vector<2xi64>}}
  ins(%p, %w : {padded}, {filter}) outs(%f : {out}) -> {out}
%r = linalg.generic {{indexing_maps = [#id, affine_map<(n, c, y, x) -> (c)>, #id], iterator_types = [\"parallel\", \"parallel\", \"parallel\", \"parallel\"]}}
  ins(%q, %b : {out}, tensor<{c}xf32>) outs(%e : {out}) {{
^bb0(%s: f32, %t: f32, %o: f32):
  %u = arith.addf %s, %t : f32
  %v = arith.maximumf %u, %zero : f32
  linalg.yield %v : f32
}} -> {out}
return %r : {out}
}}"
        )
    }

    fn pool(&self) -> String {
        let [pad, given, padded, out] = self.padded("0xFF800000");
        let Self { window: i, stride, .. } = self;
        format!(
            "func.func @main(%x: {given}) -> {out} {{
{pad}
%e = tensor.empty() : {out}
%k = tensor.empty() : tensor<{i}x{i}xf32>
%f = linalg.fill ins(%value : f32) outs(%e : {out}) -> {out}
%r = linalg.pooling_nchw_max {{strides = dense<{stride}> : vector<2xi64>, dilations = dense<1> : vector<2xi64>}}
  ins(%p, %k : {padded}, tensor<{i}x{i}xf32>) outs(%f : {out}) -> {out}
return %r : {out}
}}"
        )
    }

    fn image(&self) -> HostTensor {
        let shape = [2, self.channels, self.image[0], self.image[1]].map(|extent| extent as u64);
        f32s(&shape, &ramp(shape.iter().product::<u64>() as usize))
    }
}

fn check(text: &str, inputs: &[HostTensor]) {
    let expected = evaluated(text, inputs);
    for name in ["x86-64-v4", "x86-64-v3", "x86-64-v2", "aarch64"] {
        let Some(cpu) = CpuTarget::parse(name).filter(|cpu| cpu.missing().is_empty()) else { continue };
        let device = Device::open(&DeviceChoice::Cpu).expect("there is always a CPU");
        let (results, stats, leaks) = run(text, &[], &(device, TargetDescription::Cpu(cpu)), inputs);
        let tolerance = Tolerance { absolute: 1e-5, relative: 1e-5 };
        approx::compare(&from_runtime(&results[0]), &expected[0], tolerance)
            .unwrap_or_else(|e| panic!("{name}: {e}\n{text}"));
        assert!(leaks.is_clean(), "{name}: {leaks:?}");
        // Padded in the tiles: nothing but the op itself.
        assert_eq!((stats.counts.dispatches, stats.counts.copies), (1, 0), "{name}\n{text}");
    }
}

const SHORT: Images = Images { channels: 32, image: [7, 7], pads: [[1, 1], [1, 1]], window: 3, stride: 1 };
const LONG: Images = Images { channels: 5, image: [40, 56], ..SHORT };

#[test]
fn depthwise_convolutions_of_any_line() {
    let cases = [
        SHORT,
        Images { image: [14, 14], stride: 2, ..SHORT },
        Images { image: [9, 13], pads: [[0, 1], [2, 0]], stride: 2, ..SHORT },
        Images { image: [6, 5], window: 5, pads: [[2, 2], [2, 2]], ..SHORT },
        // No block of channels.
        Images { channels: 18, ..SHORT },
        LONG,
        Images { stride: 2, ..LONG },
        Images { image: [70, 113], pads: [[0, 1], [0, 1]], stride: 2, channels: 2, ..LONG },
        Images { image: [33, 28], window: 5, pads: [[2, 2], [2, 2]], ..LONG },
    ];
    for case in &cases {
        let bias = f32s(&[case.channels as u64], &ramp(case.channels));
        check(&case.depthwise(), &[case.image(), bias]);
    }
}

#[test]
fn pools_of_any_line() {
    let cases = [
        SHORT,
        LONG,
        Images { stride: 2, ..LONG },
        Images { image: [112, 112], channels: 3, stride: 2, ..LONG },
        Images { image: [30, 31], window: 2, stride: 2, pads: [[0, 0], [1, 0]], ..LONG },
    ];
    for case in &cases {
        check(&case.pool(), &[case.image()]);
    }
}
