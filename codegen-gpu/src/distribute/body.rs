//! Copies the bodies of linalg ops, for one element or for a vector of them.
//!
//! Before: `%v = memref.load %t[%i, %j]` in the body of a generic op, with `%t` a slice of the kernel.
//! After: a load at the linear index of the element; the indices are clamped into the slice, because out-of-range indices
//! are undefined in the source, but must not reach other memory.

use super::code::Code;
use super::evaluate::Evaluator;
use crate::error;
use monopour_ir::ops;
use monopour_ir::{Diagnostics, InsertionPoint, Op, Type, Value, WalkOrder};
use std::collections::HashMap;

/// Copies one op of a linalg body for `lanes` elements at once.
pub(super) fn copy_op<'c>(
    evaluator: &Evaluator<'c, '_>,
    code: &mut Code<'c, '_>,
    op: Op<'c>,
    loops: &[Value<'c>],
    lanes: u32,
    map: &mut HashMap<Value<'c>, Value<'c>>,
) -> Result<(), Diagnostics> {
    if op.is(ops::linalg::INDEX) {
        map.insert(op.result(0), loop_of(op, loops)?);
        return Ok(());
    }
    if op.is(ops::memref::LOAD) {
        let indices: Vec<Value> = op.operands()[1..].iter().map(|v| *map.get(v).unwrap_or(v)).collect();
        let value = load(evaluator, code, op, &indices)?;
        map.insert(op.result(0), value);
        return Ok(());
    }
    let operands: Vec<Value> = op.operands().iter().map(|v| *map.get(v).unwrap_or(v)).collect();
    let wide = operands.iter().any(|v| v.ty().is_vector());
    if !wide {
        let copy = code.rw.clone_op(op, |v| *map.get(&v).unwrap_or(&v));
        code.rw.insert(copy);
        map.extend(op.results().into_iter().zip(copy.results()));
        return nested(evaluator, code, copy, loops);
    }
    // A scalar condition selects between whole vectors; every other operand is broadcast.
    let keep_first = op.is(ops::arith::SELECT) && !operands[0].ty().is_vector();
    let operands: Vec<Value> = operands
        .into_iter()
        .enumerate()
        .map(|(i, v)| if keep_first && i == 0 { v } else { code.broadcast(v, lanes) })
        .collect();
    let types: Vec<Type> = op.results().iter().map(|r| code.vector_type(r.ty(), lanes)).collect();
    let copy = code.rw.recreate(op, &operands, &types)?;
    map.extend(op.results().into_iter().zip(copy.results()));
    Ok(())
}

/// Rewrites the ops in the regions of a copied op.
fn nested<'c>(
    evaluator: &Evaluator<'c, '_>,
    code: &mut Code<'c, '_>,
    copy: Op<'c>,
    loops: &[Value<'c>],
) -> Result<(), Diagnostics> {
    if copy.regions().is_empty() {
        return Ok(());
    }
    let outer = code.point();
    for op in copy.nested(WalkOrder::Post) {
        code.at(InsertionPoint::Before(op));
        let value = match op.name() {
            ops::linalg::INDEX => loop_of(op, loops)?,
            ops::memref::LOAD => load(evaluator, code, op, &op.operands()[1..])?,
            _ => continue,
        };
        code.rw.replace_op(op, &[value]);
    }
    code.at(outer);
    Ok(())
}

fn loop_of<'c>(op: Op<'c>, loops: &[Value<'c>]) -> Result<Value<'c>, Diagnostics> {
    let dim = op.attr("dim").and_then(|a| a.as_int()).and_then(|d| loops.get(d as usize));
    dim.copied().ok_or_else(|| error::not_a_tile(op, "it names no loop"))
}

/// Loads the element of a slice at the indices of `op`; operand 0 is the slice.
pub(super) fn load<'c>(
    evaluator: &Evaluator<'c, '_>,
    code: &mut Code<'c, '_>,
    op: Op<'c>,
    indices: &[Value<'c>],
) -> Result<Value<'c>, Diagnostics> {
    let (buffer, index) = element(evaluator, code, op, op.operand(0), indices)?;
    Ok(code.load(buffer, index, 1))
}

/// Buffer and linear index of an element, clamped into its slice.
pub(super) fn element<'c>(
    evaluator: &Evaluator<'c, '_>,
    code: &mut Code<'c, '_>,
    op: Op<'c>,
    memref: Value<'c>,
    indices: &[Value<'c>],
) -> Result<(Value<'c>, Value<'c>), Diagnostics> {
    let slice = evaluator.model.slice_named(memref).map(|s| &evaluator.model.slices[s]);
    let found = slice.and_then(|s| Some((s, *evaluator.buffers.get(&s.base)?)));
    let (slice, buffer) = found.ok_or_else(|| error::not_a_tile(op, "it accesses no slice of the kernel"))?;
    let mut index = evaluator.origin(code, slice);
    for ((i, size), stride) in indices.iter().zip(&slice.sizes).zip(&slice.strides) {
        let last = code.add_const(size.value, -1);
        let low = code.min(*i, last);
        let zero = code.c(0);
        let clamped = code.max(low, zero);
        let part = code.mul(clamped, *stride);
        index = code.add(index, part);
    }
    Ok((buffer, index))
}
