//! Merges the first loops of foralls of more than three dimensions, the rank of a grid.
//!
//! Before / after:
//!
//! ```text
//! scf.forall (%b, %h, %i, %j) in (2, 12, 8, 2) {      scf.forall (%t, %i, %j) in (24, 8, 2) {
//!   ..                                                  %b = affine.apply (d0) -> (d0 floordiv 12)(%t)
//! }                                                     %h = affine.apply (d0) -> ((d0 floordiv 1) mod 12)(%t)
//! ```
//!
//! Requires: dispatches of [`crate::tile`]'s own. Limits: static trip counts of the merged loops but the first, whose count may
//! be known at run time only.

use crate::rows_slice::affine;
use monopour_contract::attributes;
use monopour_ir::ops;
use monopour_ir::typed::Index;
use monopour_ir::typed::scf::{self, Bounds};
use monopour_ir::{DYNAMIC, Diagnostics, InsertionPoint, Location, Module, Op, Region, Rewriter, Value, WalkOrder};

/// Dimensions of a grid.
pub(crate) const MAX_GRID_RANK: usize = 3;

/// Merges the first loops of every dispatch that has too many.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(crate) fn merge<'c>(module: &'c Module<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    for forall in module.op().find_all(ops::scf::FORALL) {
        let counts = forall.attr("staticUpperBound").and_then(|a| a.as_ints()).unwrap_or_default();
        let merged = (counts.len() + 1).saturating_sub(MAX_GRID_RANK);
        let ours = || forall.nested(WalkOrder::Pre).iter().any(|op| op.attr(attributes::DISPATCH).is_some());
        if merged > 1 && forall.attr(attributes::KERNEL).is_some() && may_merge(&counts[..merged]) && ours() {
            merge_one(forall, &counts, merged, rw)?;
        }
    }
    Ok(())
}

/// Whether loops of these trip counts, [`DYNAMIC`] where unknown, can be merged: only the first may be unknown.
pub(crate) fn may_merge(counts: &[i64]) -> bool {
    counts.iter().skip(1).all(|count| *count != DYNAMIC)
}

/// The trip count of loops that are merged: static, or a value that is computed at the insertion point.
pub(crate) fn merged_count<'c>(
    first: Index<'c>,
    others: &[i64],
    loc: Location<'c>,
    rw: &mut Rewriter<'c>,
) -> Result<Index<'c>, Diagnostics> {
    let factor: i64 = others.iter().product();
    Ok(match first {
        Index::Static(count) => Index::Static(count * factor),
        Index::Dynamic(count) => Index::Dynamic(affine(
            ops::affine::APPLY,
            &format!("affine_map<(d0) -> (d0 * {factor})>"),
            &[count],
            loc,
            rw,
        )?),
    })
}

fn merge_one<'c>(forall: Op<'c>, counts: &[i64], merged: usize, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    let loc = forall.location();
    let body = forall.body().expect("invariant: scf.forall has a body");
    let ids = decompose(body.arg(0), &counts[..merged], InsertionPoint::Start(body), loc, rw)?;
    for (i, id) in ids.iter().enumerate() {
        for u in body.arg(i).uses() {
            // The other ids are computed from the first one.
            if !ids.iter().any(|id| id.defining_op() == Some(u.op)) {
                rw.set_operand(u.op, u.index, *id);
            }
        }
    }
    for i in (1..merged).rev() {
        rw.erase_block_arg(body, i);
    }
    let forall_op = scf::ForAll::of(forall).expect("invariant: the op is a forall");
    // Sizes of the first and of the other loops may be known at run time only.
    let upper = forall_op.upper_bounds().expect("invariant: a forall has its dynamic bounds");
    let region = Region::new();
    rw.take_region(region, forall.region(0));
    rw.set_point(InsertionPoint::Before(forall));
    let mut bounds = vec![merged_count(upper[0], &counts[1..merged], loc, rw)?];
    bounds.extend_from_slice(&upper[merged..]);
    let outputs = forall_op.outputs();
    let bounds = Bounds::upto(bounds);
    let mut spec = scf::forall(loc, &bounds, &outputs, region);
    if let Some(kernel) = forall.attr(attributes::KERNEL) {
        spec = spec.attr(attributes::KERNEL, kernel);
    }
    let new = rw.create(spec)?;
    rw.replace_op(forall, &new.results());
    Ok(())
}

/// Delinearizes `number`: the ids of loops of these trip counts, in row-major order. The first count may be [`DYNAMIC`].
pub(crate) fn decompose<'c>(
    number: Value<'c>,
    counts: &[i64],
    point: InsertionPoint<'c>,
    loc: Location<'c>,
    rw: &mut Rewriter<'c>,
) -> Result<Vec<Value<'c>>, Diagnostics> {
    rw.set_point(point);
    let mut stride: i64 = counts.iter().skip(1).product();
    let mut ids = vec![];
    for (i, count) in counts.iter().enumerate() {
        let wrapped = if i == 0 { String::new() } else { format!(" mod {}", (*count).max(1)) };
        if i > 0 {
            stride /= (*count).max(1);
        }
        let map = format!("affine_map<(d0) -> ((d0 floordiv {}){wrapped})>", stride.max(1));
        ids.push(affine(ops::affine::APPLY, &map, &[number], loc, rw)?);
    }
    Ok(ids)
}
