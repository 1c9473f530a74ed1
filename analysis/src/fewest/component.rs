//! A component as tables of small numbers: its values, the operands to decide, and what conflicts.

use std::collections::{HashMap, VecDeque};

use crate::classes::Classes;
use crate::cost::{Carried, Cost, Costs};
use crate::facts::Facts;
use crate::index::{OperandId, ValueId};

/// Pairs of reads and writes of a component that is searched: the table of their conflicts has a byte for each.
pub(super) const MOST_PAIRS: usize = 1 << 16;

/// What belongs to a component.
#[derive(Clone, Debug, Default)]
pub(super) struct Members {
    /// Its values, in order.
    pub values: Vec<ValueId>,
    /// Values that share memory whatever is decided.
    pub shared: Vec<(ValueId, ValueId)>,
    /// What its loops hand on.
    pub carried: Vec<Carried>,
    /// Its results, those of nested operations first, if loops hand on something.
    pub results: Vec<ValueId>,
    /// What it costs now.
    pub cost: Cost,
}

/// The number of a value or an operand to decide.
pub(super) type Number = u32;

/// An operand to decide.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pub operand: OperandId,
    /// What its copy costs.
    pub cost: Cost,
}

/// A use that stores.
#[derive(Clone, Copy, Debug)]
struct Write {
    operand: OperandId,
    value: Number,
    /// `None`: it must be in place.
    choice: Option<Number>,
    /// Parallel iterations must not share what it stores to, if something reads that.
    is_shared: bool,
    /// Something inside of the operation reads it, as far as is known.
    is_read_inside: bool,
}

/// What is decided of an operand so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Open; in place for now.
    Open,
    /// In place.
    Kept,
    /// Copied.
    Copied,
}

/// How a walk reached a value: the step before, and the open operands on the way.
#[derive(Clone, Copy, Debug, Default)]
struct Reached {
    walk: u64,
    distance: u32,
    before: Number,
    choice: Option<Number>,
}

/// Operands of which one at least must be copied; cheapest first.
pub(super) type Clause = Vec<Number>;

/// A component.
pub(super) struct Component<'a, 'f> {
    pub facts: &'f Facts,
    classes: &'a Classes<'f>,
    pub members: &'a Members,
    pub choices: Vec<Choice>,
    /// For each value, those that it shares memory with if the choice is in place (`None`: always).
    next: Vec<Vec<(Number, Option<Number>)>>,
    /// For each value, its reads: numbers of the table's columns.
    reads: Vec<Vec<Number>>,
    read_operands: Vec<OperandId>,
    writes: Vec<Write>,
    is_frozen: Vec<bool>,
    /// Whether a write conflicts with a read, once it was asked.
    conflicts: Vec<Option<bool>>,
    /// Steps taken.
    pub steps: u64,
    /// How each value was reached.
    reached: Vec<Reached>,
    walk: u64,
}

impl<'a, 'f> Component<'a, 'f> {
    /// `None`: it is too large.
    pub fn new(classes: &'a Classes<'f>, costs: &Costs<'f>, members: &'a Members) -> Option<Self> {
        let facts = classes.facts();
        let uses = || members.values.iter().flat_map(|value| facts.uses(*value).iter().copied());
        let count = |is: &dyn Fn(OperandId) -> bool| uses().filter(|id| is(*id)).count();
        let reads = count(&|id| facts.operands()[id].counts_as_read);
        let writes = count(&|id| facts.operands()[id].writes);
        let pairs = reads.checked_mul(writes).filter(|pairs| *pairs <= MOST_PAIRS)?;
        let count = members.values.len();
        let mut this = Self {
            facts,
            classes,
            members,
            choices: vec![],
            next: vec![vec![]; count],
            reads: vec![vec![]; count],
            read_operands: vec![],
            writes: vec![],
            is_frozen: members.values.iter().map(|v| !facts.values()[*v].info.buffer.writable).collect(),
            conflicts: vec![None; pairs],
            steps: count as u64 + pairs as u64 / 64,
            reached: vec![Reached::default(); count],
            walk: 0,
        };
        let numbers: HashMap<ValueId, Number> = members.values.iter().copied().zip(0..).collect();
        for (&value, number) in members.values.iter().zip(0..) {
            for &operand in facts.uses(value) {
                this.add(costs, operand, number, &numbers);
            }
        }
        for (a, b) in &members.shared {
            this.connect(numbers[a], numbers[b], None);
        }
        Some(this)
    }

