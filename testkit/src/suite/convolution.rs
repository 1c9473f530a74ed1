//! Convolutions and pooling: layouts, strides, dilations, unit channels, epilogues.

use super::case::{Case, LaidOut, by};
use crate::host_tensor::Dtype;
use crate::text::{Input, Program, Value};
use monopour_ir::ops;

/// A window over one dimension, with the input's extent for an output of `out`.
#[derive(Clone, Copy)]
struct Window {
    size: usize,
    stride: usize,
    dilation: usize,
}

impl Window {
    fn input(self, out: usize) -> usize {
        (out - 1) * self.stride + (self.size - 1) * self.dilation + 1
    }
}

const fn window(size: usize, stride: usize, dilation: usize) -> Window {
    Window { size, stride, dilation }
}

pub(super) fn cases() -> Vec<Case> {
    let mut out = vec![];
    for (batch, [h, w], [c, f], win) in [
        (1, [8, 8], [16, 32], window(3, 1, 1)),
        (2, [7, 5], [3, 8], window(3, 1, 1)),
        (1, [6, 9], [4, 7], window(3, 2, 1)),
        (1, [6, 6], [5, 16], window(3, 1, 2)),
        (1, [5, 5], [1, 1], window(5, 1, 1)),
        (3, [4, 4], [8, 8], window(1, 1, 1)),
        (1, [14, 14], [32, 64], window(3, 1, 1)),
        (1, [1, 1], [10, 10], window(3, 1, 1)),
        (1, [7, 7], [3, 10], window(2, 3, 1)),
        (2, [5, 3], [4, 6], window(3, 2, 2)),
        // Tiles of several lines and images, whole and cut.
        (5, [7, 7], [16, 32], window(3, 1, 1)),
        (3, [14, 14], [8, 40], window(3, 1, 1)),
        (2, [28, 28], [4, 20], window(3, 1, 1)),
        (3, [13, 11], [6, 17], window(3, 2, 1)),
        (2, [9, 20], [3, 64], window(7, 2, 1)),
        (4, [6, 10], [16, 18], window(3, 1, 2)),
        (2, [19, 5], [20, 130], window(1, 1, 1)),
    ] {
        out.push(conv("conv_2d_nhwc_hwcf", batch, [h, w], [c, f], win));
        out.push(conv("conv_2d_nchw_fchw", batch, [h, w], [c, f], win));
    }
    for win in [window(3, 1, 1), window(3, 2, 1), window(2, 1, 2)] {
        out.push(conv("conv_2d_nhwc_fhwc", 1, [6, 7], [5, 9], win));
        out.push(conv("conv_2d_ngchw_fgchw", 1, [6, 7], [5, 9], win));
        out.push(depthwise("depthwise_conv_2d_nhwc_hwc", 1, [6, 7], 10, win));
        out.push(depthwise("depthwise_conv_2d_nchw_chw", 2, [6, 7], 3, win));
        out.push(conv_1d("conv_1d_nwc_wcf", 17, win));
        out.push(conv_1d("conv_1d_ncw_fcw", 17, win));
        for name in ["pooling_nhwc_sum", "pooling_nhwc_max", "pooling_nhwc_min", "pooling_nchw_sum", "pooling_nchw_max"]
        {
            out.push(pooling(name, 2, [5, 6], 7, win));
        }
    }
    out.push(pooling("pooling_nhwc_max", 1, [14, 14], 32, window(2, 2, 1)));
    out.push(plain_1d());
    out.push(plain_2d());
    out.push(conv_3d());
    out.push(with_bias_relu([8, 8], [16, 32]));
    out.push(with_bias_relu([5, 7], [3, 9]));
    out.extend([(3, [7, 7], [8, 24]), (2, [15, 14], [4, 16])].map(|(n, size, channels)| residual(n, size, channels)));
    out.extend(["conv_2d_nhwc_hwcf", "conv_2d_nchw_fchw"].map(of_any_batch));
    out.push(padded());
    out.push(two_layers());
    out.push(global_average());
    out.push(integer());
    out
}

