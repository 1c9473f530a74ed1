//! What decisions copy, as an order among them.
//!
//! Bytes of contents times the iterations of the loops around, then the number of copies. A loop that hands on another
//! buffer than that of its iteration argument counts as a copy of it in each iteration.
//! Sizes that are not known count as [`UNKNOWN_BYTES`], trips as [`UNKNOWN_TRIPS`].

use crate::decisions::{Decisions, InPlaceAnalysis};
use crate::facts::{Facts, ValueDef};
use crate::index::{IndexVec, OperandId, RegionId, ValueId};

/// Bytes of a tensor of dynamic size: a vector of a model, rather than a scalar or an image.
pub const UNKNOWN_BYTES: u64 = 1024;

/// Iterations of a loop whose bounds are not known.
pub const UNKNOWN_TRIPS: u64 = 16;

/// Bytes and copies; less is better, bytes first.
pub type Cost = (u64, u64);

/// What the decisions copy.
pub fn cost(facts: &Facts, decisions: &Decisions) -> Cost {
    let trips = trips(facts);
    let bytes = |value: ValueId, region: RegionId| size(facts, value).saturating_mul(trips[region]);
    let add = |(sum, count): Cost, bytes: u64| (sum.saturating_add(bytes), count + 1);
    let copied = facts.operands().ids().filter(|id| decisions.copy(*id).is_some_and(|copy| copy.contents));
    let copied = copied.map(|id| bytes(facts.operands()[id].value, facts.region_of(facts.operands()[id].op)));
    let carried = facts.values().iter_enumerated().filter_map(|(argument, value)| {
        let ValueDef::Argument(block) = value.def else { return None };
        let region = facts.blocks()[block].region;
        let is_other = |id: &OperandId| {
            let used = facts.operands()[*id];
            facts.region_of(used.op) == region && !decisions.are_equivalent(argument, used.value)
        };
        let is_loop = facts.regions()[region].info.repetitive;
        (is_loop && facts.flows(argument).iter().any(is_other)).then(|| bytes(argument, region))
    });
    copied.chain(carried).fold((0, 0), add)
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
