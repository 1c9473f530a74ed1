//! Make tensors in buffers that have served their purpose.
//!
//! ```text
//! %1 = scf.forall .. shared_outs(%o = %0) { .. %x .. }        %1 = scf.forall .. shared_outs(%o = %0) { .. %x .. }
//! %2 = tensor.empty() : tensor<8xf32>                   ==>   %3 = scf.forall .. shared_outs(%o = %x) { .. %1 .. }
//! %3 = scf.forall .. shared_outs(%o = %2) { .. %1 .. }
//! ```
//!
//! `%x` is a donated input that nothing uses any more. [`monopour_analysis::reuse`] chooses; a change that the in-place
//! analysis copies an operand for is undone.
//!
//! Requires: functions on tensors, before bufferization. Ensures: the same values, and no more copies.
//! Limits: tensors of static size, destinations that are a `tensor.empty` and nothing else.

use std::collections::HashMap;

use monopour_analysis::index::IndexVec;
use monopour_analysis::one_shot::InPlaceAnalysis;
use monopour_analysis::reuse::reuses;
use monopour_ir::{Diagnostics, Op, Rewriter, Type, Use, Value, ops};
use tracing::trace;

use crate::boundary::{Callees, callees_first};
use crate::eliminate_empty_tensors::{Analysed, analyse, cost};
use crate::op_model::OpModels;
use crate::options::{Options, Strategy};
use crate::summaries::summarise;

/// How many sets of changes are tried, each with an analysis of its own: all together, then halves of sets that cost copies.
const MOST_TRIALS: usize = 16;

/// Replaces new tensors of a module's functions; returns how many. Nothing is done but with [`Strategy::Minimal`].
///
/// # Errors
/// As [`crate::run_one_shot`], for programs that it would refuse.
pub fn reuse_buffers(root: Op, options: &Options) -> Result<usize, Diagnostics> {
    options.check()?;
    let options = &options.effective();
    if options.strategy != Strategy::Minimal || options.copy_before_write {
        return Ok(0);
    }
    let models = OpModels::upstream();
    let functions = if root.is(ops::func::FUNC) { vec![root] } else { root.find_all(ops::func::FUNC) };
    let mut callees = Callees::new(&functions);
    let mut count = 0;
    for function in callees_first(&functions).into_iter().filter(|f| f.body().is_some()) {
        let mut analysed = analyse(function, &models, &callees, options)?;
        let changes = changes(&analysed);
        let again = || analyse(function, &models, &callees, options);
        let mut trials = Trials {
            rw: Rewriter::new(function.context()),
            analyse: &again,
            left: MOST_TRIALS,
            least: cost(&analysed),
        };
        let made = trials.run(&changes);
        if made > 0 {
            analysed = again()?;
        }
        count += made;
        callees.insert(function, summarise(function, &analysed.collected, &analysed.decisions));
    }
    Ok(count)
}

/// A use of a new tensor, and the value to use instead.
struct Change<'c> {
    used: Use<'c>,
    empty: Value<'c>,
    value: Value<'c>,
}

fn changes<'c>(Analysed { collected, decisions }: &Analysed<'c>) -> Vec<Change<'c>> {
    let mut numbers: HashMap<Type, u32> = HashMap::new();
    let mut kind = |value: &Value<'c>| {
        value.ty().static_size_bytes().filter(|bytes| *bytes > 0)?;
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        Some(*numbers.entry(value.ty()).or_insert(next))
    };
    let kinds: IndexVec<_, _> = collected.values.iter().map(&mut kind).collect();
    let change = |reuse: monopour_analysis::reuse::Reuse| {
        let used = collected.operands[reuse.operand];
        Change { used, empty: used.op.operand(used.index), value: collected.values[reuse.value] }
    };
    reuses(&collected.facts, decisions, &kinds).into_iter().map(change).collect()
}

/// The search for changes that cost no copies.
struct Trials<'c, 'a> {
    rw: Rewriter<'c>,
    analyse: &'a dyn Fn() -> Result<Analysed<'c>, Diagnostics>,
    /// Analyses that may still be made.
    left: usize,
    /// Copies without the changes.
    least: usize,
}

impl<'c> Trials<'c, '_> {
    /// Keeps all of the changes if they cost nothing, else those of each half that do not; returns how many.
    fn run(&mut self, changes: &[Change<'c>]) -> usize {
        if changes.is_empty() || self.left == 0 {
            return 0;
        }
        self.left -= 1;
        for change in changes {
            self.rw.set_operand(change.used.op, change.used.index, change.value);
        }
        if (self.analyse)().is_ok_and(|analysed| self.is_kept(&analysed, changes)) {
            for change in changes {
                let (op, place) = (change.used.op, change.used.op.location());
                trace!(target: "bufferize", "{place}: {} is made in a buffer that is free by then", op.name());
                if let Some(empty) = change.empty.defining_op().filter(|_| change.empty.is_unused()) {
                    self.rw.erase(empty);
                }
            }
            return changes.len();
        }
        for change in changes {
            self.rw.set_operand(change.used.op, change.used.index, change.empty);
        }
        if changes.len() == 1 {
            return 0;
        }
        let (first, second) = changes.split_at(changes.len() / 2);
        self.run(first) + self.run(second)
    }

    fn is_kept(&self, analysed: &Analysed<'c>, changes: &[Change<'c>]) -> bool {
        let is_in_place = |change: &Change<'c>| {
            let id = analysed.collected.operand_ids.get(&(change.used.op, change.used.index));
            id.is_some_and(|id| analysed.decisions.is_in_place(*id))
        };
        cost(analysed) <= self.least && changes.iter().all(is_in_place)
    }
}
