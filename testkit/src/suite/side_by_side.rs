//! Products of one input: one dispatch on GPUs, with what finishes each of them.

use super::case::{Case, tensor};
use crate::host_tensor::Dtype;
use crate::text::Input;

/// The products `%p0 ..` of `%x` and `%w0 ..`, what is computed of them elementwise, and what is returned.
struct Form {
    name: &'static str,
    products: usize,
    /// The type of the factors; results are f32.
    element: &'static str,
    /// Ops behind the products: result, operands, the ops of the body on `%a, %b, ..`. `%v`: a bias.
    steps: &'static [(&'static str, &'static [&'static str], &'static str)],
    results: &'static [&'static str],
    /// Whether the input has batches in front, and the products as well.
    batched: bool,
}

const SUM: &str = "%t = arith.addf %a, %b : f32";
const GATE: &str = "%n = arith.negf %a : f32\n    %p = math.exp %n : f32\n    %d = arith.addf %p, %one : f32\n    \
                    %s = arith.divf %a, %d : f32\n    %t = arith.mulf %s, %b : f32";

const PLAIN: Form =
    Form { name: "three", products: 3, element: "f32", steps: &[], results: &["%p0", "%p1", "%p2"], batched: false };

fn forms() -> Vec<Form> {
    vec![
        PLAIN,
        Form {
            name: "biases",
            products: 2,
            steps: &[("%y0", &["%p0", "%v"], SUM), ("%y1", &["%p1", "%v"], SUM)],
            results: &["%y0", "%y1"],
            ..PLAIN
        },
        Form { name: "gate", products: 2, steps: &[("%y", &["%p0", "%p1"], GATE)], results: &["%y"], ..PLAIN },
        Form { name: "one_finished", steps: &[("%y1", &["%p1", "%v"], SUM)], results: &["%p0", "%y1", "%p2"], ..PLAIN },
        Form {
            name: "sum_of_three",
            steps: &[("%y", &["%p0", "%p1", "%p2"], "%s = arith.addf %a, %b : f32\n    %t = arith.subf %s, %c : f32")],
            results: &["%y"],
            ..PLAIN
        },
        Form { name: "halves", element: "f16", ..PLAIN },
        Form { name: "batches", batched: true, ..PLAIN },
    ]
}

pub(super) fn cases() -> Vec<Case> {
    let sizes = [[1, 64, 64], [7, 24, 40], [64, 64, 64], [65, 63, 61], [33, 100, 12], [130, 72, 96]];
    let forms = forms();
    let cases = forms.iter().flat_map(|form| sizes.iter().map(|sizes| case(form, *sizes)));
    cases.chain(sizes.iter().map(|sizes| of_bytes(*sizes))).collect()
}

