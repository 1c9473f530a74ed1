//! Chains of elementwise ops in one to three dimensions: one dispatch, however long.

use super::case::{Case, f32_inputs, function, tensor};
use crate::approx::Tolerance;
use std::fmt::Write;

/// One op of a chain: its other operand, if any, and its body over `%p` (and `%q`).
type Link = (Option<Other>, &'static str);

#[derive(Clone, Copy)]
enum Other {
    /// The input of this number, of the full shape.
    Full(usize),
    /// The input of this number, one element per index of the last dimension.
    Last(usize),
    /// The input of this number, one element per index of the first dimension.
    First(usize),
}

pub(super) fn cases() -> Vec<Case> {
    let mut out = vec![];
    for shape in [&[1][..], &[7], &[1000], &[65537], &[7, 65], &[64, 128], &[3, 5, 7], &[2, 33, 64]] {
        out.push(case("add", shape, &[(Some(Other::Full(1)), "%s = arith.addf %p, %q")]));
        out.push(case(
            "chain",
            shape,
            &[
                (Some(Other::Full(1)), "%s = arith.addf %p, %q"),
                (Some(Other::Full(0)), "%s = arith.mulf %p, %q"),
                (None, "%s = arith.maximumf %p, %z"),
                (Some(Other::Full(1)), "%s = arith.subf %p, %q"),
                (None, "%s = arith.mulf %p, %h"),
                (None, "%s = math.absf %p"),
                (None, "%s = arith.addf %p, %h"),
                // Not before the addition: near zero a root amplifies rounding errors.
                (None, "%s = math.sqrt %p"),
            ],
        ));
    }
    for shape in [&[7, 65][..], &[64, 128], &[3, 5, 7]] {
        out.push(case(
            "broadcast_last",
            shape,
            &[(Some(Other::Last(1)), "%s = arith.addf %p, %q"), (None, "%s = arith.maximumf %p, %z")],
        ));
        out.push(case("broadcast_first", shape, &[(Some(Other::First(1)), "%s = arith.mulf %p, %q")]));
    }
    for (name, body) in [
        ("exp", "%s = math.exp %p"),
        ("tanh", "%s = math.tanh %p"),
        ("log_abs", "%a = math.absf %p : f32\n    %b = arith.addf %a, %h : f32\n    %s = math.log %b"),
        ("rsqrt_abs", "%a = math.absf %p : f32\n    %b = arith.addf %a, %h : f32\n    %s = math.rsqrt %b"),
        ("divide", "%a = arith.addf %p, %two : f32\n    %s = arith.divf %h, %a"),
        (
            "select",
            "%c = arith.cmpf olt, %p, %z : f32\n    %a = arith.mulf %p, %h : f32\n    %s = arith.select %c, %a, %p",
        ),
        ("minimum", "%s = arith.minimumf %p, %z"),
        ("negate", "%s = arith.negf %p"),
        ("floor", "%a = arith.divf %p, %h : f32\n    %s = math.floor %a"),
        ("fma", "%s = math.fma %p, %p, %h"),
    ] {
        out.push(case(name, &[10, 33], &[(None, body)]));
    }
    out
}

fn case(name: &str, shape: &[usize], links: &[Link]) -> Case {
    let mut inputs = vec![shape.to_vec()];
    let mut body = String::new();
    for (name, value) in [("z", "0.0"), ("h", "0.5"), ("two", "2.0")] {
        let _ = writeln!(body, "  %{name} = arith.constant {value} : f32");
    }
    let ty = tensor(shape);
    let _ = writeln!(body, "  %e = tensor.empty() : {ty}");
    let dims = &["i", "j", "k"][..shape.len()];
    let map = |results: &str| format!("affine_map<({}) -> ({results})>", dims.join(", "));
    let all = map(&dims.join(", "));
    let iterators = vec!["\"parallel\""; shape.len()].join(", ");
    let mut last = "%0".to_owned();
    for (i, (other, ops)) in links.iter().enumerate() {
        let (operand, operand_ty, operand_map, arg) = match other {
            None => Default::default(),
            Some(other) => {
                let (index, other_shape, results) = match *other {
                    Other::Full(index) => (index, shape.to_vec(), dims.join(", ")),
                    Other::Last(index) => (index, vec![shape[shape.len() - 1]], dims[shape.len() - 1].to_owned()),
                    Other::First(index) => (index, vec![shape[0]], dims[0].to_owned()),
                };
                let operand_ty = format!(", {}", tensor(&other_shape));
                if index == inputs.len() {
                    inputs.push(other_shape);
                }
                (format!(", %{index}"), operand_ty, format!("{}, ", map(&results)), ", %q: f32")
            }
        };
        let _ = writeln!(
            body,
            "  %r{i} = linalg.generic {{indexing_maps = [{all}, {operand_map}{all}], iterator_types = [{iterators}]}} \
             ins({last}{operand} : {ty}{operand_ty}) outs(%e : {ty}) {{\n  ^bb0(%p: f32{arg}, %o: f32):\n    {ops} : f32\n    \
             linalg.yield %s : f32\n  }} -> {ty}"
        );
        last = format!("%r{i}");
    }
    let _ = writeln!(body, "  return {last} : {ty}");
    Case {
        name: format!("elementwise/{name}/{}", shape.iter().map(ToString::to_string).collect::<Vec<_>>().join("x")),
        text: function(&inputs, shape, &body),
        inputs: f32_inputs(&inputs),
        tolerance: Tolerance { absolute: 1e-6, relative: 1e-5 },
        dispatches: Some(1),
        gpu_dispatches: None,
        laid_out: None,
        copies: Some(0),
        work: shape.iter().product::<usize>() as u64,
    }
}
