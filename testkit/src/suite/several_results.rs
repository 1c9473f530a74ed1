//! Dispatches that write several results: a value that is returned, and what reads it on the way.

use super::case::{Case, HALF, tensor};
use crate::host_tensor::Dtype;
use crate::text::Input;

/// An elementwise op of a program over `[m, n]`: its name, what it reads, and the ops of its body.
struct Step {
    result: &'static str,
    reads: &'static [&'static str],
    body: &'static str,
}

const fn step(result: &'static str, reads: &'static [&'static str], body: &'static str) -> Step {
    Step { result, reads, body }
}

/// A program: the steps behind the product `%m` of `%x` and `%w`, and what it returns. `%v` is a bias, `%r` a residual.
struct Form {
    name: &'static str,
    steps: &'static [Step],
    results: &'static [&'static str],
}

const SUM: &str = "%t = arith.addf %a, %b : f32";
const MAXIMUM: &str = "%t = arith.maximumf %a, %z : f32";
const HALVES: &str = "%t = arith.truncf %a : f32 to f16";

const FORMS: [Form; 7] = [
    Form {
        name: "sum",
        steps: &[step("%y", &["%m", "%v"], SUM), step("%q", &["%y"], MAXIMUM)],
        results: &["%y", "%q"],
    },
    Form { name: "product", steps: &[step("%q", &["%m", "%v"], SUM)], results: &["%q", "%m"] },
    Form {
        name: "ends",
        steps: &[step("%y", &["%m", "%v"], SUM), step("%q", &["%m"], MAXIMUM)],
        results: &["%q", "%y"],
    },
    Form {
        name: "chain",
        steps: &[
            step("%y", &["%m", "%v"], SUM),
            step("%q", &["%y"], MAXIMUM),
            step("%s", &["%q", "%r"], SUM),
            step("%u", &["%s"], "%t = math.tanh %a : f32"),
        ],
        results: &["%y", "%q", "%s", "%u"],
    },
    Form {
        name: "read_again",
        steps: &[step("%y", &["%m", "%r"], SUM), step("%q", &["%y", "%v", "%r"], "%t = math.fma %a, %b, %c : f32")],
        results: &["%q", "%y"],
    },
    Form {
        name: "halves",
        steps: &[step("%y", &["%m", "%v"], SUM), step("%h", &["%y"], HALVES)],
        results: &["%h", "%y"],
    },
    Form {
        name: "elementwise",
        steps: &[step("%y", &["%r"], "%t = math.exp %a : f32"), step("%q", &["%y", "%v"], SUM)],
        results: &["%y", "%q"],
    },
];

pub(super) fn cases() -> Vec<Case> {
    let sizes = [[1, 64, 64], [7, 24, 40], [64, 64, 64], [65, 63, 61], [33, 100, 12], [130, 72, 96]];
    let cases = FORMS.iter().flat_map(|form| sizes.iter().map(|sizes| case(form, *sizes)));
    cases.chain([convolution()]).collect()
}

fn element(value: &str) -> &'static str {
    if value == "%h" { "f16" } else { "f32" }
}

/// The map of a value that is read in the loops `i, j`.
fn map(value: &str) -> &'static str {
    if value == "%v" { "affine_map<(i, j) -> (j)>" } else { "affine_map<(i, j) -> (i, j)>" }
}

fn write_step(step: &Step, [m, n]: [usize; 2]) -> String {
    let ty = |value: &str| match value {
        "%v" => tensor(&[n]),
        _ => format!("tensor<{m}x{n}x{}>", element(value)),
    };
    let list = |parts: Vec<String>| parts.join(", ");
    let (result, out) = (step.result, ty(step.result));
    let maps = list(step.reads.iter().chain([&result]).map(|v| map(v).to_owned()).collect());
    let types = list(step.reads.iter().map(|v| ty(v)).collect());
    let names = ["%a", "%b", "%c"].iter().zip(step.reads);
    let mut args: Vec<String> = names.map(|(name, v)| format!("{name}: {}", element(v))).collect();
    args.push(format!("%o: {}", element(result)));
    format!(
        "  {result}e = tensor.empty() : {out}\n  {result} = linalg.generic {{indexing_maps = [{maps}], iterator_types = \
         [\"parallel\", \"parallel\"]}} ins({} : {types}) outs({result}e : {out}) {{\n  ^bb0({}):\n    {}\n    \
         linalg.yield %t : {}\n  }} -> {out}\n",
        step.reads.join(", "),
        list(args),
        step.body,
        element(result)
    )
}

