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

use crate::{joined_op, linalg};
use monopour_ir::{DYNAMIC, Diagnostics, InsertionPoint, Module, Op, Rewriter, ops};
use std::collections::HashSet;

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
            let last = *readers.last().expect("invariant: there are several");
            joined_op::join(&readers, InsertionPoint::Before(last), rw)?;
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
