//! Order and nesting: what happens before what, what runs several times, what never runs together.
//!
//! In structured code `a` happens before `b` iff `a` stands earlier, does not enclose `b`, and the innermost thing
//! around both is a block (not an operation with two regions).
//! With several blocks in a region: iff the block of `a` dominates that of `b`, taken in the innermost region around
//! both. Blocks on a cycle pass again and again, and then nothing is ordered ([`crate::cycles`]).

use crate::facts::Facts;
use crate::index::{BlockId, IndexVec, OperandId, RegionId};

/// Facts about each region that depend on the regions around it.
#[derive(Clone, Debug)]
pub(crate) struct Structure {
    /// How many regions are around the region.
    pub depth: IndexVec<RegionId, u32>,
    /// The innermost repetitive region around operations of the region (itself included).
    pub repetitive: IndexVec<RegionId, Option<RegionId>>,
    /// The innermost parallel region around operations of the region (itself included).
    pub parallel: IndexVec<RegionId, Option<RegionId>>,
}

impl Structure {
    pub fn new(facts: &Facts) -> Self {
        let count = facts.regions().len();
        let mut this = Self {
            depth: IndexVec::filled(0, count),
            repetitive: IndexVec::filled(None, count),
            parallel: IndexVec::filled(None, count),
        };
        this.enter(facts, RegionId::new(0));
        // Pre-order: the region around an operation is known before those of the operation.
        for &op in &facts.order {
            for &region in facts.regions_of(op) {
                this.enter(facts, region);
            }
        }
        this
    }

    /// Of two blocks of which one is around or dominates the other: that one.
    pub fn outer_block(&self, facts: &Facts, a: BlockId, b: BlockId) -> BlockId {
        let place = |block: BlockId| (self.depth[facts.blocks()[block].region], facts.places[block].number);
        if place(a) <= place(b) { a } else { b }
    }

    fn enter(&mut self, facts: &Facts, region: RegionId) {
        let outer = facts.enclosing_region(region);
        let info = facts.regions()[region].info;
        self.depth[region] = outer.map_or(0, |outer| self.depth[outer] + 1);
        self.repetitive[region] = if info.repetitive { Some(region) } else { outer.and_then(|r| self.repetitive[r]) };
        self.parallel[region] = if info.parallel { Some(region) } else { outer.and_then(|r| self.parallel[r]) };
    }
}

/// Whether operations of a region that stand before the read's operation are not before the read.
///
/// In graph regions nothing is ordered. But operations there run one after the other in the end, and a read must not
/// see what an earlier one stored: only the destinations of insertions without a result, which collect the slices of
/// one tensor together, do not mind each other. `all`: see [`crate::one_shot::Options::unordered_graph_regions`].
pub(crate) fn is_unordered_for(facts: &Facts, read: OperandId, region: RegionId, all: bool) -> bool {
    facts.regions()[region].info.graph && (all || facts.is_collected(read))
}

/// Whether neither of two regions of a region branch op is reachable from the other.
pub(crate) fn regions_are_exclusive(facts: &Facts, a: RegionId, b: RegionId) -> bool {
    !is_reachable(facts, a, b) && !is_reachable(facts, b, a)
}

fn is_reachable(facts: &Facts, from: RegionId, to: RegionId) -> bool {
    let mut seen = vec![from];
    let mut next = 0;
    while next < seen.len() {
        for &successor in facts.region_successors.of(seen[next]) {
            if successor == to {
                return true;
            }
            if !seen.contains(&successor) {
                seen.push(successor);
            }
        }
        next += 1;
    }
    false
}