    fn add(&mut self, costs: &Costs<'_>, operand: OperandId, value: Number, numbers: &HashMap<ValueId, Number>) {
        let (used, aliases) = (self.facts.operands()[operand], self.facts.aliasing_values(operand));
        if used.counts_as_read {
            self.reads[value as usize].push(number(self.read_operands.len()));
            self.read_operands.push(operand);
        }
        if !used.writes && aliases.is_empty() {
            return;
        }
        // A tensor of unknown rank cannot be copied.
        let is_open = !used.must_in_place && self.facts.values()[used.value].info.ranked;
        let choice = is_open.then(|| {
            self.choices.push(Choice { operand, cost: costs.of_copy(operand, self.classes.copy_for(operand)) });
            number(self.choices.len() - 1)
        });
        for alias in aliases {
            self.connect(value, numbers[&alias.value], choice);
        }
        if used.writes {
            let is_shared = self.classes.must_not_share(operand);
            let is_read_inside = self.facts.has_body(used.op);
            self.writes.push(Write { operand, value, choice, is_shared, is_read_inside });
        }
    }

    fn connect(&mut self, a: Number, b: Number, choice: Option<Number>) {
        self.next[a as usize].push((b, choice));
        self.next[b as usize].push((a, choice));
    }

    /// A clause of each write in place that conflicts with something, of the fewest open operands.
    ///
    /// `None`: some conflict has no open operand.
    pub fn clauses(&mut self, states: &[State]) -> Option<Vec<Clause>> {
        let mut found = vec![];
        for number in 0..self.writes.len() {
            if self.writes[number].choice.is_some_and(|choice| states[choice as usize] == State::Copied) {
                continue;
            }
            let Some(clause) = self.clause(number, states) else { continue };
            if clause.is_empty() {
                return None;
            }
            found.push(clause);
        }
        Some(found)
    }

    /// A clause of a write: the nearest conflict in a walk over operands in place, where an open one is a step.
    fn clause(&mut self, number: usize, states: &[State]) -> Option<Clause> {
        let write = self.writes[number];
        if write.is_shared && write.is_read_inside {
            return Some(self.cut(&write, write.value, states));
        }
        self.walk += 1;
        self.reached[write.value as usize] =
            Reached { walk: self.walk, distance: 0, before: write.value, choice: None };
        // Values at the distance of the walk in front, those one further behind them.
        let mut queue = VecDeque::from([(write.value, 0)]);
        while let Some((value, distance)) = queue.pop_front() {
            if self.reached[value as usize].distance < distance {
                continue;
            }
            self.steps += 1;
            if self.is_frozen[value as usize] || self.is_seen(number, value) {
                return Some(self.cut(&write, value, states));
            }
            for index in 0..self.next[value as usize].len() {
                let (other, choice) = self.next[value as usize][index];
                self.steps += 1;
                let state = choice.map_or(State::Kept, |choice| states[choice as usize]);
                if state == State::Copied {
                    continue;
                }
                let there = distance + u32::from(state == State::Open);
                let known = &mut self.reached[other as usize];
                if known.walk != self.walk || there < known.distance {
                    *known = Reached { walk: self.walk, distance: there, before: value, choice };
                    if there == distance { queue.push_front((other, there)) } else { queue.push_back((other, there)) }
                }
            }
        }
        None
    }

    /// Whether a read of the value may see what the write stores.
    fn is_seen(&mut self, write: usize, value: Number) -> bool {
        for index in 0..self.reads[value as usize].len() {
            let read = self.reads[value as usize][index];
            self.steps += 1;
            if self.writes[write].is_shared || self.is_conflict(write, read) {
                return true;
            }
        }
        false
    }

    fn is_conflict(&mut self, write: usize, read: Number) -> bool {
        let at = write * self.read_operands.len() + read as usize;
        *self.conflicts[at].get_or_insert_with(|| {
            self.classes.is_conflict(self.read_operands[read as usize], self.writes[write].operand, &mut self.steps)
        })
    }

    /// The open operands on the way from a write to a value, and its own.
    fn cut(&self, write: &Write, value: Number, states: &[State]) -> Clause {
        let mut clause: Clause = write.choice.into_iter().collect();
        let mut current = value;
        while current != write.value {
            let Reached { before, choice, .. } = self.reached[current as usize];
            clause.extend(choice);
            current = before;
        }
        clause.retain(|choice| states[*choice as usize] == State::Open);
        clause.sort_by_key(|choice| (self.choices[*choice as usize].cost, *choice));
        clause.dedup();
        clause
    }
}

fn number(index: usize) -> Number {
    Number::try_from(index).unwrap_or(Number::MAX)
}
