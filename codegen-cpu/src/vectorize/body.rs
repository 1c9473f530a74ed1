//! Emits the body of a generic, for scalars or for vectors.

use super::emit::{Emit, Position, Width};
use super::instructions;
use super::near;
use super::nest::Nest;
use monopour_ir::ops;
use monopour_ir::{Op, Type, Value};
use std::collections::HashMap;

/// The point of the iteration space at which a copy of the body is emitted.
#[derive(Clone, Copy)]
pub(super) struct Place<'c, 'a> {
    /// Per loop; along the vector loop, the first lane.
    pub(super) at: &'a [Position<'c>],
    /// The vector loop.
    pub(super) dim: usize,
    /// Its lanes.
    pub(super) width: Width,
}

/// Values of the body by those of the op.
pub(super) type Values<'c> = HashMap<Value<'c>, Value<'c>>;

/// Emits the ops of the body that `wanted` depends on; returns the values for `wanted`. `values` holds the arguments, or what
/// is computed of them.
pub(super) fn emit<'c>(
    e: &mut Emit<'c>,
    nest: &Nest<'c>,
    place: Place<'c, '_>,
    values: &mut Values<'c>,
    wanted: &[Value<'c>],
) -> Vec<Value<'c>> {
    let needed = needed(nest, values, wanted);
    for op in nest.body.ops() {
        if !op.is(ops::linalg::YIELD) && needed.contains(&op) {
            let value = emit_op(e, op, place, values);
            for (old, new) in op.results().into_iter().zip(value) {
                values.insert(old, new);
            }
        }
    }
    wanted.iter().map(|v| lookup(values, *v)).collect()
}

/// A value from outside maps to itself.
pub(super) fn lookup<'c>(values: &Values<'c>, value: Value<'c>) -> Value<'c> {
    values.get(&value).copied().unwrap_or(value)
}

fn needed<'c>(nest: &Nest<'c>, values: &Values<'c>, wanted: &[Value<'c>]) -> Vec<Op<'c>> {
    let mut work: Vec<Value> = wanted.to_vec();
    let mut out = vec![];
    while let Some(value) = work.pop() {
        let op = value.defining_op().filter(|op| op.block() == Some(nest.body) && !values.contains_key(&value));
        if let Some(op) = op.filter(|op| !out.contains(op)) {
            out.push(op);
            work.extend(op.operands());
        }
    }
    out
}

fn emit_op<'c>(e: &mut Emit<'c>, op: Op<'c>, place: Place<'c, '_>, values: &Values<'c>) -> Vec<Value<'c>> {
    if op.is(ops::linalg::INDEX) {
        return vec![index(e, op, place)];
    }
    let operands: Vec<Value> = op.operands().into_iter().map(|v| lookup(values, v)).collect();
    if op.is(ops::memref::LOAD) && place.width > 1 && operands.iter().any(|v| v.ty().is_vector()) {
        return vec![gather(e, op, place, &operands)];
    }
    // Values that are uniform across lanes are computed once.
    let width = if operands.iter().any(|v| v.ty().is_vector()) { place.width } else { 1 };
    if let Some(value) = instructions::emit(e, op, &operands, width) {
        return vec![value];
    }
    let operands: Vec<Value> = operands.into_iter().map(|v| e.splat(v, width)).collect();
    let over = |ty: Type<'c>| if width == 1 { ty } else { Type::vector(&[width], ty) };
    let types: Vec<Type> = op.results().iter().map(|r| over(r.ty())).collect();
    e.recreate(op, &operands, &types).results()
}

/// `linalg.index`: consecutive numbers along the vector loop.
fn index<'c>(e: &mut Emit<'c>, op: Op<'c>, place: Place<'c, '_>) -> Value<'c> {
    let dim = op.attr("dim").and_then(|a| a.as_int()).and_then(|d| usize::try_from(d).ok());
    let dim = dim.expect("invariant: linalg.index has its loop");
    let first = e.position(place.at[dim]);
    if dim != place.dim || place.width == 1 {
        return first;
    }
    let ty = Type::vector(&[place.width], Type::index(e.cx));
    let first = e.splat(first, place.width);
    let steps = e.op(ops::vector::STEP, &[], ty);
    e.op(ops::arith::ADDI, &[first, steps], ty)
}

/// `memref.load` of subscripts of which some differ by lane: one vector where they are consecutive elements of a line.
fn gather<'c>(e: &mut Emit<'c>, op: Op<'c>, place: Place<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let (width, element) = (place.width, op.result(0).ty());
    let ty = Type::vector(&[width], element);
    let varying = operands.iter().filter(|v| v.ty().is_vector()).count();
    let unit = operands[0].ty().as_memref().is_some_and(|ty| ty.strides.last() == Some(&1));
    if varying == 1 && unit && op.operands().last().is_some_and(|v| is_lane(*v, place.dim)) {
        let first = e.position(place.at[place.dim]);
        return e.op(ops::vector::LOAD, &[&operands[..operands.len() - 1], &[first]].concat(), ty);
    }
    let each = |e: &mut Emit<'c>| {
        let parts: Vec<Value> = (0..width)
            .map(|lane| {
                let here = |v: &Value<'c>| if v.ty().is_vector() { e.lanes(*v, lane, 1) } else { *v };
                let operands: Vec<Value> = operands.iter().map(here).collect();
                e.op(ops::memref::LOAD, &operands, element)
            })
            .collect();
        e.op(ops::vector::FROM_ELEMENTS, &parts, ty)
    };
    let alone = varying == 1 && unit && operands.last().is_some_and(|v| v.ty().is_vector());
    near::gather(e, operands, (width, ty), alone, &each).unwrap_or_else(|| each(e))
}

/// Whether a value is the position along the vector loop.
fn is_lane(value: Value, dim: usize) -> bool {
    let index = value.defining_op().filter(|op| op.is(ops::linalg::INDEX));
    index.and_then(|op| op.attr("dim")?.as_int()).is_some_and(|d| usize::try_from(d) == Ok(dim))
}
