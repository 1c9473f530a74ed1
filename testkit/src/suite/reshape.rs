//! Reshapes: views where possible, with producers and consumers.

use super::case::{Case, by};
use crate::host_tensor::Dtype;
use crate::text::{Program, Value, list};
use monopour_ir::ops;

/// Groups of dimensions of the larger shape.
type Groups = &'static [&'static [usize]];

const SHAPES: &[(&[usize], &[usize], Groups)] = &[
    (&[7, 9], &[63], &[&[0, 1]]),
    (&[64, 128], &[8192], &[&[0, 1]]),
    (&[3, 5, 7], &[15, 7], &[&[0, 1], &[2]]),
    (&[3, 5, 7], &[3, 35], &[&[0], &[1, 2]]),
    (&[2, 3, 4, 5], &[6, 20], &[&[0, 1], &[2, 3]]),
    (&[1, 17, 1], &[17], &[&[0, 1, 2]]),
    (&[4, 1, 9], &[4, 9], &[&[0, 1], &[2]]),
];

pub(super) fn cases() -> Vec<Case> {
    let mut out = vec![];
    for (large, small, groups) in SHAPES {
        out.push(case("collapse", large, small, groups, false));
        out.push(case("expand", small, large, groups, false));
        out.push(case("collapse", large, small, groups, true));
        out.push(case("expand", small, large, groups, true));
    }
    for dtype in [Dtype::F16, Dtype::Int(32), Dtype::Int(8), Dtype::Int(1)] {
        let mut p = Program::new();
        let x = p.input(dtype, &[6, 10]);
        let r = reshaped(&mut p, "collapse", &x, &[60], &[&[0, 1]]);
        out.push(Case::new(format!("reshape/collapse/{dtype}"), p, &[&r]).may_copy().within(0.0, 0.0));
    }
    out.extend([
        there_and_back(),
        between_products(),
        rows_of_blocks(),
        heads(),
        transposed_between(),
        of_slice(),
        to_scalar(),
    ]);
    out
}

/// `tensor.expand_shape` or `tensor.collapse_shape`.
pub(super) fn reshaped(p: &mut Program, kind: &str, x: &Value, to: &[usize], groups: &[&[usize]]) -> Value {
    let groups: Vec<_> = groups.iter().map(|g| format!("[{}]", list(g))).collect();
    let output = if kind == "expand" { format!("output_shape [{}] ", list(to)) } else { String::new() };
    let ty = crate::text::tensor(x.dtype, to);
    p.op(x.dtype, to, &format!("tensor.{kind}_shape {} [{}] {output}: {} into {ty}", x.name, groups.join(", "), x.ty()))
}

fn case(kind: &str, from: &[usize], to: &[usize], groups: Groups, computed: bool) -> Case {
    let mut p = Program::new();
    let x = p.f32(from);
    let x = if computed { p.pointwise(Dtype::F32, &[&x], "%s = arith.mulf %a, %a : f32") } else { x };
    let y = reshaped(&mut p, kind, &x, to, groups);
    let r = if computed { p.pointwise(Dtype::F32, &[&y], "%s = math.exp %a : f32") } else { y };
    let name = if computed { "computed" } else { "plain" };
    Case::new(format!("reshape/{kind}_{name}/{}_{}", by(from), by(to)), p, &[&r]).may_copy()
}

fn there_and_back() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[9, 8]);
    let y = reshaped(&mut p, "collapse", &x, &[72], &[&[0, 1]]);
    let z = p.pointwise(Dtype::F32, &[&y], "%s = math.tanh %a : f32");
    let r = reshaped(&mut p, "expand", &z, &[9, 8], &[&[0, 1]]);
    Case::new("reshape/there_and_back", p, &[&r])
}

fn between_products() -> Case {
    let mut p = Program::new();
    let (x, y) = (p.f32(&[3, 4, 10]), p.f32(&[10, 7]));
    let flat = reshaped(&mut p, "collapse", &x, &[12, 10], &[&[0, 1], &[2]]);
    let m = super::contract::product(&mut p, &flat, &y);
    let r = reshaped(&mut p, "expand", &m, &[3, 4, 7], &[&[0, 1], &[2]]);
    Case::new("reshape/between_products", p, &[&r])
}

fn rows_of_blocks() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[5, 24]);
    let y = reshaped(&mut p, "expand", &x, &[5, 4, 6], &[&[0], &[1, 2]]);
    let r = super::rows::softmax(&mut p, &y);
    Case::new("reshape/softmax_of_blocks", p, &[&r])
}

/// `[s, h * d]` to `[h, s, d]`, as in attention.
fn heads() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[9, 12]);
    let y = reshaped(&mut p, "expand", &x, &[9, 3, 4], &[&[0], &[1, 2]]);
    let e = p.empty(Dtype::F32, &[3, 9, 4]);
    let r = p.named_untyped(ops::linalg::TRANSPOSE, &[&y], &e, "permutation = [1, 0, 2]");
    Case::new("reshape/heads", p, &[&r])
}

/// A transpose between reshapes is no view.
fn transposed_between() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[6, 7]);
    let e = p.empty(Dtype::F32, &[7, 6]);
    let t = p.named_untyped(ops::linalg::TRANSPOSE, &[&x], &e, "permutation = [1, 0]");
    let r = reshaped(&mut p, "collapse", &t, &[42], &[&[0, 1]]);
    Case::new("reshape/transposed_between", p, &[&r])
}

/// A strided slice: collapsing it takes a copy or an index.
fn of_slice() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[8, 10]);
    let part = super::slices::extract(&mut p, &x, (&[1, 2], &[6, 5], &[1, 1]));
    let flat = reshaped(&mut p, "collapse", &part, &[30], &[&[0, 1]]);
    let r = p.pointwise(Dtype::F32, &[&flat], "%s = arith.negf %a : f32");
    Case::new("reshape/of_slice", p, &[&r]).may_copy()
}

fn to_scalar() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[1, 1]);
    let y = p.op(Dtype::F32, &[], &format!("tensor.collapse_shape {} [] : tensor<1x1xf32> into tensor<f32>", x.name));
    let r = p.pointwise(Dtype::F32, &[&y], "%s = arith.addf %a, %a : f32");
    Case::new("reshape/to_scalar", p, &[&r]).may_copy()
}
