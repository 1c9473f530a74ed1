//! Copies the bodies of linalg ops, for one element or for a vector of them.
//!
//! Before: `%v = memref.load %t[%i, %j]` in the body of a generic op, with `%t` a slice of the kernel.
//! After: a load at the linear index of the element; the indices are clamped into the slice, because out-of-range indices
//! are undefined in the source, but must not reach other memory.

use super::code::Code;
use super::evaluate::Evaluator;
use super::model::TileOp;
use crate::error;
use monopour_ir::ops;
use monopour_ir::{Block, Diagnostics, InsertionPoint, Op, Type, Value, WalkOrder};
use std::collections::{HashMap, HashSet};

/// The ops of a body that some of its results need, and the values of these results.
pub(super) fn needed<'c>(body: Block<'c>, results: &[usize]) -> (HashSet<Op<'c>>, Vec<Value<'c>>) {
    let yielded = body.terminator().map(Op::operands).unwrap_or_default();
    let yielded: Vec<Value> = results.iter().filter_map(|result| yielded.get(*result).copied()).collect();
    let mut found: HashSet<Op> = HashSet::new();
    let mut next: Vec<Value> = yielded.clone();
    while let Some(value) = next.pop() {
        let def = value.defining_op().filter(|def| def.block() == Some(body));
        if let Some(def) = def.filter(|def| !found.contains(def)) {
            next.extend(def.operands());
            found.insert(def);
        }
    }
    (found, yielded)
}

/// The operands, by position, that some results of an op are computed of.
pub(super) fn read_by(op: &TileOp, results: &[usize]) -> HashSet<usize> {
    let Some(body) = op.body.filter(|_| results.len() < op.outputs().len()) else {
        return (0..op.operands.len()).collect();
    };
    let (ops, yielded) = needed(body, results);
    let read = ops.into_iter().flat_map(Op::operands).chain(yielded);
    let position =
        |value: Value| value.as_block_arg().filter(|(block, _)| *block == body).map(|(_, position)| position);
    read.filter_map(position).collect()
}

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
