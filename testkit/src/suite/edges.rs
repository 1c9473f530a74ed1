//! Extreme extents: no element, one, rank zero, many dimensions, more workgroups than a grid dimension has.

use super::case::{Case, by};
use super::contract::MULTIPLY_ADD;
use super::rows::{row_reduce, softmax};
use super::slices::{joined, padded};
use crate::host_tensor::Dtype;
use crate::text::Program;
use monopour_ir::ops;

pub(super) fn cases() -> Vec<Case> {
    let mut out = vec![];
    for shape in [&[0][..], &[0, 7], &[7, 0], &[3, 0, 5], &[], &[1, 1, 1, 1], &[2, 1, 3, 1, 2, 1]] {
        let mut p = Program::new();
        let (x, y) = (p.f32(shape), p.f32(shape));
        let r = p.pointwise(Dtype::F32, &[&x, &y], "%s = arith.addf %a, %b : f32");
        out.push(Case::new(format!("edges/pointwise/{}", by(shape)), p, &[&r]));
    }
    // An empty sum is the initial value.
    for shape in [[0, 7], [7, 0], [0, 0]] {
        let mut p = Program::new();
        let x = p.f32(&shape);
        let r = row_reduce(&mut p, &x, "%s = arith.addf %a, %o : f32", "2.5");
        out.push(Case::new(format!("edges/row_sum/{}", by(&shape)), p, &[&r]));
    }
    for [m, n, k] in [[0, 5, 7], [5, 0, 7], [5, 7, 0], [1, 1, 1]] {
        let mut p = Program::new();
        let (x, y) = (p.f32(&[m, k]), p.f32(&[k, n]));
        let init = p.zeros(Dtype::F32, &[m, n]);
        let r = p.generic("m n k!", &[(&x, "m, k"), (&y, "k, n")], (&init, "m, n"), MULTIPLY_ADD);
        out.push(Case::new(format!("edges/product/{m}x{n}x{k}"), p, &[&r]));
    }
    for shape in [[0, 9], [1, 1]] {
        let mut p = Program::new();
        let x = p.f32(&shape);
        let r = softmax(&mut p, &x);
        out.push(Case::new(format!("edges/softmax/{}", by(&shape)), p, &[&r]));
    }
    out.extend([
        empty_part(),
        pad_of_nothing(),
        scalars_only(),
        many_rows(),
        many_groups(),
        long_vector(),
        wide_row(),
        tall_product(),
    ]);
    out.push(several_results());
    out
}

/// One of the concatenated parts is empty.
fn empty_part() -> Case {
    let mut p = Program::new();
    let (x, y) = (p.f32(&[0, 4]), p.f32(&[5, 4]));
    let r = joined(&mut p, &[&x, &y], 0);
    Case::new("edges/empty_part", p, &[&r]).may_copy()
}

fn pad_of_nothing() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[0, 3]);
    let r = padded(&mut p, &x, &[2, 0], &[1, 1], "4.0");
    Case::new("edges/pad_of_nothing", p, &[&r]).may_copy()
}

/// No tensors.
fn scalars_only() -> Case {
    let mut p = Program::new();
    let (a, b) = (p.scalar(Dtype::F32, 1.0, 2.0), p.scalar(Dtype::F32, 1.0, 2.0));
    let r = p.scalar_op(Dtype::F32, &format!("arith.divf {}, {} : f32", a.name, b.name));
    Case::new("edges/scalars_only", p, &[&r])
}

/// More rows than workgroups fit in one dimension of a grid.
fn many_rows() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[70_001, 3]);
    let r = row_reduce(&mut p, &x, "%s = arith.addf %a, %o : f32", "0.0");
    Case::new("edges/many_rows", p, &[&r]).dispatches(1)
}

fn many_groups() -> Case {
    let mut p = Program::new();
    let (x, y) = (p.f32(&[66_000, 1, 2]), p.f32(&[66_000, 2, 1]));
    let init = p.zeros(Dtype::F32, &[66_000, 1, 1]);
    let r = p.named(ops::linalg::BATCH_MATMUL, &[&x, &y], &init);
    Case::new("edges/many_groups", p, &[&r]).dispatches(1)
}

fn long_vector() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[4_200_001]);
    let r = p.pointwise(Dtype::F32, &[&x], "%s = arith.mulf %a, %a : f32");
    Case::new("edges/long_vector", p, &[&r]).dispatches(1)
}

fn wide_row() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[2, 100_003]);
    let r = row_reduce(&mut p, &x, "%s = arith.maximumf %a, %o : f32", "0xFF800000");
    Case::new("edges/wide_row", p, &[&r])
}

fn tall_product() -> Case {
    let mut p = Program::new();
    let (x, y) = (p.f32(&[10_007, 3]), p.f32(&[3, 2]));
    let r = super::contract::product(&mut p, &x, &y);
    Case::new("edges/tall_product", p, &[&r]).dispatches(1)
}

/// Many results of several types and shapes.
fn several_results() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[6, 7]);
    let a = p.pointwise(Dtype::F32, &[&x], "%s = math.exp %a : f32");
    let b = p.pointwise(Dtype::Int(1), &[&x], "%z = arith.constant 0.0 : f32; %s = arith.cmpf olt, %a, %z : f32");
    let c = p.pointwise(
        Dtype::Int(32),
        &[&x],
        "%k = arith.constant 100.0 : f32; %m = arith.mulf %a, %k : f32; \
        %f = math.floor %m : f32; %s = arith.fptosi %f : f32 to i32",
    );
    let d = row_reduce(&mut p, &x, "%s = arith.addf %a, %o : f32", "0.0");
    Case::new("edges/several_results", p, &[&a, &b, &c, &d]).within(1.0, 1e-5)
}
