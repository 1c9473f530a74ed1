//! Joins elementwise results of the program that read one value: a diamond with several ends is one op of several
//! results.
//!
//! Before / after:
//!
//! ```text
//! %t = generic ins(%x) { exp }                       %t = generic ins(%x) { exp }
//! %a = generic ins(%t, %y) { addf }                  %r:2 = generic ins(%t, %y, %t, %y) { addf, mulf }
//! %b = generic ins(%t, %y) { mulf }                  return %r#0, %r#1
//! return %a, %b
//! ```
//!
//! Ensures: the value has one reader, into which elementwise fusion then moves it: nothing between is in memory.
//! Limits: results of one static shape that the program returns, and does not read. Where the value, or another input,
//! is the result of a reduction, its epilogue has one result, and the ops stay apart.

use crate::linalg;
use monopour_ir::typed::linalg::{Operands, generic};
use monopour_ir::{Block, DYNAMIC, Diagnostics, InsertionPoint, Module, Op, OpSpec, Region, Rewriter, Value, ops};
use std::collections::{HashMap, HashSet};

/// Joins where possible; returns the number of new ops.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(crate) fn run<'c>(module: &'c Module<'c>, rw: &mut Rewriter<'c>) -> Result<usize, Diagnostics> {
    let mut count = 0;
    let mut joined: HashSet<Op> = HashSet::new();
    for op in module.op().find_all(ops::linalg::GENERIC) {
        let readers = if joined.contains(&op) { vec![] } else { ends(op) };
        if readers.len() > 1 {
            join(&readers, rw)?;
            joined.extend(readers);
            count += 1;
        }
    }
    Ok(count)
}

/// The readers of an op's result, in order, if all of them can be joined.
fn ends(op: Op<'_>) -> Vec<Op<'_>> {
    if !linalg::is_elementwise(op) || op.num_results() != 1 || reads_reductions(op) {
        return vec![];
    }
    let mut readers: Vec<Op> = vec![];
    for reader in op.result(0).uses() {
        if !readers.contains(&reader.op) {
            readers.push(reader.op);
        }
    }
    let Some(first) = readers.first().copied() else { return vec![] };
    let fits = |reader: &Op| is_end(*reader) && reader.block() == op.block() && is_alike(first, *reader);
    if !readers.iter().all(fits) {
        return vec![];
    }
    readers
        .sort_by(|a, b| if a.is_before_in_block(*b) { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater });
    readers
}

/// Whether an op is elementwise, of one result that is only returned.
fn is_end(op: Op) -> bool {
    let returned = || op.result(0).uses().iter().all(|u| u.op.is(ops::func::RETURN));
    op.is(ops::linalg::GENERIC)
        && linalg::is_elementwise(op)
        && op.num_results() == 1
        && !op.result(0).is_unused()
        && returned()
        && !reads_reductions(op)
}

/// Whether an op reads the result of a reduction.
fn reads_reductions(op: Op) -> bool {
    let reduces = |def: Op| linalg::parallel_loops(def).is_some_and(|parallel| parallel.contains(&false));
    op.operands().iter().filter_map(|v| v.defining_op()).any(|def| linalg::is_structured(def) && reduces(def))
}

/// Whether two ops have the same static loops, and index their results alike.
fn is_alike(a: Op, b: Op) -> bool {
    let extents = linalg::loop_extents(a);
    let result_map = |op: Op| linalg::indexing_maps(op).and_then(|maps| maps.last().map(|m| m.is_identity()));
    extents.as_ref().is_some_and(|extents| !extents.contains(&DYNAMIC))
        && extents == linalg::loop_extents(b)
        && [a, b].into_iter().all(|op| result_map(op) == Some(true))
}

/// Replaces the ops by one, in the place of the last.
fn join<'c>(ops: &[Op<'c>], rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    let last = *ops.last().expect("invariant: there are several");
    let loc = last.location();
    let inputs_of = |op: Op<'c>| op.operands()[..linalg::num_inputs(op)].to_vec();
    let inputs: Vec<Value> = ops.iter().flat_map(|op| inputs_of(*op)).collect();
    let outputs: Vec<Value> = ops.iter().map(|op| linalg::destination(*op, 0)).collect();
    let (mut maps, mut result_maps) = (vec![], vec![]);
    for op in ops {
        let mut own = linalg::indexing_maps(*op).expect("invariant: a generic has maps");
        result_maps.extend(own.pop());
        maps.append(&mut own);
    }
    maps.append(&mut result_maps);
    let arguments: Vec<_> = inputs.iter().chain(&outputs).map(|v| (v.ty().element(), loc)).collect();
    let block = Block::new(&arguments);
    let region = Region::new();
    region.append(block);
    rw.set_point(InsertionPoint::End(block));
    let mut first = 0;
    let mut yielded = vec![];
    for (position, op) in ops.iter().enumerate() {
        let body = op.body().expect("invariant: a generic has a body");
        let count = linalg::num_inputs(*op);
        let mut map: HashMap<Value, Value> = HashMap::new();
        map.extend((0..count).map(|i| (body.arg(i), block.arg(first + i))));
        map.insert(body.arg(count), block.arg(inputs.len() + position));
        first += count;
        for inner in body.ops() {
            if inner.is(ops::linalg::YIELD) {
                yielded.push(map.get(&inner.operand(0)).copied().unwrap_or(inner.operand(0)));
                continue;
            }
            let copy = rw.clone_op(inner, |v| map.get(&v).copied().unwrap_or(v));
            rw.insert(copy);
            map.extend(inner.results().into_iter().zip(copy.results()));
        }
    }
    rw.create(OpSpec::new(ops::linalg::YIELD, loc).operands(&yielded))?;
    let iterators = last.attr("iterator_types").expect("invariant: a generic has iterators");
    rw.set_point(InsertionPoint::Before(last));
    let joined = rw.create(generic(loc, Operands { inputs: &inputs, outputs: &outputs }, &maps, iterators, region))?;
    for (op, result) in ops.iter().zip(joined.results()) {
        rw.replace_op(*op, &[result]);
    }
    Ok(())
}
