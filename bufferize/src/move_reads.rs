//! Move reads before the write that they conflict with.
//!
//! ```text
//! %w = tensor.insert %f into %t[%i]          %old = tensor.extract %t[%i]
//! %old = tensor.extract %t[%i]         ==>   %w = tensor.insert %f into %t[%i]
//! ```
//!
//! A read of the contents that a write overwrites costs a copy of them if it comes behind the write. A pure operation may as well
//! come before it, with the pure operations that its operands need. Assertions between the two guard it, and move along.
//!
//! Requires: functions on tensors, before bufferization. Ensures: the same values; a change that saves no copy is undone.
//! Limits: reads in the block of the write, or nested in a pure operation of it.

use monopour_analysis::one_shot::{InPlaceAnalysis, Reason};
use monopour_ir::{Diagnostics, Op, Rewriter, ops};
use std::collections::HashSet;
use tracing::trace;

use crate::block_order::BlockOrder;
use crate::boundary::{Callees, callees_first};
use crate::eliminate_empty_tensors::{Analysed, analyse, cost};
use crate::op_model::OpModels;
use crate::options::{Options, Strategy};
use crate::subset_extraction::{Edit, Movable, move_before, undo};
use crate::summaries::summarise;

/// How often the reads of a function are moved: a slice moves first, then what reads it.
const MOST_ROUNDS: usize = 6;

/// Moves reads of a module's functions; returns how many copies that saves. Nothing is done but with [`Strategy::Minimal`].
///
/// # Errors
/// As [`crate::run_one_shot`], for programs that it would refuse.
pub fn move_reads(root: Op, options: &Options) -> Result<usize, Diagnostics> {
    options.check()?;
    let options = &options.effective();
    if options.strategy != Strategy::Minimal || options.copy_before_write {
        return Ok(0);
    }
    let models = OpModels::upstream();
    let functions = if root.is(ops::func::FUNC) { vec![root] } else { root.find_all(ops::func::FUNC) };
    let mut callees = Callees::new(&functions);
    let mut saved = 0;
    for function in callees_first(&functions).into_iter().filter(|f| f.body().is_some()) {
        let mut analysed = analyse(function, &models, &callees, options)?;
        let before = cost(&analysed);
        let mut least = before;
        let (mut rw, mut order) = (Rewriter::new(function.context()), BlockOrder::default());
        let mut edits = Vec::new();
        for _ in 0..MOST_ROUNDS {
            if !move_all(&mut rw, &mut order, &analysed, &mut edits) {
                break;
            }
            analysed = analyse(function, &models, &callees, options)?;
            if cost(&analysed) < least {
                least = cost(&analysed);
                edits.clear();
            }
        }
        if !edits.is_empty() {
            undo(&mut rw, &mut order, edits);
            analysed = analyse(function, &models, &callees, options)?;
        }
        saved += before - least;
        callees.insert(function, summarise(function, &analysed.collected, &analysed.decisions));
    }
    Ok(saved)
}

/// Moves each read that is the reason for a copy; whether there was one that can be moved.
fn move_all<'c>(
    rw: &mut Rewriter<'c>,
    order: &mut BlockOrder<'c>,
    Analysed { collected, decisions }: &Analysed<'c>,
    edits: &mut Vec<Edit<'c>>,
) -> bool {
    let mut moved = HashSet::new();
    for id in collected.operands.ids().filter(|id| !decisions.is_in_place(*id)) {
        let Some(Reason::ReadAfterWrite { read, write, .. }) = decisions.reason(id) else { continue };
        let (read, write) = (collected.operands[read].op, collected.operands[write].op);
        let Some(read) = ancestor_beside(read, write).filter(|op| moved.insert(*op)) else { continue };
        if !order.is_before(write, read) || !move_guarded(rw, order, read, write, edits) {
            moved.remove(&read);
            continue;
        }
        let place = read.location();
        trace!(target: "bufferize", "{place}: {} before {}, which overwrites what it reads", read.name(), write.name());
    }
    !moved.is_empty()
}

/// The op in the block of `other` that is or contains `op`; none for `other` itself.
fn ancestor_beside<'c>(op: Op<'c>, other: Op<'c>) -> Option<Op<'c>> {
    let mut at = op;
    while at.block() != other.block() {
        at = at.parent()?;
    }
    (at != other).then_some(at)
}

/// Moves an op before another one of its block, behind the assertions between them; false, and nothing is moved, if it cannot be.
fn move_guarded<'c>(
    rw: &mut Rewriter<'c>,
    order: &mut BlockOrder<'c>,
    op: Op<'c>,
    to: Op<'c>,
    edits: &mut Vec<Edit<'c>>,
) -> bool {
    let mut asserts = Vec::new();
    let mut at = to.next();
    while let Some(next) = at.filter(|next| *next != op) {
        if next.is(ops::cf::ASSERT) {
            asserts.push(next);
        }
        at = next.next();
    }
    let mut own = Vec::new();
    for guard in asserts {
        if !move_before(rw, order, (guard, Movable::Simple), to, &mut own) {
            undo(rw, order, own);
            return false;
        }
    }
    if !move_before(rw, order, (op, Movable::Nested), to, &mut own) {
        undo(rw, order, own);
        return false;
    }
    edits.extend(own);
    true
}