fn attributes(op: &str, win: Window, dims: usize) -> String {
    let (s, d) = (win.stride, win.dilation);
    format!("linalg.{op} {{dilations = dense<{d}> : tensor<{dims}xi64>, strides = dense<{s}> : tensor<{dims}xi64>}}")
}

fn conv(op: &str, n: usize, [h, w]: [usize; 2], [c, f]: [usize; 2], win: Window) -> Case {
    let (ih, iw, k) = (win.input(h), win.input(w), win.size);
    let (x, filter, out) = match op {
        "conv_2d_nhwc_hwcf" => (vec![n, ih, iw, c], vec![k, k, c, f], vec![n, h, w, f]),
        "conv_2d_nhwc_fhwc" => (vec![n, ih, iw, c], vec![f, k, k, c], vec![n, h, w, f]),
        "conv_2d_nchw_fchw" => (vec![n, c, ih, iw], vec![f, c, k, k], vec![n, f, h, w]),
        _ => (vec![n, 2, c, ih, iw], vec![f, 2, c, k, k], vec![n, 2, f, h, w]),
    };
    let mut p = Program::new();
    let (x, filter) = (p.f32(&x), p.f32(&filter));
    let init = p.zeros(Dtype::F32, &out);
    p.add_work(init.len() * k * k * c);
    let r = p.named(&attributes(op, win, 2), &[&x, &filter], &init);
    let name = format!("convolution/{op}/{}_{}_s{}_d{}", by(x.shape()), by(filter.shape()), win.stride, win.dilation);
    let case = Case::new(name, p, &[&r]).dispatches(1).within(5e-5, 5e-5);
    // Windows of several elements that enough channels share, in lines shorter than half a register.
    let is_unfolded = op == "conv_2d_nchw_fchw" && k > 1 && win.stride == 1 && f >= 16;
    if is_unfolded && n * f * h * w * c * k * k >= 1 << 18 { case.laid_out(LaidOut::Lines(w)) } else { case }
}

fn depthwise(op: &str, n: usize, [h, w]: [usize; 2], c: usize, win: Window) -> Case {
    let (ih, iw, k) = (win.input(h), win.input(w), win.size);
    let (x, filter, out) = if op.ends_with("hwc") {
        ([n, ih, iw, c], [k, k, c], [n, h, w, c])
    } else {
        ([n, c, ih, iw], [c, k, k], [n, c, h, w])
    };
    let mut p = Program::new();
    let (x, filter) = (p.f32(&x), p.f32(&filter));
    let init = p.zeros(Dtype::F32, &out);
    p.add_work(init.len() * k * k);
    let r = p.named(&attributes(op, win, 2), &[&x, &filter], &init);
    Case::new(format!("convolution/{op}/{k}_s{}_d{}", win.stride, win.dilation), p, &[&r]).dispatches(1)
}

fn conv_1d(op: &str, w: usize, win: Window) -> Case {
    let (iw, k, n, c, f) = (win.input(w), win.size, 2, 5, 9);
    let (x, filter, out) =
        if op.ends_with("wcf") { ([n, iw, c], [k, c, f], [n, w, f]) } else { ([n, c, iw], [f, c, k], [n, f, w]) };
    let mut p = Program::new();
    let (x, filter) = (p.f32(&x), p.f32(&filter));
    let init = p.zeros(Dtype::F32, &out);
    p.add_work(init.len() * k * c);
    let r = p.named(&attributes(op, win, 1), &[&x, &filter], &init);
    Case::new(format!("convolution/{op}/{k}_s{}_d{}", win.stride, win.dilation), p, &[&r]).dispatches(1)
}

