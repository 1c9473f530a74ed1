//! Insert what one branch makes, and another does not, in the branches.
//!
//! ```text
//! %r = scf.if %c {                                  %o = scf.if %c {
//!   scf.yield %x                                      %a = tensor.insert_slice %x into %d[8] [4]
//! } else {                                            scf.yield %a
//!   %p = scf.forall .. shared_outs(%e)              } else {
//!   scf.yield %p                               ==>    %p = scf.forall .. shared_outs(%e)
//! }                                                   %b = tensor.insert_slice %p into %d[8] [4]
//! %o = tensor.insert_slice %r into %d[8] [4]          scf.yield %b
//!                                                   }
//! ```
//!
//! On the left side both are copied: the buffer of `%r` may be that of `%x`. On the right side what is made is made in its place
//! (`eliminate_empty_tensors.rs`), and the other one is copied as before.
//!
//! Requires: functions on tensors, before bufferization. Ensures: the same values; no run copies more.
//! Limits: results that are inserted and not used otherwise, also not to check their sizes; tensors that are not used otherwise;
//! assertions between the branch and the insertion that can come before both; branches that all make their values need no change.

use monopour_ir::typed::{Slice, tensor};
use monopour_ir::{Diagnostics, InsertionPoint, Op, OpSpec, Region, Rewriter, Value, ops};
use tracing::trace;

use crate::block_order::BlockOrder;
use crate::subset_extraction::{Movable, move_before, move_before_use, needed_values, undo};

/// Moves insertions of a function into branches; returns how many.
///
/// # Errors
/// MLIR's, for an op that does not build.
pub(crate) fn run(function: Op) -> Result<usize, Diagnostics> {
    let (mut rw, mut order) = (Rewriter::new(function.context()), BlockOrder::default());
    let mut count = 0;
    // The inner ones last: what they result in may be inserted in a branch by then.
    for mut branch in function.find_all(ops::scf::IF) {
        for result in 0..branch.num_results() {
            let Some(insertion) = insertion(branch, result) else { continue };
            if move_needed(&mut rw, &mut order, branch, insertion) {
                trace!(target: "bufferize", "{}: inserted in the branches", insertion.location());
                branch = sink(&mut rw, branch, result, insertion)?;
                order.forget();
                count += 1;
            }
        }
    }
    Ok(count)
}

/// The insertion of a result that one branch makes, and another does not.
fn insertion<'c>(branch: Op<'c>, result: usize) -> Option<Op<'c>> {
    let [used] = branch.result(result).uses()[..] else { return None };
    let insertion = used.op;
    let is_sole = insertion.is(ops::tensor::INSERT_SLICE) && used.index == 0 && insertion.block() == branch.block();
    let yields: Vec<Op> = yields(branch);
    let made = yields.iter().filter(|end| is_made(**end, end.operand(result))).count();
    let is_mixed = yields.len() == 2 && made == 1;
    (is_sole && is_mixed && insertion.operand(1).uses().len() == 1).then_some(insertion)
}

/// Moves what an insertion needs before the branch, and the assertions between the two, which may guard its place; false, and
/// nothing is moved, if one cannot be.
fn move_needed<'c>(rw: &mut Rewriter<'c>, order: &mut BlockOrder<'c>, branch: Op<'c>, insertion: Op<'c>) -> bool {
    let (needed, mut edits) = (needed_values(insertion), vec![]);
    let asserts = order.asserts_between(Some(branch), insertion);
    let moved = asserts.into_iter().all(|op| move_before(rw, order, (op, Movable::Nested), branch, &mut edits))
        && move_before_use(rw, order, branch, (&needed, Movable::Nested), &mut edits);
    if !moved {
        undo(rw, order, edits);
    }
    moved
}

fn yields(branch: Op) -> Vec<Op> {
    branch.regions().into_iter().filter_map(|region| region.entry()?.terminator()).collect()
}

/// Whether a value is made in a new tensor, in the block that yields it.
fn is_made<'c>(end: Op<'c>, mut value: Value<'c>) -> bool {
    let mut is_written = false;
    while let Some(op) = value.defining_op() {
        match op.name() {
            ops::tensor::EMPTY => return is_written,
            ops::scf::FORALL if op.block() == end.block() => {
                let number = value.result_index().unwrap_or(0);
                value = op.operand(op.num_operands() - op.num_results() + number);
                is_written = true;
            }
            _ => return false,
        }
    }
    false
}

/// The branch with the insertion in it; returns the new one.
fn sink<'c>(rw: &mut Rewriter<'c>, branch: Op<'c>, result: usize, insertion: Op<'c>) -> Result<Op<'c>, Diagnostics> {
    let loc = insertion.location();
    let (Some(slice), whole) = (Slice::of(insertion), insertion.operand(1)) else { return Ok(branch) };
    for end in yields(branch) {
        rw.set_point(InsertionPoint::Before(end));
        let inserted = rw.create(tensor::insert_slice(loc, end.operand(result), whole, &slice))?;
        rw.set_operand(end, result, inserted.result(0));
    }
    let mut types: Vec<_> = branch.results().iter().map(|value| value.ty()).collect();
    types[result] = whole.ty();
    let mut spec = OpSpec::new(ops::scf::IF, branch.location()).operands(&branch.operands()).results(&types);
    for _ in branch.regions() {
        spec = spec.region(Region::new());
    }
    rw.set_point(InsertionPoint::Before(branch));
    let new = rw.create(spec.attrs(&branch.attrs()))?;
    for (to, from) in new.regions().into_iter().zip(branch.regions()) {
        rw.take_region(to, from);
    }
    rw.replace_op(insertion, &[new.result(result)]);
    for (old, new) in branch.results().into_iter().zip(new.results()).filter(|(old, _)| !old.is_unused()) {
        rw.replace_all_uses(old, new);
    }
    rw.erase(branch);
    Ok(new)
}
