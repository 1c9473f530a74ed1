//! The fewest copies: a search in each component of a function, from decisions that copy something.
//!
//! ```text
//! %1 = fill %a, %2 = generic %a -> %a', read %1, read %a      one component: what may be the buffer of %a
//! %3 = insert %s into %b, read %b                            another one, decided apart
//! ```
//!
//! Whether a read and a write conflict is fixed before anything is decided ([`crate::classes`]). So a set of operands in place
//! is valid if no chain of them leads from a write in place to a read that conflicts with it, or to a value that is not writable.
//! Of each such chain, and its write, one operand at least is copied: a *clause*. The cheapest set that meets all clauses is
//! found by branch and bound ([`search`]).
//!
//! Operands can influence each other, and what loops copy, only within a component: values that alias if everything is in place,
//! or flow to each other. A search takes at most [`COMPONENT_STEPS`] and all of a function [`STEPS`] and
//! [`STEPS_PER_OPERAND`] for each operand, so that the same facts give the same decisions.
//!
//! Limits: components with more than [`component::MOST_PAIRS`] pairs of reads and writes are left as they are.

mod component;
mod search;

use self::component::{Component, Members};
use self::search::search;
use crate::alias_sets::AliasSets;
use crate::classes::Classes;
use crate::cost::{Cost, Costs};
use crate::decisions::{Decisions, InPlaceAnalysis, common_aliases};
use crate::facts::{Facts, Relation};
use crate::index::{IndexVec, OperandId, ValueId};
use crate::order::dominance_post_order;
use crate::placement::Placement;

/// Steps of the search in one component: some thousand nodes of a component with a dozen operands.
const COMPONENT_STEPS: u64 = 400_000;

/// Steps in one function.
const STEPS: u64 = 1_000_000;

/// More steps of a function, for each of its operands.
const STEPS_PER_OPERAND: u64 = 32;

/// What was found.
pub(crate) struct Found {
    /// Valid placements that cost no more than those given.
    pub placements: IndexVec<OperandId, Placement>,
    /// They cost less.
    pub is_better: bool,
    /// No valid placements cost less.
    pub is_least: bool,
    /// Steps taken.
    pub steps: u64,
}

/// Placements of the fewest copies, from decisions of a function.
pub(crate) fn fewest_copies<'f>(facts: &'f Facts, classes: &Classes<'f>, decisions: &Decisions) -> Found {
    let placements = decisions.placements().clone();
    let mut found = Found { placements, is_better: false, is_least: true, steps: 0 };
    let costs = Costs::new(facts);
    let mut components = components(facts, &costs, decisions);
    components.sort_by_key(|members| std::cmp::Reverse(members.cost));
    let mut sets = AliasSets::new(facts.values().len());
    let mut left = STEPS + STEPS_PER_OPERAND * facts.operands().len() as u64;
    for members in components {
        let Some(mut component) = Component::new(classes, &costs, &members) else {
            found.is_least = false;
            continue;
        };
        let outcome = search(&mut component, &mut found.placements, &mut sets, left.min(COMPONENT_STEPS));
        found.is_better |= outcome.is_better;
        found.is_least &= outcome.is_least;
        found.steps += outcome.steps;
        left -= outcome.steps.min(left);
    }
    found
}

/// The components in which something is copied that need not be.
fn components(facts: &Facts, costs: &Costs<'_>, decisions: &Decisions) -> Vec<Members> {
    let mut sets = joined(facts);
    let carried = costs.carried();
    // By class: what is copied, and whether some of it may not be needed.
    let mut spent: IndexVec<ValueId, (Cost, bool)> = IndexVec::filled((Cost::default(), false), facts.values().len());
    let mut spend = |sets: &mut AliasSets, value: ValueId, cost: Cost, is_needed: bool| {
        let (sum, is_open) = &mut spent[sets.find(value)];
        *sum = sum.plus(cost);
        *is_open |= !is_needed;
    };
    for (operand, used) in facts.operands().iter_enumerated() {
        if let Some(copy) = decisions.copy(operand) {
            let writes_constant = used.writes && !facts.values()[used.value].info.buffer.writable;
            spend(&mut sets, used.value, costs.of_copy(operand, copy), writes_constant);
        }
    }
    for given in &carried {
        let used = facts.operands()[given.operand].value;
        if given.argument.is_none_or(|argument| !decisions.are_equivalent(argument, used)) {
            spend(&mut sets, used, given.cost, false);
        }
    }
    let mut numbers: IndexVec<ValueId, Option<usize>> = IndexVec::filled(None, facts.values().len());
    let mut all: Vec<Members> = Vec::new();
    for value in facts.values().ids() {
        let class = sets.find(value);
        let (cost, true) = spent[class] else { continue };
        let number = *numbers[class].get_or_insert_with(|| {
            all.push(Members { cost, ..Members::default() });
            all.len() - 1
        });
        all[number].values.push(value);
    }
    for given in carried {
        let class = sets.find(facts.operands()[given.operand].value);
        if let Some(number) = numbers[class] {
            all[number].carried.push(given);
        }
    }
    if all.iter().any(|members| !members.carried.is_empty()) {
        for result in dominance_post_order(facts).into_iter().flat_map(|op| facts.results_of(op)) {
            if let Some(number) = numbers[sets.find(*result)] {
                all[number].results.push(*result);
            }
        }
    }
    for (a, b) in common_aliases(facts) {
        if let Some(number) = numbers[sets.find(a)] {
            all[number].shared.push((a, b));
        }
    }
    all
}

/// Values of one component in one set.
fn joined(facts: &Facts) -> AliasSets {
    let mut sets = AliasSets::new(facts.values().len());
    for (operand, used) in facts.operands().iter_enumerated() {
        for alias in facts.aliasing_values(operand) {
            sets.union(used.value, alias.value);
            if let Relation::EquivalentIf { first, second } = alias.relation {
                for (a, b) in [Some(first), second].into_iter().flatten() {
                    sets.union(alias.value, a);
                    sets.union(a, b);
                }
            }
        }
    }
    for value in facts.values().ids() {
        for &operand in facts.flows(value) {
            sets.union(value, facts.operands()[operand].value);
        }
    }
    for &(a, b) in facts.shared_values() {
        sets.union(a, b);
    }
    sets
}
