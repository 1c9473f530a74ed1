//! Branch and bound over the operands of a component that are copied.
//!
//! A node has operands that are copied, others that are kept in place, and open ones. If the open ones can all be in place, it is
//! a solution. Else it has a clause, of which one operand is copied in each branch, and those before it are kept.
//! What is copied only adds to what loops hand on; so the cost with the open ones in place, and the cheapest operand of each of
//! some clauses without a common one, is a bound.

use super::component::{Clause, Component, Number, State};
use crate::alias_sets::AliasSets;
use crate::cost::Cost;
use crate::equivalence;
use crate::index::{IndexVec, OperandId};
use crate::placement::Placement;

/// What a search came to.
pub(super) struct Outcome {
    /// Better placements were found.
    pub is_better: bool,
    /// There are no better ones than those now.
    pub is_least: bool,
    pub steps: u64,
}

/// Branches on the way to a solution: beyond that the search is not complete.
const MOST_DEPTH: u32 = 256;

/// Search a component, and put what costs less into the placements. `sets`: any, of all values.
pub(super) fn search(
    component: &mut Component<'_, '_>,
    placements: &mut IndexVec<OperandId, Placement>,
    sets: &mut AliasSets,
    most_steps: u64,
) -> Outcome {
    let before: Vec<Placement> = component.choices.iter().map(|choice| placements[choice.operand]).collect();
    for choice in &component.choices {
        placements[choice.operand] = Placement::InPlace;
    }
    let states = vec![State::Open; component.choices.len()];
    let (copied, least) = (Cost::default(), component.members.cost);
    let mut search =
        Search { component, placements, sets, states, copied, least, best: None, most_steps, is_cut: false };
    search.visit(0);
    let Search { best, component, placements, is_cut, .. } = search;
    for (number, choice) in component.choices.iter().enumerate() {
        placements[choice.operand] = match &best {
            Some(states) if states[number] == State::Copied => Placement::OutOfPlace,
            Some(_) => Placement::InPlace,
            None => before[number],
        };
    }
    Outcome { is_better: best.is_some(), is_least: !is_cut, steps: component.steps }
}

struct Search<'s, 'a, 'f> {
    component: &'s mut Component<'a, 'f>,
    placements: &'s mut IndexVec<OperandId, Placement>,
    /// For the equivalences of the component's values.
    sets: &'s mut AliasSets,
    states: Vec<State>,
    /// What the copied operands cost.
    copied: Cost,
    least: Cost,
    best: Option<Vec<State>>,
    most_steps: u64,
    /// Some branches were not visited.
    is_cut: bool,
}

impl Search<'_, '_, '_> {
    fn visit(&mut self, depth: u32) {
        if self.component.steps > self.most_steps || depth > MOST_DEPTH {
            self.is_cut = true;
            return;
        }
        let cost = self.copied.plus(self.handed_on());
        if cost >= self.least {
            return;
        }
        let Some(clauses) = self.component.clauses(&self.states) else { return };
        let Some(clause) = clauses.iter().min_by_key(|clause| clause.len()) else {
            self.least = cost;
            self.best = Some(self.states.clone());
            return;
        };
        if cost.plus(self.at_least(&clauses)) >= self.least {
            return;
        }
        for &choice in clause {
            let before = self.copied;
            self.set(choice, State::Copied, Placement::OutOfPlace);
            self.copied = before.plus(self.component.choices[choice as usize].cost);
            self.visit(depth + 1);
            self.copied = before;
            self.set(choice, State::Kept, Placement::InPlace);
        }
        for &choice in clause {
            self.set(choice, State::Open, Placement::InPlace);
        }
    }

    fn set(&mut self, choice: Number, state: State, placement: Placement) {
        self.states[choice as usize] = state;
        self.placements[self.component.choices[choice as usize].operand] = placement;
    }

    /// The least that clauses without a common operand cost.
    fn at_least(&self, clauses: &[Clause]) -> Cost {
        let mut is_taken = vec![false; self.states.len()];
        let mut sum = Cost::default();
        for clause in clauses {
            if clause.iter().all(|choice| !is_taken[*choice as usize]) {
                sum = sum.plus(self.component.choices[clause[0] as usize].cost);
                clause.iter().for_each(|choice| is_taken[*choice as usize] = true);
            }
        }
        sum
    }

    /// What loops copy because they hand on another buffer.
    fn handed_on(&mut self) -> Cost {
        let members = self.component.members;
        if members.carried.is_empty() {
            return Cost::default();
        }
        let facts = self.component.facts;
        self.component.steps += (members.values.len() + members.results.len()) as u64;
        self.sets.reset(&members.values);
        for &result in &members.results {
            equivalence::join_result(facts, self.placements, self.sets, result);
        }
        let mut sum = Cost::default();
        for carried in &members.carried {
            let used = self.sets.find(facts.operands()[carried.operand].value);
            if carried.argument.is_none_or(|argument| self.sets.find(argument) != used) {
                sum = sum.plus(carried.cost);
            }
        }
        sum
    }
}
