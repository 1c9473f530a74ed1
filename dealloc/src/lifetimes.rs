//! Free every buffer after its last use, whatever the control flow: blocks and loops of blocks, the regions of `scf` and `affine`,
//! programs that free by hand, private functions that return their arguments, or consume them.
//!
//! ```text
//! %a = memref.alloc()                              %a = memref.alloc()
//! cf.cond_br %c, ^x(%a), ^x(%arg)          ==>     cf.cond_br %c, ^x(%a, %true), ^free
//! ^x(%p): "use"(%p)                                ^free: memref.dealloc %a; cf.br ^x(%arg, %false)
//! return                                           ^x(%p, %own): "use"(%p); scf.if %own { memref.dealloc %p }
//! ```
//!
//! `collect` turns a function into facts, `monopour_analysis::lifetimes` decides, `insert` rewrites.
//! A memref with an explicit free belongs to the program from there on. A free in a nested region is dropped, and its
//! memref is freed after its last use like others (`by_hand`).
//! Limits: ops of unknown effects, unless allowed (D0107, D0103 where they make memrefs); a function that frees its arguments (D0102);
//! terminators with unknown forwarded operands (D0101).

mod by_hand;
mod collect;
mod compare;
mod early_frees;
mod insert;
mod regions;
mod view;

use std::collections::BTreeSet;

use monopour_analysis::lifetimes::Lifetimes;
use monopour_analysis::ownership::Ownership;
use monopour_ir::{Diagnostics, Op};

use crate::Stats;
use collect::Collected;
pub(crate) use view::{Consumed, Summaries, Summary, View};

/// The decisions on one function.
pub(crate) struct Decided<'c> {
    collected: Collected<'c>,
    lifetimes: Lifetimes,
    summary: Option<Summary>,
}

impl Decided<'_> {
    /// The summary for callers; `None` for the default, which every caller assumes.
    pub(crate) fn summary(&self) -> Option<&Summary> {
        self.summary.as_ref()
    }

    /// Work done.
    pub(crate) fn steps(&self) -> u64 {
        self.lifetimes.steps
    }

    /// For each call that could consume a memref: the name of the callee, the number of the operand among the memref
    /// operands, and whether the function can transfer it there.
    pub(crate) fn transfers(&self) -> impl Iterator<Item = (&str, usize, bool)> {
        let transferred = |op, value| self.lifetimes.transferred.contains(&(op, value));
        self.collected
            .transferable
            .iter()
            .map(move |(op, value, callee, i)| (callee.as_str(), *i, transferred(*op, *value)))
    }

    /// Memref arguments, by number, that are freed before this function's first allocation or call, or are transferred on.
    pub(crate) fn early_frees(&self) -> BTreeSet<usize> {
        early_frees::of(&self.collected, &self.lifetimes)
    }
}

/// Decides without changes.
///
/// # Errors
/// D0101 to D0103.
pub(crate) fn decide<'c>(function: Op<'c>, summaries: &Summaries, view: View<'_>) -> Result<Decided<'c>, Diagnostics> {
    let collected = collect::collect(function, summaries, view)?;
    let lifetimes = collected.facts.decide();
    let summary = view.dynamic_ownership.then(|| Summary {
        results: lifetimes
            .results
            .iter()
            .zip(&lifetimes.result_aliases)
            .map(|(own, aliases)| (*own, aliases.iter().filter_map(|v| collected.argument_number(*v)).collect()))
            .collect(),
        pairs: lifetimes.result_pairs.clone(),
    });
    // Results that are always owned are the default.
    let summary = summary.filter(|s| s.results.iter().any(|(own, _)| *own != Ownership::Owned));
    Ok(Decided { collected, lifetimes, summary })
}

/// Inserts the decided actions.
///
/// # Errors
/// D0105 for an unranked memref that would have to be copied; MLIR's diagnostics for the new ops.
pub(crate) fn insert(decided: Decided, stats: &mut Stats) -> Result<(), Diagnostics> {
    insert::run(decided, stats)
}