fn case(form: &Form, [m, n, k]: [usize; 3]) -> Case {
    let steps: String = form.steps.iter().map(|step| write_step(step, [m, n])).collect();
    let types: Vec<String> = form.results.iter().map(|v| format!("tensor<{m}x{n}x{}>", element(v))).collect();
    let (types, results, y) = (types.join(", "), form.results.join(", "), tensor(&[m, n]));
    let (x, w, v) = (tensor(&[m, k]), tensor(&[k, n]), tensor(&[n]));
    let text = format!(
        "func.func @main(%x: {x}, %w: {w}, %v: {v}, %r: {y}) -> ({types}) {{\n  %z = arith.constant 0.0 : f32\n  \
         %e = tensor.empty() : {y}\n  %i = linalg.fill ins(%z : f32) outs(%e : {y}) -> {y}\n  \
         %m = linalg.matmul ins(%x, %w : {x}, {w}) outs(%i : {y}) -> {y}\n{steps}  return {results} : {types}\n}}\n"
    );
    let shapes = [vec![m, k], vec![k, n], vec![n], vec![m, n]];
    let inputs = shapes.iter().map(|shape| Input::new(Dtype::F32, shape)).collect();
    let made = Case::of_text(&format!("several_results/{}/{m}x{n}x{k}", form.name), &text, inputs);
    let made = Case { work: (m * n * k) as u64, ..made }.within(1e-5 + 1e-6 * k as f64, 1e-4).on_gpus(1);
    if form.name == "halves" { Case { tolerance: HALF, ..made } } else { made }
}

/// A convolution with its bias, and the maximum of it.
fn convolution() -> Case {
    let (x, f, y) = (tensor(&[1, 12, 13, 8]), tensor(&[3, 3, 8, 16]), tensor(&[1, 10, 11, 16]));
    let pointwise = "iterator_types = [\"parallel\", \"parallel\", \"parallel\", \"parallel\"]";
    let all = "affine_map<(b, i, j, c) -> (b, i, j, c)>";
    let text = format!(
        "func.func @main(%x: {x}, %f: {f}, %v: tensor<16xf32>) -> ({y}, {y}) {{\n  %z = arith.constant 0.0 : f32\n  \
         %e = tensor.empty() : {y}\n  %i = linalg.fill ins(%z : f32) outs(%e : {y}) -> {y}\n  \
         %m = linalg.conv_2d_nhwc_hwcf ins(%x, %f : {x}, {f}) outs(%i : {y}) -> {y}\n  \
         %y = linalg.generic {{indexing_maps = [{all}, affine_map<(b, i, j, c) -> (c)>, {all}], {pointwise}}} \
         ins(%m, %v : {y}, tensor<16xf32>) outs(%e : {y}) {{\n  ^bb0(%a: f32, %b: f32, %o: f32):\n    {SUM}\n    \
         linalg.yield %t : f32\n  }} -> {y}\n  \
         %q = linalg.generic {{indexing_maps = [{all}, {all}], {pointwise}}} ins(%y : {y}) outs(%e : {y}) {{\n  \
         ^bb0(%a: f32, %o: f32):\n    {MAXIMUM}\n    linalg.yield %t : f32\n  }} -> {y}\n  return %q, %y : {y}, {y}\n}}\n"
    );
    let shapes = [vec![1, 12, 13, 8], vec![3, 3, 8, 16], vec![16]];
    let inputs = shapes.iter().map(|shape| Input::new(Dtype::F32, shape)).collect();
    Case::of_text("several_results/convolution", &text, inputs).within(1e-4, 1e-4).on_gpus(1)
}
