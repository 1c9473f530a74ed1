//! Blocks that neither dominate a block nor are dominated by it: the other branches.
//!
//! ```text
//! ^a --> ^b --> ^d      beside ^b: ^c. Beside ^d: ^b and ^c.
//!   \--> ^c -->/
//! ```
//!
//! No path leads from a definition in a block to a write beside it and on to a read, without the definition again: the
//! block dominates the read. The reference still reports such a write as a conflict with a definition by an operation;
//! so this does too, for [`MOST`] steps up the dominator tree.
//! (Further up it does not: that costs time and adds needless copies.)
//! Likewise if the definition is an argument of a block of an enclosing region: the reference excludes other blocks only
//! in the region of the argument's own block.

use crate::cycles::BlockCycles;
use crate::facts::{Facts, Span};
use crate::index::{BlockId, IndexVec, OpId, RegionId};

/// How many dominators of a block are visited: more branches in sequence are rare, and each costs an interval per read.
const MOST: usize = 32;

/// For each block, the positions of the blocks beside it.
#[derive(Clone, Debug)]
pub(crate) struct Beside {
    /// The nearest dominator (or the block itself) that has other blocks beside it below its own dominator.
    next: IndexVec<BlockId, Option<BlockId>>,
    /// The predecessors of the block are its dominator and blocks that it dominates.
    is_branch: IndexVec<BlockId, bool>,
    /// The region has no cycle of blocks, so that positions increase in time.
    in_time_order: IndexVec<RegionId, bool>,
}

impl Beside {
    pub fn new(facts: &Facts, cycles: &BlockCycles<'_>) -> Self {
        let count = facts.blocks().len();
        let mut this = Self {
            next: IndexVec::filled(None, count),
            is_branch: IndexVec::filled(true, count),
            in_time_order: facts.regions().ids().map(|region| !cycles.has_cycle(region)).collect(),
        };
        for block in facts.blocks().ids() {
            for &next in facts.successors(block) {
                this.is_branch[next] &= facts.places[next].dominator == Some(block) || facts.dominates(next, block);
            }
        }
        let mut blocks: Vec<_> = facts.blocks().ids().filter(|&id| facts.places[id].dominator.is_some()).collect();
        blocks.sort_unstable_by_key(|&block| facts.places[block].number);
        for block in blocks {
            let place = facts.places[block];
            let Some(above) = place.dominator else { continue };
            let around = facts.places[above];
            let is_alone = around.own_end == place.start && place.end == around.end;
            this.next[block] = if is_alone { this.next[above] } else { Some(block) };
        }
        this
    }

    /// Whether positions in the region are ordered in time (unless the region itself repeats).
    pub fn is_in_time_order(&self, region: RegionId) -> bool {
        self.in_time_order[region]
    }

    /// All positions beside a block.
    pub fn add_unordered(&self, facts: &Facts, block: BlockId, found: &mut Vec<Span>) {
        let mut current = self.next[block];
        for _ in 0..MOST {
            let Some(block) = current else { return };
            let (place, Some(above)) = (facts.places[block], facts.places[block].dominator) else { return };
            let around = facts.places[above];
            found.extend(span(around.own_end, place.start));
            found.extend(span(place.end, around.end));
            current = self.next[above];
        }
    }

    /// The branches not taken on the way to the operation, below a block that dominates it, in its region.
    pub fn add_other_branches(&self, facts: &Facts, op: OpId, below: BlockId, found: &mut Vec<Span>) {
        let region = facts.blocks()[below].region;
        let mut around = std::iter::successors(Some(op), |&op| facts.parent_of(op));
        let Some(op) = around.find(|&op| facts.region_of(op) == region).filter(|_| self.in_time_order[region]) else {
            return;
        };
        let mut block = self.next[facts.ops()[op].block];
        for _ in 0..MOST {
            let Some(branch) = block.filter(|&branch| facts.places[branch].number > facts.places[below].number) else {
                return;
            };
            let Some(above) = facts.places[branch].dominator else { return };
            if self.is_branch[branch] {
                found.extend(span(facts.places[above].own_end, facts.places[branch].start));
            }
            block = self.next[above];
        }
    }
}

fn span(start: u32, end: u32) -> Option<Span> {
    (start < end).then(|| Span { first: start, last: end - 1 })
}