fn pooling(op: &str, n: usize, [h, w]: [usize; 2], c: usize, win: Window) -> Case {
    let (ih, iw, k) = (win.input(h), win.input(w), win.size);
    let nhwc = op.contains("nhwc");
    let (x, out) = if nhwc { ([n, ih, iw, c], [n, h, w, c]) } else { ([n, c, ih, iw], [n, c, h, w]) };
    let init = match op.rsplit('_').next() {
        Some("max") => "0xFF800000",
        Some("min") => "0x7F800000",
        _ => "0.0",
    };
    let mut p = Program::new();
    let x = p.f32(&x);
    let shape = p.empty(Dtype::F32, &[k, k]);
    let init = p.fill(Dtype::F32, &out, init);
    p.add_work(init.len() * k * k);
    let r = p.named(&attributes(op, win, 2), &[&x, &shape], &init);
    Case::new(format!("convolution/{op}/{}_{k}_s{}_d{}", by(x.shape()), win.stride, win.dilation), p, &[&r])
        .dispatches(1)
}

fn plain_1d() -> Case {
    let mut p = Program::new();
    let (x, f) = (p.f32(&[100]), p.f32(&[7]));
    let init = p.zeros(Dtype::F32, &[94]);
    let r = p.named(ops::linalg::CONV_1D, &[&x, &f], &init);
    Case::new("convolution/conv_1d", p, &[&r]).dispatches(1)
}

fn plain_2d() -> Case {
    let mut p = Program::new();
    let (x, f) = (p.f32(&[20, 33]), p.f32(&[3, 5]));
    let init = p.zeros(Dtype::F32, &[18, 29]);
    let r = p.named(ops::linalg::CONV_2D, &[&x, &f], &init);
    Case::new("convolution/conv_2d", p, &[&r]).dispatches(1)
}

fn conv_3d() -> Case {
    let mut p = Program::new();
    let (x, f) = (p.f32(&[1, 5, 6, 7, 3]), p.f32(&[2, 3, 2, 3, 4]));
    let init = p.zeros(Dtype::F32, &[1, 4, 4, 6, 4]);
    let r = p.named(&attributes("conv_3d_ndhwc_dhwcf", window(2, 1, 1), 3), &[&x, &f], &init);
    Case::new("convolution/conv_3d_ndhwc_dhwcf", p, &[&r]).dispatches(1)
}

fn layer(p: &mut Program, x: &Value, f: usize) -> Value {
    let (h, w, c) = (x.shape()[1] - 2, x.shape()[2] - 2, x.shape()[3]);
    let (filter, bias) = (p.f32(&[3, 3, c, f]), p.f32(&[f]));
    let init = p.zeros(Dtype::F32, &[1, h, w, f]);
    p.add_work(init.len() * 9 * c);
    let y = p.named(&attributes("conv_2d_nhwc_hwcf", window(3, 1, 1), 2), &[x, &filter], &init);
    let b = p.pointwise(Dtype::F32, &[&y, &bias], "%s = arith.addf %a, %b : f32");
    p.pointwise(Dtype::F32, &[&b], "%z = arith.constant 0.0 : f32; %s = arith.maximumf %a, %z : f32")
}

fn with_bias_relu([h, w]: [usize; 2], [c, f]: [usize; 2]) -> Case {
    let mut p = Program::new();
    let x = p.f32(&[1, h + 2, w + 2, c]);
    let r = layer(&mut p, &x, f);
    Case::new(format!("convolution/bias_relu/{h}x{w}x{c}x{f}"), p, &[&r]).dispatches(1).within(5e-5, 5e-5)
}

/// A bias, another image and an activation behind it.
fn residual(n: usize, [h, w]: [usize; 2], [c, f]: [usize; 2]) -> Case {
    let mut p = Program::new();
    let (x, filter) = (p.f32(&[n, h + 2, w + 2, c]), p.f32(&[3, 3, c, f]));
    let (bias, other) = (p.f32(&[f]), p.f32(&[n, h, w, f]));
    let init = p.zeros(Dtype::F32, &[n, h, w, f]);
    p.add_work(init.len() * 9 * c);
    let y = p.named(&attributes("conv_2d_nhwc_hwcf", window(3, 1, 1), 2), &[&x, &filter], &init);
    let b = p.pointwise(Dtype::F32, &[&y, &bias], "%s = arith.addf %a, %b : f32");
    let sum = p.pointwise(Dtype::F32, &[&b, &other], "%s = arith.addf %a, %b : f32");
    let r = p.pointwise(Dtype::F32, &[&sum], "%z = arith.constant 0.0 : f32; %s = arith.maximumf %a, %z : f32");
    Case::new(format!("convolution/residual/{n}x{h}x{w}x{c}x{f}"), p, &[&r]).dispatches(1).within(5e-5, 5e-5)
}

