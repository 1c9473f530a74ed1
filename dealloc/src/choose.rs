//! Which functions of a module the static engine takes, and in which order the others are decided.
//!
//! `frees` takes functions of structured control flow whose owners are all known, and copies nothing in them.
//! All others are the business of `lifetimes`; so are the callers of a private function that tells who owns its results.
//! Callees are decided before callers; functions that call each other expect of each other what everybody does.

use std::collections::{HashMap, HashSet};

use monopour_ir::{Diagnostics, Op, WalkOrder};

use crate::lifetimes::{Summaries, View};
use crate::models::OwnershipModels;
use crate::{Options, Stats, frees, lifetimes};

/// The decisions on one function, by one engine or the other.
enum Decided {
    Static(Box<frees::Decided>),
    General(Box<lifetimes::Decided>),
}

/// Decides on all functions, then changes them.
///
/// # Errors
/// What the engines refuse.
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
        if calls.tells(function) {
            for caller in &calls.callers[function] {
                if accepted[*caller].take().is_some() {
                    work.push(*caller);
                }
            }
        }
    }
    let mut summaries = Summaries::new();
    let mut decided = Vec::new();
    for function in &calls.order {
        if let Some(found) = accepted[*function].take() {
            decided.push(Decided::Static(Box::new(found)));
            continue;
        }
        let view = View { models, tells: calls.tells(*function), allows_unknown: options.allow_unknown_effects };
        let found = lifetimes::decide(functions[*function], &summaries, view)?;
        if let Some(summary) = found.summary() {
            summaries.insert(calls.names[*function].clone(), summary.clone());
        }
        decided.push(Decided::General(Box::new(found)));
    }
    for decided in decided {
        match decided {
            Decided::Static(found) => frees::insert(*found, stats)?,
            Decided::General(found) => lifetimes::insert(*found, stats)?,
        }
    }
    Ok(())
}

/// Who calls whom.
struct Calls {
    names: Vec<String>,
    callers: Vec<Vec<usize>>,
    /// Callees before callers, as far as there is such an order.
    order: Vec<usize>,
    /// Functions that nobody but known callers calls, and that do not call themselves, through others or not.
    told: HashSet<usize>,
}

impl Calls {
    fn of(root: Op, functions: &[Op]) -> Self {
        let names: Vec<String> = functions.iter().map(|f| f.symbol_name().unwrap_or_default()).collect();
        let numbers: HashMap<&str, usize> = names.iter().enumerate().map(|(i, n)| (n.as_str(), i)).collect();
        let mut callees = vec![Vec::new(); functions.len()];
        let mut callers = vec![Vec::new(); functions.len()];
        for (caller, function) in functions.iter().enumerate() {
            for call in function.find_all("func.call") {
                let callee = call.attr("callee").and_then(|a| numbers.get(a.as_symbol()?).copied());
                callees[caller].extend(callee);
                callee.iter().for_each(|callee| callers[*callee].push(caller));
            }
        }
        let (order, looping) = post_order(&callees);
        let gives = |f: &Op| f.function_type().is_some_and(|(_, results)| results.iter().any(|r| r.is_memref()));
        let is_told = |f: &usize| !functions[*f].is_public() && gives(&functions[*f]) && !looping.contains(f);
        // A function that is run on alone may have callers that nobody sees.
        let mut told: HashSet<usize> = (0..functions.len()).filter(is_told).collect();
        if root.is("func.func") {
            told.clear();
        }
        if !told.is_empty() {
            for function in referred(root, &numbers) {
                told.remove(&function);
            }
        }
        drop(numbers);
        Self { names, callers, order, told }
    }

    /// Whether a function's callers can be told who owns its results.
    fn tells(&self, function: usize) -> bool {
        self.told.contains(&function)
    }
}

/// Functions that are named by something else than a call in a function.
fn referred(root: Op, numbers: &HashMap<&str, usize>) -> HashSet<usize> {
    let mut found = HashSet::new();
    root.walk(WalkOrder::Pre, |op| {
        let is_call = op.is("func.call") && op.ancestor("func.func").is_some();
        if is_call || op.is("func.func") {
            return;
        }
        for (_, attr) in op.attrs() {
            let parts = attr.as_array().unwrap_or_else(|| vec![attr]);
            found.extend(parts.iter().filter_map(|a| numbers.get(a.as_symbol()?).copied()));
        }
    });
    found
}

/// Callees before callers, and what lies on a cycle.
fn post_order(callees: &[Vec<usize>]) -> (Vec<usize>, HashSet<usize>) {
    let (mut order, mut looping) = (Vec::new(), HashSet::new());
    // 0: not met; 1: on the way; 2: done.
    let mut state = vec![0_u8; callees.len()];
    for root in 0..callees.len() {
        if state[root] != 0 {
            continue;
        }
        let mut stack = vec![(root, 0)];
        state[root] = 1;
        while let Some((function, next)) = stack.last_mut() {
            let (function, at) = (*function, *next);
            let Some(&callee) = callees[function].get(at) else {
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
                // All on the way from the callee to here call each other.
                1 => looping.extend(stack.iter().map(|(f, _)| *f).skip_while(|f| *f != callee)),
                _ => {}
            }
        }
    }
    (order, looping)
}
