//! Order and nesting: which operations are ordered, which repeat, and which exclude each other.
//!
//! In structured code `a` happens before `b` iff `a` comes earlier, does not enclose `b`, and the innermost common
//! ancestor is a block (not an operation with two regions).
//! With several blocks in a region: iff the block of `a` dominates that of `b`, taken in the innermost common region.
//! Blocks on a cycle repeat, and then there is no order ([`crate::cycles`]).

use crate::facts::Facts;
use crate::index::{BlockId, IndexVec, OpId, OperandId, RegionId};

/// Facts about each region that depend on the regions around it.
#[derive(Clone, Debug)]
pub(crate) struct Structure {
    /// Number of enclosing regions.
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
        // Pre-order: an operation's own region is known before the regions that it holds.
        for &op in &facts.order {
            for &region in facts.regions_of(op) {
                this.enter(facts, region);
            }
        }
        this
    }

    /// Of two blocks the one that encloses or dominates the other.
    pub fn outer_block(&self, facts: &Facts, a: BlockId, b: BlockId) -> BlockId {
        let place = |block: BlockId| (self.depth[facts.blocks()[block].region], facts.places[block].number);
        if place(a) <= place(b) { a } else { b }
    }

    /// The outermost repetitive region around an operation within `outer`, which repeats it for one run of `outer`.
    pub fn repeated(&self, facts: &Facts, op: OpId, outer: Option<RegionId>) -> Option<RegionId> {
        let mut region = self.repetitive[facts.region_of(op)].filter(|region| Some(*region) != outer)?;
        while let Some(next) = facts.enclosing_region(region).and_then(|around| self.repetitive[around]) {
            if Some(next) == outer {
                break;
            }
            region = next;
        }
        Some(region)
    }

    fn enter(&mut self, facts: &Facts, region: RegionId) {
        let outer = facts.enclosing_region(region);
        let info = facts.regions()[region].info;
        self.depth[region] = outer.map_or(0, |outer| self.depth[outer] + 1);
        self.repetitive[region] = if info.repetitive { Some(region) } else { outer.and_then(|r| self.repetitive[r]) };
        self.parallel[region] = if info.parallel { Some(region) } else { outer.and_then(|r| self.parallel[r]) };
    }
}

/// Whether the inner region is the outer one, or nested in it.
pub(crate) fn is_within(facts: &Facts, inner: RegionId, outer: RegionId) -> bool {
    let mut regions = std::iter::successors(Some(inner), |region| facts.enclosing_region(*region));
    regions.any(|region| region == outer)
}

/// Whether operations of a region that precede the read's operation are unordered with the read.
///
/// In graph regions operations are unordered. But they are executed one after the other, and a read must not
/// see the store of an earlier one: only destinations of insertions without a result, which collect the slices of
/// one tensor, do not conflict. `all`: see [`crate::one_shot::Options::unordered_graph_regions`].
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
