//! Products whose weights are stored in blocks with scales and zero points of their own, in 8 bits or two to a byte, and
//! dequantised where they are read: one dispatch on GPUs, no weights of f32.

use super::case::{Case, tensor};
use crate::host_tensor::Dtype;
use crate::text::Input;

/// How the weights of a block are stored. `g`: a block, `j`: a byte of it, `h`: a number of a byte.
#[derive(Clone, Copy)]
struct Form {
    name: &'static str,
    /// Numbers of a byte.
    per_byte: usize,
    /// Whether numbers have a sign.
    signed: bool,
    /// Whether the weights are `[n, ..]`.
    transposed: bool,
    /// Whether a bias follows.
    bias: bool,
}

const BLOCK: usize = 16;

pub(super) fn cases() -> Vec<Case> {
    let plain = Form { name: "halves", per_byte: 2, signed: false, transposed: false, bias: false };
    let forms = [
        plain,
        Form { name: "halves_by_columns", transposed: true, bias: true, ..plain },
        Form { name: "signed_halves", signed: true, bias: true, ..plain },
        Form { name: "quarters", per_byte: 4, transposed: true, ..plain },
        Form { name: "bytes", per_byte: 1, ..plain },
        Form { name: "bytes_by_columns", per_byte: 1, transposed: true, ..plain },
    ];
    let sizes = [[1, 64, 64], [7, 24, 48], [64, 64, 64], [65, 63, 80], [33, 100, 16], [130, 72, 96]];
    let blocks = forms.iter().flat_map(|form| sizes.iter().map(|sizes| case(*form, *sizes)));
    // A vector times so many rows that a subgroup has several.
    let rows = forms.iter().filter(|form| form.transposed).map(|form| case(*form, [1, 4100, 96]));
    blocks.chain(rows).chain(sizes.iter().map(|sizes| by_position(*sizes))).collect()
}

/// The body that makes a float of a byte `%i`, the scale `%j` and the zero point `%p`; `%h`: the number's position, an i8.
fn body(form: Form) -> String {
    let number = match (form.per_byte, form.signed) {
        (1, _) => "    %q = arith.addi %i, %none : i8\n".to_owned(),
        (_, false) => "    %s = arith.muli %h, %bits : i8\n    %r = arith.shrui %i, %s : i8\n    \
                       %q = arith.andi %r, %mask : i8\n"
            .to_owned(),
        (_, true) => "    %s = arith.muli %h, %bits : i8\n    %r = arith.shrui %i, %s : i8\n    \
                      %l = arith.shli %r, %bits : i8\n    %q = arith.shrsi %l, %bits : i8\n"
            .to_owned(),
    };
    let convert = if form.per_byte == 1 || form.signed { "sitofp" } else { "uitofp" };
    format!(
        "{number}    %a = arith.{convert} %q : i8 to f32\n    %b = arith.uitofp %p : i8 to f32\n    \
         %c = arith.subf %a, %b : f32\n    %t = arith.mulf %c, %f : f32\n    linalg.yield %t : f32\n"
    )
}

fn constants(per_byte: usize) -> String {
    let bits = 8 / per_byte;
    let mask = if per_byte == 1 { -1 } else { (1 << bits) - 1 };
    format!(
        "  %z = arith.constant 0.0 : f32\n  %none = arith.constant 0 : i8\n  %bits = arith.constant {} : i8\n  \
         %mask = arith.constant {mask} : i8\n",
        bits % 8
    )
}

/// The product of `%x` and `%w`, in this order of its dimensions, and what follows.
fn product([m, n, k]: [usize; 3], order: &str, bias: bool) -> String {
    let weights = if order == "n, k" { [n, k] } else { [k, n] };
    let (x, w, y) = (tensor(&[m, k]), tensor(&weights), tensor(&[m, n]));
    let map = |results: &str| format!("affine_map<(m, n, k) -> ({results})>");
    let maps = [map("m, k"), map(order), map("m, n")].join(", ");
    let finish = if bias {
        format!(
            "  %u = linalg.generic {{indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, \
             affine_map<(m, n) -> (m, n)>], iterator_types = [\"parallel\", \"parallel\"]}} ins(%y, %v : {y}, {}) \
             outs(%e : {y}) {{\n  ^bb0(%a: f32, %b: f32, %o: f32):\n    %t = arith.addf %a, %b : f32\n    \
             linalg.yield %t : f32\n  }} -> {y}\n  return %u : {y}\n}}\n",
            tensor(&[n])
        )
    } else {
        format!("  return %y : {y}\n}}\n")
    };
    format!(
        "  %e = tensor.empty() : {y}\n  %i = linalg.fill ins(%z : f32) outs(%e : {y}) -> {y}\n  \
         %y = linalg.matmul indexing_maps = [{maps}] ins(%x, %w : {x}, {w}) outs(%i : {y}) -> {y}\n{finish}"
    )
}

