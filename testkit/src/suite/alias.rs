//! Values that could share a buffer, may, and must not.

use super::case::{Case, by};
use super::contract;
use super::slices::{extract, insert};
use crate::host_tensor::Dtype;
use crate::text::{Program, Value};
use monopour_ir::ops;

pub(super) fn cases() -> Vec<Case> {
    let mut out = vec![];
    for shape in [&[1][..], &[17], &[9, 10], &[3, 5, 7]] {
        out.push(same_input_twice(shape));
        out.push(chain_in_place(shape));
        out.push(result_is_input(shape));
        out.push(result_twice(shape));
    }
    out.push(both_results());
    out.push(input_written(false));
    out.push(input_written(true));
    out.push(read_after_write());
    out.push(two_writers());
    out.push(destination_shared());
    out.push(destination_is_operand());
    out.push(disjoint_slices());
    out.push(product_into_its_operand());
    out.push(transposed_in_place());
    out.push(constant_written());
    out.push(constant_returned());
    out.push(unused());
    out.push(diamond());
    out
}

fn tanh(p: &mut Program, x: &Value) -> Value {
    p.pointwise(Dtype::F32, &[x], "%s = math.tanh %a : f32")
}

/// A pointwise op that overwrites `out`.
fn into(p: &mut Program, x: &Value, out: &Value, body: &str) -> Value {
    let dims: Vec<_> = (0..x.shape().len()).map(|d| format!("d{d}")).collect();
    let map = dims.join(", ");
    p.generic(&dims.join(" "), &[(x, &map)], (out, &map), body)
}

fn same_input_twice(shape: &[usize]) -> Case {
    let mut p = Program::new();
    let x = p.f32(shape);
    let r = p.pointwise(Dtype::F32, &[&x, &x], "%s = arith.mulf %a, %b : f32");
    Case::new(format!("alias/same_input_twice/{}", by(shape)), p, &[&r]).dispatches(1)
}

fn chain_in_place(shape: &[usize]) -> Case {
    let mut p = Program::new();
    let x = p.f32(shape);
    let a = tanh(&mut p, &x);
    let b = into(&mut p, &a, &a, "%s = arith.negf %a : f32");
    let r = into(&mut p, &b, &b, "%s = math.exp %a : f32");
    Case::new(format!("alias/chain_in_place/{}", by(shape)), p, &[&r]).dispatches(1)
}

/// The caller keeps its input, so the result is another buffer.
fn result_is_input(shape: &[usize]) -> Case {
    let mut p = Program::new();
    let x = p.f32(shape);
    Case::new(format!("alias/result_is_input/{}", by(shape)), p, &[&x]).may_copy().within(0.0, 0.0)
}

fn result_twice(shape: &[usize]) -> Case {
    let mut p = Program::new();
    let x = p.f32(shape);
    let r = tanh(&mut p, &x);
    Case::new(format!("alias/result_twice/{}", by(shape)), p, &[&r, &r]).may_copy()
}

/// A value and what is computed from it are both results.
fn both_results() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[12, 9]);
    let a = tanh(&mut p, &x);
    let b = into(&mut p, &a, &a, "%s = arith.negf %a : f32");
    Case::new("alias/both_results", p, &[&a, &b]).may_copy()
}

fn input_written(read_later: bool) -> Case {
    let mut p = Program::new();
    let (x, y) = (p.f32(&[10]), p.f32(&[4]));
    let w = insert(&mut p, &y, &x, (&[3], &[4], &[1]));
    let r = if read_later { p.pointwise(Dtype::F32, &[&w, &x], "%s = arith.subf %a, %b : f32") } else { w };
    Case::new(format!("alias/input_written/{read_later}"), p, &[&r]).may_copy()
}

fn read_after_write() -> Case {
    let mut p = Program::new();
    let (x, y) = (p.f32(&[16]), p.f32(&[5]));
    let a = tanh(&mut p, &x);
    let w = insert(&mut p, &y, &a, (&[1], &[5], &[2]));
    let r = p.pointwise(Dtype::F32, &[&a, &w], "%s = arith.addf %a, %b : f32");
    Case::new("alias/read_after_write", p, &[&r]).may_copy()
}

