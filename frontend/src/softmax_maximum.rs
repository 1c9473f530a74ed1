//! Drops NaNs from the maximum of a softmax.
//!
//! Before / after:
//!
//! ```text
//! %m = generic ins(%x) outs(%least) { maximumf }        %m = generic ins(%x) outs(%least) { maxnumf }
//! %p = generic ins(%x, %m) { exp(x - m) }
//! %s = generic ins(%p) outs(%zero) { addf }
//! %w = generic ins(%p, %s) { divf %p, %s }
//! ```
//!
//! A row with a NaN has a power that is NaN, so its sum and all of its weights are, whatever the maximum is. A maximum that
//! keeps NaNs takes three more instructions for each element.
//! Limits: maxima that powers alone read, and powers that their sum and quotients alone read.

use crate::linalg;
use monopour_ir::bodies::{Power, Quotient, constant};
use monopour_ir::{Diagnostics, InsertionPoint, Module, Op, OpSpec, Rewriter, Value, ops};

/// Rewrites the maxima.
///
/// # Errors
/// What MLIR's op builders report.
pub(crate) fn run<'c>(module: &'c Module<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    for op in module.op().find_all(ops::linalg::GENERIC) {
        let Some(combine) = combine_of(op, ops::arith::MAXIMUMF).filter(|_| is_shift_of_softmax(op)) else { continue };
        rw.set_point(InsertionPoint::Before(combine));
        let spec = OpSpec::new(ops::arith::MAXNUMF, combine.location()).operands(&combine.operands());
        let most = rw.create(spec.results(&[combine.result(0).ty()]))?;
        rw.replace_op(combine, &most.results());
    }
    Ok(())
}

/// The op `name` that combines the only input of a reduction with its accumulator.
fn combine_of<'c>(op: Op<'c>, name: &str) -> Option<Op<'c>> {
    let body = op.body().filter(|_| op.num_results() == 1 && op.num_operands() == 2)?;
    let combine = body.terminator()?.operand(0).defining_op().filter(|combine| combine.is(name))?;
    let own = combine.operands().iter().all(|v| body.args().contains(v)) && combine.operand(0) != combine.operand(1);
    own.then_some(combine)
}

/// Whether each reader of the maximum is a power of a row whose sum divides it.
fn is_shift_of_softmax(most: Op) -> bool {
    let (x, row) = (most.operand(0), map(most, 1));
    let start = linalg::destination(most, 0).defining_op().filter(|op| op.is(ops::linalg::FILL));
    let is_number = start.and_then(|fill| constant(fill.operand(0))).is_some_and(|start| !start.is_nan());
    let shifts = |power: Op| {
        let Some(found) = power.body().and_then(Power::of) else { return false };
        is_pointwise(power)
            && power.operand(found.score) == x
            && power.operand(found.most) == most.result(0)
            && map(power, found.score) == map(most, 0)
            && map(power, found.most) == row
            && is_normalized(power.result(0), row.as_deref())
    };
    let readers = most.result(0).uses();
    is_number && is_whole(most, 0) && row.is_some() && !readers.is_empty() && readers.iter().all(|u| shifts(u.op))
}

/// Whether powers are read by one sum over their rows, and by quotients with that sum.
fn is_normalized(powers: Value, row: Option<&[usize]>) -> bool {
    let readers = powers.uses();
    let is_sum = |op: Op| combine_of(op, ops::arith::ADDF).is_some() && is_whole(op, 0) && map(op, 1).as_deref() == row;
    let mut sums = readers.iter().filter(|u| is_sum(u.op));
    let (Some(sum), None) = (sums.next(), sums.next()) else { return false };
    readers.iter().filter(|u| u.op != sum.op).all(|u| {
        let Some(found) = u.op.body().and_then(Quotient::of).filter(|found| found.is_plain) else { return false };
        let once = u.op.operands().iter().filter(|v| **v == powers).count() == 1;
        is_pointwise(u.op)
            && once
            && u.op.operand(found.power) == powers
            && u.op.operand(found.sum) == sum.op.result(0)
            && is_whole(u.op, found.power)
            && map(u.op, found.sum).as_deref() == row
    })
}

/// The loops that subscript an operand, in order.
fn map(op: Op, operand: usize) -> Option<Vec<usize>> {
    linalg::indexing_maps(op).filter(|_| op.is(ops::linalg::GENERIC))?.get(operand)?.dim_positions()
}

/// Whether an operand is read in the order of all loops.
fn is_whole(op: Op, operand: usize) -> bool {
    let loops = linalg::parallel_loops(op).map_or(0, |loops| loops.len());
    map(op, operand).is_some_and(|dims| dims.into_iter().eq(0..loops))
}

/// Whether all loops are parallel, and the only result is written in their order.
fn is_pointwise(op: Op) -> bool {
    let parallel = linalg::parallel_loops(op).is_some_and(|loops| loops.iter().all(|parallel| *parallel));
    op.num_results() == 1 && parallel && is_whole(op, op.num_operands() - 1)
}
