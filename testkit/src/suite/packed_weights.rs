//! Products whose weights are stored in 8 bits, and dequantised where they are read: one dispatch on GPUs, no weights
//! of f32.

use super::case::Case;
use crate::host_tensor::Dtype;
use crate::text::Input;

/// How weights become floats.
#[derive(Clone, Copy)]
struct Form {
    name: &'static str,
    /// Conversion of an element.
    convert: &'static str,
    /// Dimensions of the scale, of `k` and `n`.
    scale: &'static str,
    /// A zero point that is taken off first.
    zero: bool,
    /// Whether the weights are `[n, k]`.
    transposed: bool,
    /// Whether a bias follows.
    bias: bool,
}

pub(super) fn cases() -> Vec<Case> {
    let plain = Form { name: "column", convert: "sitofp", scale: "n", zero: false, transposed: false, bias: false };
    let forms = [
        plain,
        Form { name: "unsigned", convert: "uitofp", zero: true, ..plain },
        Form { name: "transposed", transposed: true, ..plain },
        Form { name: "term", scale: "k", ..plain },
        Form { name: "single", scale: "", bias: true, ..plain },
        Form { name: "bias", transposed: true, zero: true, bias: true, ..plain },
    ];
    let sizes = [[1, 64, 64], [7, 24, 40], [64, 64, 64], [65, 63, 61], [33, 100, 12], [130, 72, 96]];
    forms.iter().flat_map(|form| sizes.iter().map(|sizes| case(*form, *sizes))).collect()
}

fn case(form: Form, [m, n, k]: [usize; 3]) -> Case {
    let (weights, order) = if form.transposed { (vec![n, k], "n, k") } else { (vec![k, n], "k, n") };
    let scale = match form.scale {
        "n" => vec![n],
        "k" => vec![k],
        _ => vec![],
    };
    let ty = |shape: &[usize], element: &str| {
        let sizes: String = shape.iter().map(|d| format!("{d}x")).collect();
        format!("tensor<{sizes}{element}>")
    };
    let (x, w, s, v, y) =
        (ty(&[m, k], "f32"), ty(&weights, "i8"), ty(&scale, "f32"), ty(&[n], "f32"), ty(&[m, n], "f32"));
    let floats = ty(&weights, "f32");
    let map = |dims: &str, results: &str| format!("affine_map<({dims}) -> ({results})>");
    let maps = [order, form.scale, order].map(|results| map(order, results)).join(", ");
    let (zero, value) = if form.zero { ("    %d = arith.subf %a, %zero : f32\n", "%d") } else { ("", "%a") };
    let products = [map("m, n, k", "m, k"), map("m, n, k", order), map("m, n, k", "m, n")].join(", ");
    let finish = if form.bias {
        let maps = [map("m, n", "m, n"), map("m, n", "n"), map("m, n", "m, n")].join(", ");
        format!(
            "  %q = linalg.generic {{indexing_maps = [{maps}], iterator_types = [\"parallel\", \"parallel\"]}} \
             ins(%r, %v : {y}, {v}) outs(%e : {y}) {{\n  ^bb0(%c: f32, %j: f32, %o: f32):\n    %t = arith.addf %c, %j : f32\n    \
             linalg.yield %t : f32\n  }} -> {y}\n  return %q : {y}\n}}\n"
        )
    } else {
        format!("  return %r : {y}\n}}\n")
    };
    let text = format!(
        "func.func @main(%x: {x}, %w: {w}, %s: {s}, %v: {v}) -> {y} {{\n  %z = arith.constant 0.0 : f32\n  \
         %zero = arith.constant 3.0 : f32\n  %we = tensor.empty() : {floats}\n  \
         %f = linalg.generic {{indexing_maps = [{maps}], iterator_types = [\"parallel\", \"parallel\"]}} \
         ins(%w, %s : {w}, {s}) outs(%we : {floats}) {{\n  ^bb0(%i: i8, %j: f32, %o: f32):\n    \
         %a = arith.{} %i : i8 to f32\n{zero}    %t = arith.mulf {value}, %j : f32\n    linalg.yield %t : f32\n  }} -> {floats}\n  \
         %e = tensor.empty() : {y}\n  %i = linalg.fill ins(%z : f32) outs(%e : {y}) -> {y}\n  \
         %r = linalg.matmul indexing_maps = [{products}] ins(%x, %f : {x}, {floats}) outs(%i : {y}) -> {y}\n{finish}",
        form.convert
    );
    let mut inputs = vec![
        Input::new(Dtype::F32, &[m, k]),
        Input::new(Dtype::Int(8), &weights),
        Input::new(Dtype::F32, &scale).within(0.001, 0.01),
        Input::new(Dtype::F32, &[n]),
    ];
    inputs[1] = inputs[1].clone().within(-100.0, 100.0);
    let made = Case::of_text(&format!("packed_weights/{}/{m}x{n}x{k}", form.name), &text, inputs);
    Case { work: (m * n * k) as u64, ..made }.within(1e-5 + 1e-6 * k as f64, 1e-4).on_gpus(1)
}
