//! Perceptrons: a product, a bias and a relu per layer, one dispatch each.

use super::case::{Case, f32_inputs, function, tensor};
use crate::approx::Tolerance;
use std::fmt::Write;

pub(super) fn cases() -> Vec<Case> {
    vec![case(&[5, 33, 17, 9, 10]), case(&[1, 10, 63, 10]), large()]
}

/// The perceptron of the benchmarks.
fn large() -> Case {
    case(&[64, 784, 1024, 1024, 10])
}

/// Batch size, then the width of each layer.
fn case(sizes: &[usize]) -> Case {
    let batch = sizes[0];
    let widths = &sizes[1..];
    let mut inputs = vec![vec![batch, widths[0]]];
    let mut body = "  %z = arith.constant 0.0 : f32\n".to_owned();
    let mut last = "%0".to_owned();
    for (i, pair) in widths.windows(2).enumerate() {
        let (k, n) = (pair[0], pair[1]);
        let (w, b) = (inputs.len(), inputs.len() + 1);
        inputs.extend([vec![k, n], vec![n]]);
        let is_last = i + 2 == widths.len();
        let (x, y, t) = (tensor(&[batch, k]), tensor(&[k, n]), tensor(&[batch, n]));
        let (ops, result) = if is_last { ("", "%s") } else { ("    %t = arith.maximumf %s, %z : f32\n", "%t") };
        let _ = write!(
            body,
            "  %e{i} = tensor.empty() : {t}\n  %f{i} = linalg.fill ins(%z : f32) outs(%e{i} : {t}) -> {t}\n  \
             %m{i} = linalg.matmul ins({last}, %{w} : {x}, {y}) outs(%f{i} : {t}) -> {t}\n  \
             %a{i} = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], \
             iterator_types = [\"parallel\", \"parallel\"]}} ins(%m{i}, %{b} : {t}, {}) outs(%e{i} : {t}) {{\n  \
             ^bb0(%p: f32, %q: f32, %o: f32):\n    %s = arith.addf %p, %q : f32\n{ops}    linalg.yield {result} : f32\n  }} -> {t}\n",
            tensor(&[n])
        );
        last = format!("%a{i}");
    }
    let result = [batch, widths[widths.len() - 1]];
    let _ = writeln!(body, "  return {last} : {}", tensor(&result));
    let work = widths.windows(2).map(|p| batch * p[0] * p[1]).sum::<usize>() as u64;
    Case {
        name: format!("mlp/{}", sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join("x")),
        text: function(&inputs, &result, &body),
        inputs: f32_inputs(&inputs),
        // Weights are not scaled: values grow by the square root of each width.
        tolerance: Tolerance { absolute: 1e-2, relative: 1e-4 },
        dispatches: Some(widths.len() as u32 - 1),
        gpu_dispatches: None,
        laid_out: None,
        copies: Some(0),
        work,
    }
}
