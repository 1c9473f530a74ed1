//! Cycles of blocks: where the order of blocks is not an order in time.
//!
//! ```text
//! ^a: %d = make        a read of %d in ^h, a write in ^b: the write comes before the read of the next iteration.
//!     br ^h            If %d were made in ^h (or ^b), each iteration would have its own.
//! ^h: read %d
//!     cond_br ^b, ^e
//! ^b: write %d
//!     br ^h
//! ```
//!
//! Two operations are not ordered if the blocks of their ancestors in the innermost common region reach each
//! other without the block of a definition. Of several definitions the first decides: the blocks of definitions
//! dominate each other, and a cycle that avoids a later one avoids the earlier ones.
//!
//! Time O(blocks + edges) once, and again the size of a cycle for each block on it with a definition;
//! answers are cached.

use std::collections::HashMap;

use crate::blocks::{Graph, NONE, cycles};
use crate::facts::{Facts, Span};
use crate::index::{BlockId, IndexVec, RegionId};
use crate::numbering::graph_of;

/// The cycles of blocks of all regions.
pub(crate) struct BlockCycles<'a> {
    facts: &'a Facts,
    /// The graphs of regions with cycles.
    graphs: HashMap<RegionId, Graph>,
    /// The index of each block in its region.
    numbers: IndexVec<BlockId, u32>,
    /// The cycle that each block is on: an index into `members`, or [`NONE`].
    cycle: IndexVec<BlockId, u32>,
    members: Vec<Vec<BlockId>>,
    positions: Vec<Vec<Span>>,
    /// For an excluded block: the positions of the rest of its cycle, by block.
    without: HashMap<BlockId, HashMap<BlockId, usize>>,
    /// Elementary steps.
    pub steps: u64,
}

impl<'a> BlockCycles<'a> {
    pub fn new(facts: &'a Facts) -> Self {
        let count = facts.blocks().len();
        let mut this = Self {
            facts,
            graphs: HashMap::new(),
            numbers: IndexVec::filled(0, count),
            cycle: IndexVec::filled(NONE, count),
            members: Vec::new(),
            positions: Vec::new(),
            without: HashMap::new(),
            steps: 0,
        };
        for region in facts.regions().ids() {
            this.add_region(region);
        }
        this
    }

    fn add_region(&mut self, region: RegionId) {
        let blocks = self.facts.blocks_of(region);
        if blocks.iter().all(|&block| self.facts.successors(block).is_empty()) {
            return;
        }
        let graph = graph_of(self.facts, region);
        let found = cycles(&graph, |_| true);
        self.steps += blocks.len() as u64;
        for (&block, number) in blocks.iter().zip(0..) {
            self.numbers[block] = number;
        }
        let first = self.members.len();
        for members in grouped(&found.of, blocks) {
            for &block in &members {
                self.cycle[block] = self.members.len() as u32;
            }
            self.positions.push(self.positions_of(&members));
            self.members.push(members);
        }
        if self.members.len() > first {
            self.graphs.insert(region, graph);
        }
    }

    /// Whether the region has a cycle of blocks.
    pub fn has_cycle(&self, region: RegionId) -> bool {
        self.graphs.contains_key(&region)
    }

    /// Whether the block is on a cycle.
    pub fn is_on_cycle(&self, block: BlockId) -> bool {
        self.cycle[block] != NONE
    }

    /// The positions of all blocks on a cycle with the block that avoids `without`.
    pub fn around(&mut self, block: BlockId, without: Option<BlockId>) -> &[Span] {
        let cycle = self.cycle[block];
        if cycle == NONE {
            return &[];
        }
        let Some(without) = without.filter(|&other| self.cycle[other] == cycle) else {
            return &self.positions[cycle as usize];
        };
        if !self.without.contains_key(&without) {
            self.leave_out(without, cycle);
        }
        match self.without[&without].get(&block) {
            Some(&index) => &self.positions[index],
            None => &[],
        }
    }

    fn leave_out(&mut self, without: BlockId, cycle: u32) {
        let members = self.members[cycle as usize].clone();
        self.steps += members.len() as u64;
        // The cycle as a graph of its own, so that the cost is its size and not that of the region.
        let region = self.facts.blocks()[without].region;
        let index: HashMap<u32, u32> = members.iter().map(|&block| self.numbers[block]).zip(0..).collect();
        let mut edges = Vec::new();
        for (&from, &number) in &index {
            let next = self.graphs[&region].successors(from);
            edges.extend(next.iter().filter_map(|to| Some((number, *index.get(to)?))));
        }
        edges.sort_unstable();
        let graph = Graph::new(members.len(), &edges);
        let found = cycles(&graph, |number| members[number as usize] != without);
        let mut left = HashMap::new();
        for group in grouped(&found.of, &members) {
            left.extend(group.iter().map(|&block| (block, self.positions.len())));
            self.positions.push(self.positions_of(&group));
            // Keeps the indices of the two lists equal; these members are never read.
            self.members.push(Vec::new());
        }
        self.without.insert(without, left);
    }

    fn positions_of(&self, blocks: &[BlockId]) -> Vec<Span> {
        let places = blocks.iter().map(|&block| self.facts.places[block]);
        let own = places.filter(|place| place.start < place.own_end);
        let mut spans: Vec<_> = own.map(|place| Span { first: place.start, last: place.own_end - 1 }).collect();
        spans.sort_unstable_by_key(|span| span.first);
        // Consecutive blocks are one interval: usually a whole cycle is.
        spans.dedup_by(|next, last| {
            let follows = last.last + 1 == next.first;
            if follows {
                last.last = next.last;
            }
            follows
        });
        spans
    }
}

/// The blocks of each component.
fn grouped(components: &[u32], blocks: &[BlockId]) -> Vec<Vec<BlockId>> {
    let count = components.iter().filter(|&&component| component != NONE).max().map_or(0, |&most| most as usize + 1);
    let mut groups = vec![Vec::new(); count];
    for (&component, &block) in components.iter().zip(blocks) {
        if component != NONE {
            groups[component as usize].push(block);
        }
    }
    groups
}