fn case(form: &Form, [m, n, k]: [usize; 3]) -> Case {
    let lead = if form.batched { vec![2] } else { vec![] };
    let shape = |dims: &[usize]| [&lead[..], dims].concat();
    let ty = |shape: &[usize]| tensor(shape).replace("f32", form.element);
    let (x, w, y, v) = (ty(&shape(&[m, k])), ty(&[k, n]), tensor(&shape(&[m, n])), tensor(&[n]));
    let (widen, [a, b]) = match form.element {
        "f32" => ("", ["%p", "%r"]),
        _ => ("    %a = arith.extf %p : f16 to f32\n    %b = arith.extf %r : f16 to f32\n", ["%a", "%b"]),
    };
    let dims = if form.batched { "b, i, j" } else { "i, j" };
    let kinds = vec!["\"parallel\""; lead.len() + 2].join(", ");
    let whole = format!("affine_map<({dims}) -> ({dims})>");
    let map = |value: &str| if value == "%v" { format!("affine_map<({dims}) -> (j)>") } else { whole.clone() };
    let mut body = String::new();
    for p in 0..form.products {
        let maps = [dims.replace('j', "k"), "k, j".to_owned(), dims.to_owned()];
        let maps = maps.map(|results| format!("affine_map<({dims}, k) -> ({results})>")).join(", ");
        let e = form.element;
        body += &format!(
            "  %p{p} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}, \"reduction\"]}} \
             ins(%x, %w{p} : {x}, {w}) outs(%i : {y}) {{\n  ^bb0(%p: {e}, %r: {e}, %o: f32):\n{widen}    \
             %q = arith.mulf {a}, {b} : f32\n    %t = arith.addf %o, %q : f32\n    linalg.yield %t : f32\n  }} -> {y}\n"
        );
    }
    for (result, reads, ops) in form.steps {
        let maps: Vec<String> = reads.iter().map(|v| map(v)).chain([whole.clone()]).collect();
        let types: Vec<&str> = reads.iter().map(|value| if *value == "%v" { &v[..] } else { &y[..] }).collect();
        let args: Vec<String> = ["%a", "%b", "%c"].iter().zip(*reads).map(|(a, _)| format!("{a}: f32")).collect();
        body += &format!(
            "  {result} = linalg.generic {{indexing_maps = [{}], iterator_types = [{kinds}]}} ins({} : {}) \
             outs(%e : {y}) {{\n  ^bb0({}, %o: f32):\n    {ops}\n    linalg.yield %t : f32\n  }} -> {y}\n",
            maps.join(", "),
            reads.join(", "),
            types.join(", "),
            args.join(", ")
        );
    }
    let weights: Vec<String> = (0..form.products).map(|p| format!("%w{p}: {w}")).collect();
    let types = vec![&y[..]; form.results.len()].join(", ");
    let text = format!(
        "func.func @main(%x: {x}, %v: {v}, {}) -> ({types}) {{\n  %z = arith.constant 0.0 : f32\n  \
         %one = arith.constant 1.0 : f32\n  %e = tensor.empty() : {y}\n  \
         %i = linalg.fill ins(%z : f32) outs(%e : {y}) -> {y}\n{body}  return {} : {types}\n}}\n",
        weights.join(", "),
        form.results.join(", ")
    );
    let dtype = if form.element == "f16" { Dtype::F16 } else { Dtype::F32 };
    let mut inputs = vec![Input::new(dtype, &shape(&[m, k])), Input::new(Dtype::F32, &[n])];
    inputs.extend((0..form.products).map(|_| Input::new(dtype, &[k, n])));
    let made = Case::of_text(&format!("side_by_side/{}/{m}x{n}x{k}", form.name), &text, inputs);
    Case { work: (3 * m * n * k) as u64, ..made }.within(1e-5 + 1e-6 * k as f64, 1e-4).on_gpus(1)
}

/// Two products with weights of 8 bits and a scale per column.
fn of_bytes([m, n, k]: [usize; 3]) -> Case {
    let (x, y, s) = (tensor(&[m, k]), tensor(&[m, n]), tensor(&[n]));
    let (w, f) = (format!("tensor<{k}x{n}xi8>"), tensor(&[k, n]));
    let mut body = String::new();
    for p in 0..2 {
        body += &format!(
            "  %f{p} = linalg.generic {{indexing_maps = [affine_map<(k, n) -> (k, n)>, affine_map<(k, n) -> (n)>, \
             affine_map<(k, n) -> (k, n)>], iterator_types = [\"parallel\", \"parallel\"]}} ins(%w{p}, %s{p} : {w}, {s}) \
             outs(%fe : {f}) {{\n  ^bb0(%a: i8, %b: f32, %o: f32):\n    %c = arith.sitofp %a : i8 to f32\n    \
             %t = arith.mulf %c, %b : f32\n    linalg.yield %t : f32\n  }} -> {f}\n  \
             %p{p} = linalg.matmul ins(%x, %f{p} : {x}, {f}) outs(%i : {y}) -> {y}\n"
        );
    }
    let text = format!(
        "func.func @main(%x: {x}, %w0: {w}, %w1: {w}, %s0: {s}, %s1: {s}) -> ({y}, {y}) {{\n  \
         %z = arith.constant 0.0 : f32\n  %e = tensor.empty() : {y}\n  %fe = tensor.empty() : {f}\n  \
         %i = linalg.fill ins(%z : f32) outs(%e : {y}) -> {y}\n{body}  return %p0, %p1 : {y}, {y}\n}}\n"
    );
    let mut inputs = vec![Input::new(Dtype::F32, &[m, k])];
    inputs.extend((0..2).map(|_| Input::new(Dtype::Int(8), &[k, n]).within(-100.0, 100.0)));
    inputs.extend((0..2).map(|_| Input::new(Dtype::F32, &[n]).within(0.001, 0.01)));
    let made = Case::of_text(&format!("side_by_side/bytes/{m}x{n}x{k}"), &text, inputs);
    Case { work: (2 * m * n * k) as u64, ..made }.within(1e-5 + 1e-6 * k as f64, 1e-4).on_gpus(1)
}
