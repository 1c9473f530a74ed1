//! Decide which private functions consume arguments, which none of their callers uses after the call.
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
//! Requires: functions used only by known calls, and not recursive.
//! An argument is *consumable* if the function would free it before its first allocation or call, or pass it to a callee for
//! which it is consumable.
//! It is *consumed* if all callers can transfer it: they own the buffer, and do not use it afterwards.
//! A call lists the operands that it transfers in `monopour.donate`.
//! Consumable arguments are found callees first, consumed ones callers first: a consumed argument may be transferred on.
//! Time: up to three more decisions per affected function, none for others.
//! Limits: an argument that is a view of the buffer in one of the calls; callers that extract addresses.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};

use monopour_ir::Op;

use super::{Calls, Decided};
use crate::collect::is_donated;
use crate::lifetimes::{self, Consumed, Summaries, View};

/// The state of all decisions.
pub(super) struct Functions<'c, 'a> {
    pub(super) functions: &'a [Op<'c>],
    pub(super) calls: &'a Calls<'c>,
    pub(super) summaries: &'a Summaries,
    /// The view of any function without consumed arguments.
    pub(super) view: View<'a>,
    /// Work done on decisions that may be discarded.
    pub(super) steps: Cell<u64>,
}

/// Decisions with consumed arguments, for each affected function.
pub(super) fn decide<'c>(all: &Functions<'c, '_>) -> Vec<(usize, Decided<'c>)> {
    let consumable = consumable(all);
    if consumable.is_empty() {
        return vec![];
    }
    let consumed = consumed(all, &consumable);
    if consumed.is_empty() {
        return vec![];
    }
    // Repeated decisions may depend on each other.
    again(all, &consumed).unwrap_or_default()
}

impl<'c> Functions<'c, '_> {
    fn look(
        &self,
        function: usize,
        summaries: &Summaries,
        consumed: &Consumed,
        consumable: &Consumed,
    ) -> Option<lifetimes::Decided<'c>> {
        let view =
            View { dynamic_ownership: self.calls.has_dynamic_ownership(function), consumed, consumable, ..self.view };
        let found = lifetimes::decide(self.functions[function], summaries, view).ok()?;
        self.steps.set(self.steps.get() + found.steps());
        Some(found)
    }

    fn calls_some_of(&self, function: usize, names: &Consumed) -> bool {
        self.calls.graph.callees(function).iter().any(|callee| names.contains_key(&self.calls.names[*callee]))
    }
}

/// The number of memref arguments of a function that may consume them.
fn num_consumable(all: &Functions<'_, '_>, function: usize) -> usize {
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

/// The consumable arguments of all functions.
fn consumable(all: &Functions<'_, '_>) -> Consumed {
    let mut consumable = Consumed::new();
    for function in &all.calls.order {
        let count = num_consumable(all, *function);
        if count == 0 {
            continue;
        }
        let name = &all.calls.names[*function];
        let everything = Consumed::from([(name.clone(), (0..count).collect::<BTreeSet<usize>>())]);
        let found = all.look(*function, all.summaries, &everything, &consumable);
        let early = found.map(|found| found.early_frees()).unwrap_or_default();
        if !early.is_empty() {
            consumable.insert(name.clone(), early);
        }
    }
    consumable
}

/// The consumable arguments that all callers can transfer.
fn consumed(all: &Functions<'_, '_>, consumable: &Consumed) -> Consumed {
    let mut consumed = Consumed::new();
    let mut transferred: HashMap<(String, usize), usize> = HashMap::new();
    for function in all.calls.order.iter().rev() {
        let name = &all.calls.names[*function];
        let calls = all.calls.callers[*function].len();
        let mut arguments = consumable.get(name).cloned().unwrap_or_default();
        arguments.retain(|number| transferred.get(&(name.clone(), *number)) == Some(&calls));
        if !arguments.is_empty() {
            consumed.insert(name.clone(), arguments);
        }
        if !all.calls_some_of(*function, consumable) {
            continue;
        }
        let Some(found) = all.look(*function, all.summaries, &consumed, consumable) else { continue };
        for (callee, number, _) in found.transfers().filter(|(.., is_transferred)| *is_transferred) {
            *transferred.entry((callee.to_owned(), number)).or_default() += 1;
        }
    }
    consumed
}

/// Decides again; `None` if a callee loses an argument that it consumes.
fn again<'c>(all: &Functions<'c, '_>, consumed: &Consumed) -> Option<Vec<(usize, Decided<'c>)>> {
    let mut summaries = all.summaries.clone();
    let mut changed = vec![false; all.functions.len()];
    let mut found = Vec::new();
    for function in &all.calls.order {
        let name = &all.calls.names[*function];
        let has_new_summary = all.calls.graph.callees(*function).iter().any(|callee| changed[*callee]);
        if !consumed.contains_key(name) && !has_new_summary && !all.calls_some_of(*function, consumed) {
            continue;
        }
        let decided = all.look(*function, &summaries, consumed, consumed)?;
        if !decided.transfers().all(|(.., is_transferred)| is_transferred) {
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
