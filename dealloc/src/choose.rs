//! The choice of the engine for each function of a module, and the order of decisions.
//!
//! `frees` handles functions of structured control flow with statically known owners, without copies.
//! `lifetimes` handles all others, and the callers of a private function with dynamic ownership of its results.
//! Callees are decided before callers; recursive functions assume the default summary of each other.
//! Then `consumed` finds the arguments that private functions can free, and these functions are decided once more.

mod consumed;

use monopour_ir::ops;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use monopour_ir::{CallGraph, Diagnostics, Op, WalkOrder};
use tracing::trace;

use crate::lifetimes::{Consumed, Summaries, View};
use crate::models::OwnershipModels;
use crate::{Options, Stats, frees, lifetimes};

/// The decisions on one function, by either engine.
enum Decided<'c> {
    Static(Box<frees::Decided<'c>>),
    General(Box<lifetimes::Decided<'c>>),
}

/// Decides on all functions, then changes them.
///
/// # Errors
/// The errors of the engines.
pub(crate) fn run(
    root: Op,
    functions: &[Op],
    models: &OwnershipModels,
    options: &Options,
    stats: &mut Stats,
) -> Result<(), Diagnostics> {
    let calls = Calls::of(root, functions);
    let mut accepted: Vec<Option<frees::Decided>> =
        functions.iter().map(|f| frees::decide(*f).filter(frees::Decided::is_static)).collect();
    let mut work: Vec<usize> = (0..functions.len()).filter(|f| accepted[*f].is_none()).collect();
    while let Some(function) = work.pop() {
        if calls.has_dynamic_ownership(function) {
            for caller in &calls.callers[function] {
                if accepted[*caller].take().is_some() {
                    work.push(*caller);
                }
            }
        }
    }
    let mut summaries = Summaries::new();
    let mut decided: Vec<Option<Decided>> = functions.iter().map(|_| None).collect();
    let nothing = Consumed::new();
    let allows_unknown = options.allow_unknown_effects;
    let view = View { models, dynamic_ownership: false, allows_unknown, consumed: &nothing, consumable: &nothing };
    for function in &calls.order {
        if let Some(found) = accepted[*function].take() {
            decided[*function] = Some(Decided::Static(Box::new(found)));
            continue;
        }
        let view = View { dynamic_ownership: calls.has_dynamic_ownership(*function), ..view };
        let found = lifetimes::decide(functions[*function], &summaries, view)?;
        if let Some(summary) = found.summary() {
            summaries.insert(calls.names[*function].clone(), summary.clone());
        }
        decided[*function] = Some(Decided::General(Box::new(found)));
    }
    let all = consumed::Functions { functions, calls: &calls, summaries: &summaries, view, steps: Cell::new(0) };
    for (function, found) in consumed::decide(&all) {
        decided[function] = Some(found);
    }
    stats.steps += all.steps.get();
    for function in &calls.order {
        let decided = decided[*function].take().expect("invariant: the order names each function once");
        let (op, name) = (functions[*function], &calls.names[*function]);
        match decided {
            Decided::Static(found) => {
                trace!(target: "dealloc", "{}: @{name} by static frees: all owners are known", op.location());
                frees::insert(*found, stats)?;
            }
            Decided::General(found) => {
                trace!(target: "dealloc", "{}: @{name} by lifetimes: a run decides on owners", op.location());
                lifetimes::insert(*found, stats)?;
            }
        }
    }
    Ok(())
}

/// The call graph, with what is known of its functions.
struct Calls<'c> {
    graph: CallGraph<'c>,
    names: Vec<String>,
    /// One entry per call.
    callers: Vec<Vec<usize>>,
    /// Callees before callers, except on cycles.
    order: Vec<usize>,
    /// Functions whose callers are all known, and that are not recursive.
    known: HashSet<usize>,
    /// Those of them that return memrefs.
    dynamic: HashSet<usize>,
}

impl<'c> Calls<'c> {
    fn of(root: Op<'c>, functions: &[Op<'c>]) -> Self {
        let names: Vec<String> = functions.iter().map(|f| f.symbol_name().unwrap_or_default()).collect();
        let graph = CallGraph::new(functions, |_| ());
        let callers = graph.callers();
        let (order, looping) = post_order(&graph);
        let gives = |f: &Op| f.function_type().is_some_and(|(_, results)| results.iter().any(|r| r.is_memref()));
        let mut named: HashMap<String, usize> = HashMap::new();
        for name in root.find_all(ops::func::FUNC).iter().filter_map(|f| f.symbol_name()) {
            *named.entry(name).or_default() += 1;
        }
        // In nested modules a name may belong to several functions.
        let is_known =
            |f: &usize| !functions[*f].is_public() && !looping.contains(f) && named.get(&names[*f]) == Some(&1);
        // A function that the pass runs on alone may have unknown callers.
        let mut known: HashSet<usize> = (0..functions.len()).filter(is_known).collect();
        if root.is(ops::func::FUNC) {
            known.clear();
        }
        if !known.is_empty() {
            for function in referred(root, &graph) {
                known.remove(&function);
            }
        }
        let dynamic = known.iter().copied().filter(|f| gives(&functions[*f])).collect();
        Self { graph, names, callers, order, known, dynamic }
    }

    /// Whether all callers of a function are known.
    fn is_known(&self, function: usize) -> bool {
        self.known.contains(&function)
    }

    /// Whether indicators can pass the ownership of a function's results to its callers.
    fn has_dynamic_ownership(&self, function: usize) -> bool {
        self.dynamic.contains(&function)
    }
}

/// Functions used other than by a call in a function.
fn referred(root: Op, graph: &CallGraph) -> HashSet<usize> {
    let mut found = HashSet::new();
    root.walk(WalkOrder::Pre, |op| {
        let is_call = op.is(ops::func::CALL) && op.ancestor(ops::func::FUNC).is_some();
        if is_call || op.is(ops::func::FUNC) {
            return;
        }
        for (_, attr) in op.attrs() {
            attr.each_symbol(&mut |name| found.extend(graph.position(name)));
        }
    });
    found
}

/// Callees before callers, and the functions on cycles.
fn post_order(graph: &CallGraph) -> (Vec<usize>, HashSet<usize>) {
    let (mut order, mut looping) = (Vec::new(), HashSet::new());
    // 0: not visited; 1: on the path; 2: done.
    let mut state = vec![0_u8; graph.functions().len()];
    for root in 0..state.len() {
        if state[root] != 0 {
            continue;
        }
        let mut stack = vec![(root, 0)];
        state[root] = 1;
        while let Some((function, next)) = stack.last_mut() {
            let (function, at) = (*function, *next);
            let Some(&callee) = graph.callees(function).get(at) else {
                state[function] = 2;
                order.push(function);
                stack.pop();
                continue;
            };
            *next += 1;
            match state[callee] {
                0 => {
                    state[callee] = 1;
                    stack.push((callee, 0));
                }
                // All functions on the path from the callee to here are mutually recursive.
                1 => looping.extend(stack.iter().map(|(f, _)| *f).skip_while(|f| *f != callee)),
                _ => {}
            }
        }
    }
    (order, looping)
}
