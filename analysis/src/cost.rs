//! What decisions copy, as an order among them.
//!
//! Bytes of contents times the iterations of the loops around; then the bytes of the buffers that copies take, which bound what
//! they add to the peak; then the allocations. A loop that hands on another buffer than that of its iteration argument copies it
//! in each iteration.
//! Sizes that are not known count as [`UNKNOWN_BYTES`], trips as [`UNKNOWN_TRIPS`].

use crate::decisions::{Decisions, InPlaceAnalysis};
use crate::facts::Facts;
use crate::index::{IndexVec, OperandId, RegionId, ValueId};
use crate::placement::Copy;
use std::collections::HashSet;

/// Bytes of a tensor of dynamic size: a vector of a model, rather than a scalar or an image.
pub const UNKNOWN_BYTES: u64 = 1024;

/// Iterations of a loop whose bounds are not known.
pub const UNKNOWN_TRIPS: u64 = 16;

/// What is copied; less is better, the first field first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// Bytes that are copied, in all iterations.
    pub bytes: u64,
    /// Bytes of the buffers that copies take, each once.
    pub buffers: u64,
    /// Allocations, in all iterations.
    pub allocations: u64,
}

impl Cost {
    /// Both.
    pub const fn plus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            buffers: self.buffers.saturating_add(other.buffers),
            allocations: self.allocations.saturating_add(other.allocations),
        }
    }
}

/// What the decisions copy.
pub fn cost(facts: &Facts, decisions: &Decisions) -> Cost {
    let costs = Costs::new(facts);
    let copies = facts.operands().ids().filter_map(|id| decisions.copy(id).map(|copy| costs.of_copy(id, copy)));
    let is_copied = |carried: &Carried| {
        let used = facts.operands()[carried.operand].value;
        carried.argument.is_none_or(|argument| !decisions.are_equivalent(argument, used))
    };
    let carried = costs.carried().into_iter().filter(is_copied).map(|carried| carried.cost);
    copies.chain(carried).fold(Cost::default(), Cost::plus)
}

/// What it costs to copy the operands' contents, whatever was decided.
pub fn cost_of_contents(facts: &Facts, operands: &[OperandId]) -> Cost {
    let costs = Costs::new(facts);
    operands.iter().map(|id| costs.of_contents(*id)).fold(Cost::default(), Cost::plus)
}

/// What it costs to give out several results in one buffer: all but the first are copied, for a caller owns each of them.
pub fn cost_of_results(facts: &Facts, decisions: &Decisions) -> Cost {
    let (costs, mut given) = (Costs::new(facts), HashSet::new());
    let is_given = |id: &&OperandId| !given.insert(decisions.alias_class(facts.operands()[**id].value));
    results(facts).iter().filter(is_given).map(|id| costs.of_contents(*id)).fold(Cost::default(), Cost::plus)
}

/// The operands that the function itself gives out; none of a function of several blocks.
fn results(facts: &Facts) -> &[OperandId] {
    let mut own = facts.blocks().iter_enumerated().filter(|(_, block)| facts.regions()[block.region].op.is_none());
    let (Some((block, _)), None) = (own.next(), own.next()) else { return &[] };
    let end = facts.ops_of(block).last().filter(|end| facts.ops()[**end].gives_out);
    end.map_or(&[], |end| facts.operands_of(*end))
}

/// A terminator's operand that a loop hands on: it is copied unless it is the iteration argument's buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carried {
    pub operand: OperandId,
    /// The argument of the terminator's own block that it takes the place of.
    pub argument: Option<ValueId>,
    /// What it costs if it is copied.
    pub cost: Cost,
}

/// Prices of copies.
pub(crate) struct Costs<'a> {
    facts: &'a Facts,
    trips: IndexVec<RegionId, u64>,
}

impl<'a> Costs<'a> {
    pub fn new(facts: &'a Facts) -> Self {
        Self { facts, trips: trips(facts) }
    }

    /// What it costs to copy an operand, or a slice of it.
    pub fn of_copy(&self, operand: OperandId, copy: Copy) -> Cost {
        let used = self.facts.operands()[operand];
        self.of(copy.result.unwrap_or(used.value), self.facts.region_of(used.op), copy.contents)
    }

    /// What it costs to copy all of an operand.
    fn of_contents(&self, operand: OperandId) -> Cost {
        let used = self.facts.operands()[operand];
        self.of(used.value, self.facts.region_of(used.op), true)
    }

    /// A copy of a value in a region.
    fn of(&self, value: ValueId, region: RegionId, contents: bool) -> Cost {
        let (size, trips) = (size(self.facts, value), self.trips[region]);
        let bytes = if contents { size.saturating_mul(trips) } else { 0 };
        Cost { bytes, buffers: size, allocations: trips }
    }

    /// What loops hand on.
    pub fn carried(&self) -> Vec<Carried> {
        let facts = self.facts;
        if facts.regions().iter().all(|region| !region.info.repetitive) {
            return vec![];
        }
        let mut is_handed_on = IndexVec::filled(false, facts.operands().len());
        for operand in facts.values().ids().flat_map(|value| facts.flows(value)) {
            is_handed_on[*operand] = true;
        }
        let blocks =
            facts.blocks().iter_enumerated().filter(|(_, block)| facts.regions()[block.region].info.repetitive);
        let mut found = vec![];
        for (block, info) in blocks {
            let Some(&end) = facts.ops_of(block).last() else { continue };
            for (number, &operand) in facts.operands_of(end).iter().enumerate().filter(|(_, id)| is_handed_on[**id]) {
                let cost = self.of(facts.operands()[operand].value, info.region, true);
                found.push(Carried { operand, argument: facts.arguments_of(block).get(number).copied(), cost });
            }
        }
        found
    }
}

/// Bytes of a value.
pub(crate) fn size(facts: &Facts, value: ValueId) -> u64 {
    facts.values()[value].info.size_bytes.unwrap_or(UNKNOWN_BYTES)
}

/// How often each region runs. A region comes behind the one around it.
pub(crate) fn trips(facts: &Facts) -> IndexVec<RegionId, u64> {
    let mut trips: IndexVec<RegionId, u64> = IndexVec::new();
    for region in facts.regions().ids() {
        let info = facts.regions()[region].info;
        let own = if info.repetitive { info.trip_count.unwrap_or(UNKNOWN_TRIPS).max(1) } else { 1 };
        let around = facts.enclosing_region(region).filter(|around| *around < region).map_or(1, |around| trips[around]);
        trips.push(own.saturating_mul(around));
    }
    trips
}
