//! Row groups: reductions along rows, and pointwise ops over the same rows, as one dispatch.
//!
//! ```text
//! %m = generic max   (i, j) -> (i, j), (i)              rows: i; each op below has i as its first loop
//! %e = generic exp   (i, j) -> (i, j), (i), (i, j)      reads %x[i, j] and %m[i]
//! %s = generic add   (i, j) -> (i, j), (i)
//! %y = generic div   (i, j) -> (i), (i, j)              outs(%e): overwrites it
//! ```
//!
//! Every op of a group has the group's row loops as its first loops, all parallel, and writes its results through the identity on
//! its parallel loops. It is one of
//! - a reduction: all other loops are reductions (any body, any number of results: the arg-max of a row is one too),
//! - pointwise on `[rows.., inner..]`: the other loops are parallel, with the extents of the reductions,
//! - pointwise on `[rows..]`.
//!
//! It reads the group's values at its own row, and other tensors at its own row, or through maps without the row loops. A
//! value `[rows.., inner..]` without readers outside is overwritten by its last reader, which has it as `outs`. Values
//! `[rows..]` without readers outside are temporaries of a tile.

use crate::{linalg, products};
use monopour_ir::ops;
use monopour_ir::{AffineExprKind, AffineMap, Op};

/// The kind of an op of a row group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Loops beyond the rows are reductions.
    Reduction,
    /// Loops beyond the rows are parallel.
    Full,
    /// No loops beyond the rows.
    Rows,
}

/// Number of row loops of a reduction along rows: parallel loops first, then reductions, the last of which is the innermost
/// dimension of some operand. `None` for anything else.
pub(crate) fn reduced_rows(op: Op) -> Option<usize> {
    let (maps, parallel) = (linalg::indexing_maps(op)?, linalg::parallel_loops(op)?);
    let rows = parallel.iter().take_while(|p| **p).count();
    let reduces = op.is(ops::linalg::GENERIC) && rows < parallel.len() && parallel[rows..].iter().all(|p| !p);
    let is_product = || products::contraction_loops(op).is_some() || products::convolution_loops(op).is_some();
    if !reduces || kind(op, rows) != Some(Kind::Reduction) || is_product() {
        return None;
    }
    // An operand that has all loops is read along its rows.
    let last = parallel.len() - 1;
    let whole = |m: &AffineMap| m.dim_positions().is_some_and(|d| d.len() == parallel.len() && d.last() == Some(&last));
    let inputs = &maps[..linalg::num_inputs(op)];
    let across =
        |m: &AffineMap| m.dim_positions().is_some_and(|d| d.len() == parallel.len() && d.last() != Some(&last));
    (inputs.iter().any(whole) && !inputs.iter().any(across)).then_some(rows)
}

/// The kind of the op in a group of this many row loops.
pub(crate) fn kind(op: Op, rows: usize) -> Option<Kind> {
    let (maps, parallel) = (linalg::indexing_maps(op)?, linalg::parallel_loops(op)?);
    if !op.is(ops::linalg::GENERIC) || parallel.len() < rows || !parallel[..rows].iter().all(|p| *p) {
        return None;
    }
    let inner = &parallel[rows..];
    let (kind, written) = if inner.is_empty() {
        (Kind::Rows, rows)
    } else if inner.iter().all(|p| !p) {
        (Kind::Reduction, rows)
    } else if inner.iter().all(|p| *p) {
        (Kind::Full, parallel.len())
    } else {
        return None;
    };
    let inputs = linalg::num_inputs(op);
    let identity = |m: &AffineMap| m.dim_positions().is_some_and(|d| d.into_iter().eq(0..written));
    let fits = maps[inputs..].iter().all(identity) && maps[..inputs].iter().all(|m| keeps_rows_apart(*m, rows));
    (fits && op.num_results() > 0).then_some(kind)
}

/// Whether each result is one row loop, or has none.
fn keeps_rows_apart(map: AffineMap, rows: usize) -> bool {
    map.results().into_iter().all(|e| match e.kind() {
        AffineExprKind::Dim(_) => true,
        _ => e.dims().iter().all(|d| *d >= rows),
    })
}

/// Whether a map reads a value of the group at the row of its reader.
pub(crate) fn reads_own_row(map: AffineMap, rows: usize) -> bool {
    let results = map.results();
    let is_row = |(i, e): (usize, &monopour_ir::AffineExpr)| matches!(e.kind(), AffineExprKind::Dim(d) if d == i);
    results.len() >= rows
        && results.iter().enumerate().take(rows).all(is_row)
        && results[rows..].iter().all(|e| e.dims().iter().all(|d| *d >= rows))
}