/// A batch of unknown size, of three images.
fn of_any_batch(op: &str) -> Case {
    let (x, filter, out, shapes) = match op {
        "conv_2d_nhwc_hwcf" => ("?x9x9x8", "3x3x8x24", "?x7x7x24", [vec![3, 9, 9, 8], vec![3, 3, 8, 24]]),
        _ => ("?x8x9x9", "24x8x3x3", "?x24x7x7", [vec![3, 8, 9, 9], vec![24, 8, 3, 3]]),
    };
    let conv = attributes(op, window(3, 1, 1), 2);
    let text = format!(
        "func.func @main(%x: tensor<{x}xf32>, %w: tensor<{filter}xf32>) -> tensor<{out}xf32> {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<{x}xf32>
  %z = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<{out}xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<{out}xf32>) -> tensor<{out}xf32>
  %r = {conv} ins(%x, %w : tensor<{x}xf32>, tensor<{filter}xf32>) outs(%f : tensor<{out}xf32>) -> tensor<{out}xf32>
  return %r : tensor<{out}xf32>
}}\n"
    );
    let inputs = shapes.iter().map(|shape| Input::new(Dtype::F32, shape)).collect();
    Case::of_text(&format!("convolution/any_batch/{op}"), &text, inputs).on_gpus(1).within(5e-5, 5e-5)
}

/// A border of zeros around the image first.
fn padded() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[1, 9, 9, 4]);
    let zero = p.constant(Dtype::F32, "0.0");
    let text = format!(
        "tensor.pad {} low[0, 1, 1, 0] high[0, 1, 1, 0] {{\n  ^bb0(%i: index, %j: index, %k: index, %l: index):\n    tensor.yield {} : f32\n  }} \
         : tensor<1x9x9x4xf32> to tensor<1x11x11x4xf32>",
        x.name, zero.name
    );
    let y = p.op(Dtype::F32, &[1, 11, 11, 4], &text);
    let r = layer(&mut p, &y, 8);
    Case::new("convolution/padded", p, &[&r]).may_copy().within(5e-5, 5e-5)
}

fn two_layers() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[1, 10, 11, 3]);
    let y = layer(&mut p, &x, 6);
    let r = layer(&mut p, &y, 5);
    Case::new("convolution/two_layers", p, &[&r]).dispatches(2).within(2e-4, 1e-4)
}

fn global_average() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[2, 7, 7, 20]);
    let init = p.zeros(Dtype::F32, &[2, 20]);
    let sum = p.generic("n h! w! c", &[(&x, "n, h, w, c")], (&init, "n, c"), "%s = arith.addf %o, %a : f32");
    let r = p.pointwise(Dtype::F32, &[&sum], "%k = arith.constant 49.0 : f32; %s = arith.divf %a, %k : f32");
    Case::new("convolution/global_average", p, &[&r]).dispatches(1)
}

fn integer() -> Case {
    let mut p = Program::new();
    let (x, f) = (p.input(Dtype::Int(32), &[1, 8, 8, 3]), p.input(Dtype::Int(32), &[3, 3, 3, 5]));
    let init = p.zeros(Dtype::Int(32), &[1, 6, 6, 5]);
    let r = p.named(&attributes("conv_2d_nhwc_hwcf", window(3, 1, 1), 2), &[&x, &f], &init);
    Case::new("convolution/i32", p, &[&r]).dispatches(1).within(0.0, 0.0)
}