/// Two versions of one tensor, both alive.
fn two_writers() -> Case {
    let mut p = Program::new();
    let (x, y, z) = (p.f32(&[16]), p.f32(&[5]), p.f32(&[5]));
    let a = tanh(&mut p, &x);
    let v = insert(&mut p, &y, &a, (&[1], &[5], &[1]));
    let w = insert(&mut p, &z, &a, (&[4], &[5], &[1]));
    Case::new("alias/two_writers", p, &[&v, &w]).may_copy()
}

/// One `tensor.empty` is the destination of two values that are both alive.
fn destination_shared() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[8, 8]);
    let e = p.empty(Dtype::F32, &[8, 8]);
    let a = into(&mut p, &x, &e, "%s = math.exp %a : f32");
    let b = into(&mut p, &x, &e, "%s = math.tanh %a : f32");
    Case::new("alias/destination_shared", p, &[&a, &b])
}

fn destination_is_operand() -> Case {
    let mut p = Program::new();
    let (x, y) = (p.f32(&[8, 8]), p.f32(&[8, 8]));
    let a = tanh(&mut p, &y);
    let r = into(&mut p, &x, &a, "%s = arith.addf %a, %o : f32");
    Case::new("alias/destination_is_operand", p, &[&r])
}

/// One half is computed from the other, within one buffer.
fn disjoint_slices() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[10, 6]);
    let a = tanh(&mut p, &x);
    let low = extract(&mut p, &a, (&[0, 0], &[5, 6], &[1, 1]));
    let high = extract(&mut p, &a, (&[5, 0], &[5, 6], &[1, 1]));
    let n = into(&mut p, &low, &high, "%s = arith.negf %a : f32");
    let r = insert(&mut p, &n, &a, (&[5, 0], &[5, 6], &[1, 1]));
    Case::new("alias/disjoint_slices", p, &[&r]).may_copy()
}

/// A product may not overwrite its operand.
fn product_into_its_operand() -> Case {
    let mut p = Program::new();
    let (x, y) = (p.f32(&[9, 9]), p.f32(&[9, 9]));
    let a = tanh(&mut p, &x);
    let r = p.named(ops::linalg::MATMUL, &[&a, &y], &a);
    let s = contract::product(&mut p, &r, &y);
    Case::new("alias/product_into_its_operand", p, &[&s]).may_copy().within(1e-4, 1e-4)
}

fn transposed_in_place() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[9, 9]);
    let a = tanh(&mut p, &x);
    let r = p.named_untyped(ops::linalg::TRANSPOSE, &[&a], &a, "permutation = [1, 0]");
    Case::new("alias/transposed_in_place", p, &[&r]).may_copy()
}

fn constant(p: &mut Program) -> Value {
    p.op(Dtype::F32, &[4], "arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>")
}

/// A constant is unchanged in the next run.
fn constant_written() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[2]);
    let c = constant(&mut p);
    let w = insert(&mut p, &x, &c, (&[1], &[2], &[1]));
    let r = p.pointwise(Dtype::F32, &[&w, &c], "%s = arith.mulf %a, %b : f32");
    Case::new("alias/constant_written", p, &[&r]).may_copy()
}

fn constant_returned() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[4]);
    let c = constant(&mut p);
    let r = p.pointwise(Dtype::F32, &[&x, &c], "%s = arith.addf %a, %b : f32");
    Case::new("alias/constant_returned", p, &[&c, &r]).may_copy()
}

/// Unused inputs and values.
fn unused() -> Case {
    let mut p = Program::new();
    let (x, _y) = (p.f32(&[7]), p.f32(&[300]));
    let _dead = tanh(&mut p, &x);
    let r = p.pointwise(Dtype::F32, &[&x], "%s = arith.negf %a : f32");
    Case::new("alias/unused", p, &[&r]).dispatches(1)
}

fn diamond() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[30, 30]);
    let a = tanh(&mut p, &x);
    let b = p.pointwise(Dtype::F32, &[&a], "%s = math.exp %a : f32");
    let c = p.pointwise(Dtype::F32, &[&a], "%s = math.absf %a : f32");
    let r = p.pointwise(Dtype::F32, &[&b, &c], "%s = arith.subf %a, %b : f32");
    Case::new("alias/diamond", p, &[&r])
}
