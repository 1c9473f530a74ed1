//! Decide which private functions take over buffers that none of their callers uses any more.
//!
//! ```text
//! func.func @main(%x: f32) {                       func.func @main(%x: f32) {
//!   %a = memref.alloc()                              %a = memref.alloc()
//!   func.call @f(%a)                                 func.call @f(%a)
//!   memref.dealloc %a                                return
//!   return                                         }
//! }                                          ==>
//! func.func private @f(%p: memref<8xf32>) {        func.func private @f(%p: memref<8xf32>) {
//!   "use"(%p)                                        "use"(%p)
//!   %b = memref.alloc()                              memref.dealloc %p
//!   ...                                              %b = memref.alloc()
//! ```
//!
//! Requires: functions that only known calls name, and that do not call themselves.
//! A function *wishes* for an argument that it would free before it allocates or calls something, or that a callee wishes for.
//! It *takes* what it wishes for if all of its callers can let go of it: they hold the buffer, and nothing else uses it then.
//! A call says by `monopour.donate` which operands it hands over.
//! Callees wish before callers; callers let go before callees, so that what is taken may be given on.
//! Time: up to three more decisions for a function that takes part, none for any other.
//! Limits: an argument that is a view of the buffer in one of the calls; callers that make numbers of addresses.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};

use monopour_ir::Op;

use super::{Calls, Decided};
use crate::collect::is_donated;
use crate::lifetimes::{self, Summaries, Takes, View};

/// All that is decided on.
pub(super) struct Functions<'a> {
    pub(super) functions: &'a [Op],
    pub(super) calls: &'a Calls,
    pub(super) summaries: &'a Summaries,
    /// Of any function, if nothing is taken.
    pub(super) view: View<'a>,
    /// How much was looked at for decisions that may come to nothing.
    pub(super) steps: Cell<u64>,
}

/// Decisions with what is taken over, for each function that takes part.
pub(super) fn decide(all: &Functions<'_>) -> Vec<(usize, Decided)> {
    let wishes = wishes(all);
    if wishes.is_empty() {
        return vec![];
    }
    let takes = takes(all, &wishes);
    if takes.is_empty() {
        return vec![];
    }
    // What is decided anew may rest on others that are, too.
    again(all, &takes).unwrap_or_default()
}

impl Functions<'_> {
    fn look(
        &self,
        function: usize,
        summaries: &Summaries,
        takes: &Takes,
        wishes: &Takes,
    ) -> Option<lifetimes::Decided> {
        let view = View { tells: self.calls.tells(function), takes, wishes, ..self.view };
        let found = lifetimes::decide(self.functions[function], summaries, view).ok()?;
        self.steps.set(self.steps.get() + found.steps());
        Some(found)
    }

    fn calls_some_of(&self, function: usize, names: &Takes) -> bool {
        self.calls.callees[function].iter().any(|callee| names.contains_key(&self.calls.names[*callee]))
    }
}

/// The number of memref arguments of a function that may take them.
fn takable(all: &Functions<'_>, function: usize) -> usize {
    let op = all.functions[function];
    if !all.calls.is_known(function) || all.calls.callers[function].is_empty() {
        return 0;
    }
    let Some((inputs, _)) = op.function_type() else { return 0 };
    if (0..inputs.len()).any(|index| is_donated(op, index)) {
        return 0;
    }
    inputs.iter().filter(|ty| ty.is_memref()).count()
}

/// What functions would free early.
fn wishes(all: &Functions<'_>) -> Takes {
    let mut wishes = Takes::new();
    for function in &all.calls.order {
        let count = takable(all, *function);
        if count == 0 {
            continue;
        }
        let name = &all.calls.names[*function];
        let everything = Takes::from([(name.clone(), (0..count).collect::<BTreeSet<usize>>())]);
        let found = all.look(*function, all.summaries, &everything, &wishes);
        let gains = found.map(|found| found.gains()).unwrap_or_default();
        if !gains.is_empty() {
            wishes.insert(name.clone(), gains);
        }
    }
    wishes
}

/// What all callers can let go of, of what is wished for.
fn takes(all: &Functions<'_>, wishes: &Takes) -> Takes {
    let mut takes = Takes::new();
    let mut given: HashMap<(String, usize), usize> = HashMap::new();
    for function in all.calls.order.iter().rev() {
        let name = &all.calls.names[*function];
        let calls = all.calls.callers[*function].len();
        let mut taken = wishes.get(name).cloned().unwrap_or_default();
        taken.retain(|number| given.get(&(name.clone(), *number)) == Some(&calls));
        if !taken.is_empty() {
            takes.insert(name.clone(), taken);
        }
        if !all.calls_some_of(*function, wishes) {
            continue;
        }
        let Some(found) = all.look(*function, all.summaries, &takes, wishes) else { continue };
        for (callee, number, _) in found.offers().filter(|(.., is_given)| *is_given) {
            *given.entry((callee.to_owned(), number)).or_default() += 1;
        }
    }
    takes
}

/// Decides again; none if that takes away what a callee counts on.
fn again(all: &Functions<'_>, takes: &Takes) -> Option<Vec<(usize, Decided)>> {
    let mut summaries = all.summaries.clone();
    let mut changed = vec![false; all.functions.len()];
    let mut found = Vec::new();
    for function in &all.calls.order {
        let name = &all.calls.names[*function];
        let is_told_anew = all.calls.callees[*function].iter().any(|callee| changed[*callee]);
        if !takes.contains_key(name) && !is_told_anew && !all.calls_some_of(*function, takes) {
            continue;
        }
        let decided = all.look(*function, &summaries, takes, takes)?;
        if !decided.offers().all(|(.., is_given)| is_given) {
            return None;
        }
        changed[*function] = decided.summary() != summaries.get(name);
        match decided.summary() {
            Some(summary) => drop(summaries.insert(name.clone(), summary.clone())),
            None => drop(summaries.remove(name)),
        }
        found.push((*function, Decided::General(Box::new(decided))));
    }
    Some(found)
}
