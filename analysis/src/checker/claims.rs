//! Equivalence claims of decisions: values of one class are the same buffer wherever both are in scope.

use std::collections::HashMap;

use crate::facts::{Facts, ValueDef};
use crate::index::ValueId;

/// The values bound in the running regions, by class.
#[derive(Debug, Default)]
pub(super) struct Claims {
    members: HashMap<ValueId, Vec<ValueId>>,
    bound: Vec<(ValueId, ValueId)>,
}

impl Claims {
    /// Number of bound values, to which [`Claims::leave`] returns.
    pub const fn depth(&self) -> usize {
        self.bound.len()
    }

    /// Binds a value of a class; returns the others that it must share its buffer with.
    pub fn bind(&mut self, facts: &Facts, class: ValueId, value: ValueId) -> Vec<ValueId> {
        let members = self.members.entry(class).or_default();
        let others = members.iter().copied().filter(|&other| sees(facts, value, other)).collect();
        if !members.contains(&value) {
            members.push(value);
            self.bound.push((class, value));
        }
        others
    }

    /// A region was left.
    pub fn leave(&mut self, depth: usize) {
        for (class, value) in self.bound.split_off(depth) {
            if let Some(members) = self.members.get_mut(&class) {
                members.retain(|other| *other != value);
            }
        }
    }
}

/// Whether one value was bound on the path to the other one, and not in an earlier pass of the same blocks.
fn sees(facts: &Facts, value: ValueId, other: ValueId) -> bool {
    let from = facts.defining_block(other);
    let (mut block, mut at) = (facts.defining_block(value), (place(facts, value), value.number()));
    while facts.blocks()[block].region != facts.blocks()[from].region {
        let Some(op) = facts.regions()[facts.blocks()[block].region].op else { return false };
        (block, at) = (facts.ops()[op].block, (2 * facts.span(op).first + 1, 0));
    }
    match from == block {
        true => (place(facts, other), other.number()) < at,
        false => facts.dominates(from, block),
    }
}

/// The position at which a value is bound: the arguments of a block before its operations.
fn place(facts: &Facts, value: ValueId) -> u32 {
    match facts.values()[value].def {
        ValueDef::Argument(block) => 2 * facts.places[block].start,
        ValueDef::Result(op) => 2 * facts.span(op).first + 1,
    }
}
