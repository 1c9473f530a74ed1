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
use monopour_ir::{Diagnostics, Op, Rewriter};
use std::collections::HashSet;
use tracing::trace;

use crate::block_order::BlockOrder;
use crate::copied::copied;
use crate::eliminate_empty_tensors::Analysed;
use crate::improve::{Analyse, trials};
use crate::subset_extraction::{Edit, Movable, move_before, undo};

/// How often the reads of a function are moved: a slice moves first, then what reads it.
const MOST_ROUNDS: usize = 6;

/// Moves reads of a function. The analysis is of the function as it is then.
///
/// # Errors
/// As [`crate::run_one_shot`], for programs that it would refuse.
pub(crate) fn move_reads<'c>(
    function: Op<'c>,
    analysed: &mut Analysed<'c>,
    analyse: Analyse<'c, '_>,
) -> Result<(), Diagnostics> {
    let mut least = copied(analysed);
    let (mut rw, mut order) = (Rewriter::new(function.context()), BlockOrder::default());
    let mut edits = Vec::new();
    // The function as it is now; none while that is `analysed`.
    let mut tried: Option<Analysed> = None;
    for _ in 0..trials(analysed, MOST_ROUNDS) {
        if !move_all(&mut rw, &mut order, tried.as_ref().unwrap_or(analysed), &mut edits) {
            break;
        }
        let after = analyse()?;
        if copied(&after) < least {
            (least, *analysed, tried) = (copied(&after), after, None);
            edits.clear();
        } else {
            tried = Some(after);
        }
    }
    undo(&mut rw, &mut order, edits);
    Ok(())
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
        let Some(read) = read.beside(write).filter(|op| *op != write && moved.insert(*op)) else { continue };
        if !order.is_before(write, read) || !move_before(rw, order, (read, Movable::Nested), write, edits) {
            moved.remove(&read);
            continue;
        }
        let place = read.location();
        trace!(target: "bufferize", "{place}: {} before {}, which overwrites what it reads", read.name(), write.name());
    }
    !moved.is_empty()
}