/// Weights of `[g, j, n]` or `[n, g, j]`, unpacked by a loop over the numbers of a byte.
fn case(form: Form, [m, n, k]: [usize; 3]) -> Case {
    let (blocks, bytes) = (k / BLOCK, BLOCK / form.per_byte);
    let (stored, loops, order, groups) = if form.transposed {
        (vec![n, blocks, bytes], "n, g, j, h", "n, k", "[[0], [1, 2, 3]]")
    } else {
        (vec![blocks, bytes, n], "g, j, h, n", "k, n", "[[0, 1, 2], [3]]")
    };
    let read = loops.replace("h, ", "").replace(", h", "");
    let scales = if form.transposed { ("n, g", [n, blocks]) } else { ("g, n", [blocks, n]) };
    let mut whole = stored.clone();
    whole.insert(if form.transposed { 3 } else { 2 }, form.per_byte);
    let ty = |shape: &[usize], element: &str| tensor(shape).replace("f32", element);
    let (w, s, p, d) = (ty(&stored, "i8"), tensor(&scales.1), ty(&scales.1, "i8"), tensor(&whole));
    let weights = if form.transposed { [n, k] } else { [k, n] };
    let map = |results: &str| format!("affine_map<({loops}) -> ({results})>");
    let maps = [map(&read), map(scales.0), map(scales.0), map(loops)].join(", ");
    let position = if form.transposed { 3 } else { 2 };
    let text = format!(
        "func.func @main(%x: {}, %bytes: {w}, %scales: {s}, %zeros: {p}, %v: {}) -> {} {{\n{}  %de = tensor.empty() : {d}\n  \
         %d = linalg.generic {{indexing_maps = [{maps}], iterator_types = [\"parallel\", \"parallel\", \"parallel\", \
         \"parallel\"]}} ins(%bytes, %scales, %zeros : {w}, {s}, {p}) outs(%de : {d}) {{\n  ^bb0(%i: i8, %f: f32, %p: i8, %o: f32):\n    \
         %at = linalg.index {position} : index\n    %h = arith.index_cast %at : index to i8\n{}  }} -> {d}\n  \
         %w = tensor.collapse_shape %d {groups} : {d} into {}\n{}",
        tensor(&[m, k]),
        tensor(&[n]),
        tensor(&[m, n]),
        constants(form.per_byte),
        body(form),
        tensor(&weights),
        product([m, n, k], order, form.bias),
    );
    finished(form.name, &text, [m, n, k], (&stored, &scales.1))
}

/// Weights of `[k / 2, n]`, unpacked by the position of a row, with a scale per block of rows.
fn by_position([m, n, k]: [usize; 3]) -> Case {
    let form = Form { name: "halves_by_position", per_byte: 2, signed: false, transposed: false, bias: true };
    let (stored, scales) = ([k / 2, n], [k / BLOCK, n]);
    let ty = |shape: &[usize], element: &str| tensor(shape).replace("f32", element);
    let (w, s, p, d) = (ty(&stored, "i8"), tensor(&scales), ty(&scales, "i8"), tensor(&[k, n]));
    let map = |results: &str| format!("affine_map<(k, n) -> ({results})>");
    let block = map(&format!("k floordiv {BLOCK}, n"));
    let maps = [map("k floordiv 2, n"), block.clone(), block, map("k, n")].join(", ");
    let text = format!(
        "func.func @main(%x: {}, %bytes: {w}, %scales: {s}, %zeros: {p}, %v: {}) -> {} {{\n{}  %two = arith.constant 2 : index\n  \
         %de = tensor.empty() : {d}\n  %w = linalg.generic {{indexing_maps = [{maps}], iterator_types = [\"parallel\", \
         \"parallel\"]}} ins(%bytes, %scales, %zeros : {w}, {s}, {p}) outs(%de : {d}) {{\n  ^bb0(%i: i8, %f: f32, %p: i8, %o: f32):\n    \
         %k = linalg.index 0 : index\n    %at = arith.remui %k, %two : index\n    \
         %h = arith.index_cast %at : index to i8\n{}  }} -> {d}\n{}",
        tensor(&[m, k]),
        tensor(&[n]),
        tensor(&[m, n]),
        constants(2),
        body(form),
        product([m, n, k], "k, n", true),
    );
    finished(form.name, &text, [m, n, k], (&stored, &scales))
}

fn finished(name: &str, text: &str, [m, n, k]: [usize; 3], (stored, scales): (&[usize], &[usize])) -> Case {
    let inputs = vec![
        Input::new(Dtype::F32, &[m, k]),
        Input::new(Dtype::Int(8), stored).within(-128.0, 127.0),
        Input::new(Dtype::F32, scales).within(0.001, 0.01),
        Input::new(Dtype::Int(8), scales).within(0.0, 15.0),
        Input::new(Dtype::F32, &[n]),
    ];
    let made = Case::of_text(&format!("packed_blocks/{name}/{m}x{n}x{k}"), text, inputs);
    Case { work: (m * n * k) as u64, ..made }.within(1e-5 + 1e-6 * k as f64, 1e-4).on_gpus(1)
}
