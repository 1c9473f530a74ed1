//! Convolutions of halves that are summed in f32, and small networks of images whose filters are constants: such images may get
//! another layout, and sums their parts side by side.

use super::case::{Case, by};
use crate::host_tensor::Dtype;
use crate::text::{Input, Program, Value, tensor};

pub(super) fn cases() -> Vec<Case> {
    let mut out = vec![];
    for (image, channels, window) in [
        ([2, 10, 10], [16, 64], [3, 1]),
        ([1, 14, 14], [32, 128], [3, 1]),
        ([3, 7, 7], [32, 64], [3, 2]),
        ([2, 8, 12], [64, 48], [1, 2]),
        ([4, 5, 3], [16, 100], [3, 1]),
        // Lines of a window that are no whole matrices.
        ([1, 9, 7], [20, 52], [3, 1]),
    ] {
        out.push(halves(image, channels, window, false));
        out.push(halves(image, channels, window, true));
    }
    for dtype in [Dtype::F32, Dtype::F16] {
        out.push(network(dtype, [1, 3, 12, 12], [16, 64]));
        out.push(network(dtype, [5, 3, 9, 14], [64, 48]));
    }
    out
}

/// A convolution, and behind it a bias, no less than zero, rounded.
fn halves([n, h, w]: [usize; 3], [c, f]: [usize; 2], [k, stride]: [usize; 2], is_finished: bool) -> Case {
    let mut p = Program::new();
    let input = |out: usize| (out - 1) * stride + k;
    let (x, filter) = (p.input(Dtype::F16, &[n, input(h), input(w), c]), p.input(Dtype::F16, &[k, k, c, f]));
    let zero = p.zeros(Dtype::F32, &[n, h, w, f]);
    p.add_work(n * h * w * f * k * k * c);
    let sums = p.named(&convolution("nhwc_hwcf", stride), &[&x, &filter], &zero);
    let (end, result) = if is_finished { ("finished", finished(&mut p, &sums)) } else { ("sums", sums) };
    let name = format!("images/{end}/{}_{}_s{stride}", by(x.shape()), by(filter.shape()));
    let case = Case::new(name, p, &[&result]);
    if is_finished { case } else { case.within(1e-4, 1e-4) }
}

fn convolution(layout: &str, stride: usize) -> String {
    format!(
        "linalg.conv_2d_{layout} {{dilations = dense<1> : tensor<2xi64>, strides = dense<{stride}> : tensor<2xi64>}}"
    )
}

/// Plus a bias, no less than zero, rounded to f16.
fn finished(p: &mut Program, sums: &Value) -> Value {
    let bias = p.f32(&sums.shape()[sums.shape().len() - 1..]);
    let text = "%t = arith.addf %a, %b : f32; %z = arith.constant 0.0 : f32; %m = arith.maximumf %t, %z : f32; \
        %s = arith.truncf %m : f32 to f16";
    p.pointwise(Dtype::F16, &[sums, &bias], text)
}

/// Channels first: a window of 3 x 3 within a border of zeros, one of a single element, one of 3 x 3 at every second position,
/// the means of the channels.
fn network(dtype: Dtype, [n, c, h, w]: [usize; 4], [inner, outer]: [usize; 2]) -> Case {
    let mut p = Program::new();
    let x = p.input(dtype, &[n, c, h, w]);
    let (short, wide) = (element(dtype), [n, inner, h, w]);
    let border = p.zeros(dtype, &[n, c, h + 2, w + 2]);
    let sizes = format!("[0, 0, 1, 1] [{n}, {c}, {h}, {w}] [1, 1, 1, 1]");
    let text = format!("tensor.insert_slice {} into {}{sizes} : {} into {}", x.name, border.name, x.ty(), border.ty());
    let x = p.op(dtype, border.shape(), &text);
    let x = layer(&mut p, (&x, 1), [inner, 3], wide);
    let x = layer(&mut p, (&x, 1), [outer, 1], [n, outer, h, w]);
    let half = |extent: usize| (extent - 3) / 2 + 1;
    let x = layer(&mut p, (&x, 2), [outer, 3], [n, outer, half(h), half(w)]);
    let zero = p.zeros(Dtype::F32, &[n, outer]);
    let body = match dtype {
        Dtype::F32 => "%s = arith.addf %a, %o : f32",
        _ => "%v = arith.extf %a : f16 to f32; %s = arith.addf %v, %o : f32",
    };
    let result = p.generic("b f y! x!", &[(&x, "b, f, y, x")], (&zero, "b, f"), body);
    let name = format!("images/network_{short}/{}_{inner}_{outer}", by(&[n, c, h, w]));
    Case::new(name, p, &[&result]).within(2e-2, 2e-2)
}

fn element(dtype: Dtype) -> &'static str {
    if dtype == Dtype::F32 { "f32" } else { "f16" }
}

/// A convolution with a constant filter, no less than zero, in the type of its image.
fn layer(p: &mut Program, (x, stride): (&Value, usize), [f, k]: [usize; 2], shape: [usize; 4]) -> Value {
    let c = x.shape()[1];
    let filter = Input::new(x.dtype, &[f, c, k, k]).within(-0.2, 0.2).values((f * c + k) as u64);
    let hex: String = filter.to_bytes().iter().map(|byte| format!("{byte:02X}")).collect();
    let text = format!("arith.constant dense<\"0x{hex}\"> : {}", tensor(x.dtype, &[f, c, k, k]));
    let filter = p.op(x.dtype, &[f, c, k, k], &text);
    let init = p.zeros(Dtype::F32, &shape);
    p.add_work(init.len() * c * k * k);
    let sums = p.named(&convolution("nchw_fchw", stride), &[x, &filter], &init);
    let zero = "%z = arith.constant 0.0 : f32";
    if x.dtype == Dtype::F32 {
        return p.pointwise(Dtype::F32, &[&sums], &format!("{zero}; %s = arith.maximumf %a, %z : f32"));
    }
    let text = format!("{zero}; %m = arith.maximumf %a, %z : f32; %s = arith.truncf %m : f32 to f16");
    p.pointwise(Dtype::F16, &[&sums], &text)
}
