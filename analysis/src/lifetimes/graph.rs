//! Blocks, dominance, and the last uses of memrefs.

use std::collections::{BTreeMap, BTreeSet};

use super::facts::LifetimeFacts;
use crate::blocks::{Graph, NONE, dominators};
use crate::index::{BlockId, IndexVec, Lists, OpId, RegionId, ValueId};

/// Order in each region, and the liveness of each memref in the region that defines it.
pub(crate) struct Order {
    pub ops_of: Lists<BlockId, OpId>,
    pub blocks_of: Lists<RegionId, BlockId>,
    pub regions_of: Lists<OpId, RegionId>,
    /// Numbers of the outgoing and incoming edges of each block.
    pub out_of: Lists<BlockId, u32>,
    pub into: Lists<BlockId, u32>,
    /// Position of each block in its region's reverse post-order; `None` for an unreachable one.
    pub rank: IndexVec<BlockId, Option<u32>>,
    /// Entry and exit times in the dominator tree of the region.
    spans: IndexVec<BlockId, (u32, u32)>,
    /// Position of each operation in its block.
    pub positions: IndexVec<OpId, u32>,
    pub live_in: IndexVec<BlockId, BTreeSet<ValueId>>,
    pub live_out: IndexVec<BlockId, BTreeSet<ValueId>>,
    /// Position of the last use in each block.
    last: BTreeMap<(BlockId, ValueId), u32>,
    /// Memrefs with their last use in the block, by that operation.
    pub ends: IndexVec<OpId, Vec<ValueId>>,
    /// Memrefs from outside that are used in the regions of an operation.
    pub captured: IndexVec<OpId, BTreeSet<ValueId>>,
}

impl Order {
    pub fn new(facts: &LifetimeFacts) -> Self {
        let in_block: Vec<_> = facts.ops.iter_enumerated().map(|(op, block)| (*block, op)).collect();
        let in_region: Vec<_> = facts.blocks.iter_enumerated().map(|(block, region)| (*region, block)).collect();
        let of_op: Vec<_> = facts.regions.iter_enumerated().filter_map(|(r, op)| Some(((*op)?, r))).collect();
        let numbered = || facts.edges.iter().zip(0_u32..);
        let out: Vec<_> = numbered().map(|(edge, i)| (facts.ops[edge.from], i)).collect();
        let into: Vec<_> = numbered().map(|(edge, i)| (edge.to, i)).collect();
        let blocks = facts.blocks.len();
        let ops_of = Lists::group(blocks, &in_block);
        let mut positions = IndexVec::filled(0, facts.ops.len());
        for block in facts.blocks.ids() {
            for (op, position) in ops_of.of(block).iter().zip(0_u32..) {
                positions[*op] = position;
            }
        }
        let mut this = Self {
            ops_of,
            blocks_of: Lists::group(facts.regions.len(), &in_region),
            regions_of: Lists::group(facts.ops.len(), &of_op),
            out_of: Lists::group(blocks, &out),
            into: Lists::group(blocks, &into),
            rank: IndexVec::filled(None, blocks),
            spans: IndexVec::filled((0, 0), blocks),
            positions,
            live_in: IndexVec::filled(BTreeSet::new(), blocks),
            live_out: IndexVec::filled(BTreeSet::new(), blocks),
            last: BTreeMap::new(),
            ends: IndexVec::filled(Vec::new(), facts.ops.len()),
            captured: IndexVec::filled(BTreeSet::new(), facts.ops.len()),
        };
        for region in facts.regions.ids() {
            this.dominate(facts, region);
        }
        this.uses(facts);
        this
    }

    fn dominate(&mut self, facts: &LifetimeFacts, region: RegionId) {
        let blocks = self.blocks_of.of(region);
        let Some(first) = blocks.first().map(|b| b.number()) else { return };
        let local: BTreeMap<BlockId, u32> = blocks.iter().copied().zip(0_u32..).collect();
        debug_assert!(first as usize <= facts.blocks.len(), "blocks of a region are known");
        let edges: Vec<(u32, u32)> = blocks
            .iter()
            .flat_map(|block| {
                self.out_of.of(*block).iter().map(|e| (local[block], local[&facts.edges[*e as usize].to]))
            })
            .collect();
        let tree = dominators(&Graph::new(blocks.len(), &edges));
        let mut children = vec![Vec::new(); blocks.len()];
        for (rank, block) in tree.reverse_post_order.iter().zip(0_u32..).map(|(b, r)| (r, *b)) {
            self.rank[blocks[block as usize]] = Some(rank);
            let parent = tree.parents[block as usize];
            if parent != NONE && parent != block {
                children[parent as usize].push(block);
            }
        }
        let (mut time, mut stack) = (0, vec![(0_u32, false)]);
        while let Some((block, leaving)) = stack.pop() {
            let span = &mut self.spans[blocks[block as usize]];
            time += 1;
            if leaving {
                span.1 = time;
                continue;
            }
            span.0 = time;
            stack.push((block, true));
            stack.extend(children[block as usize].iter().map(|child| (*child, false)));
        }
    }

    /// Whether one block of a region dominates another one.
    pub fn strictly_dominates(&self, a: BlockId, b: BlockId) -> bool {
        a != b && self.spans[a].0 < self.spans[b].0 && self.spans[b].1 < self.spans[a].1
    }

    fn uses(&mut self, facts: &LifetimeFacts) {
        for (op, value) in &facts.uses {
            let region = facts.region_of(*value);
            let mut at = *op;
            // A use in a nested region counts as one by the enclosing operation, for each region on the way.
            while facts.region_of_op(at) != region {
                let Some(outer) = facts.regions[facts.region_of_op(at)] else { break };
                at = outer;
                self.captured[at].insert(*value);
            }
            if facts.region_of_op(at) == region {
                self.use_at(facts, facts.ops[at], self.positions[at], *value);
            }
        }
        for value in &facts.pinned {
            let home = facts.memrefs[*value].block;
            for block in self.blocks_of.of(facts.blocks[home]).to_vec() {
                if block == home || self.strictly_dominates(home, block) {
                    self.use_at(facts, block, u32::MAX, *value);
                }
            }
        }
        for (&(block, value), &position) in &self.last {
            if !self.live_out[block].contains(&value)
                && let Some(op) = self.ops_of.of(block).get(position as usize)
            {
                self.ends[*op].push(value);
            }
        }
    }

    fn use_at(&mut self, facts: &LifetimeFacts, block: BlockId, position: u32, value: ValueId) {
        let last = self.last.entry((block, value)).or_insert(position);
        *last = position.max(*last);
        let home = facts.memrefs[value].block;
        let mut work = vec![block];
        // Backwards from the use up to the definition.
        while let Some(block) = work.pop() {
            if block == home || self.rank[block].is_none() || !self.live_in[block].insert(value) {
                continue;
            }
            for edge in self.into.of(block) {
                let source = facts.ops[facts.edges[*edge as usize].from];
                self.live_out[source].insert(value);
                work.push(source);
            }
        }
    }

    /// Whether the memref is used after a position of a block (-1: its start).
    pub fn is_live_after(&self, block: BlockId, position: i64, value: ValueId) -> bool {
        self.live_out[block].contains(&value)
            || self.last.get(&(block, value)).is_some_and(|last| i64::from(*last) > position)
    }

    /// Whether the memref is used in a block or after it.
    pub fn is_live_at_start(&self, block: BlockId, value: ValueId) -> bool {
        self.is_live_after(block, -1, value)
    }
}
