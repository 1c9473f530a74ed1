//! Numbers operations so that nesting and dominance are intervals of positions, and checks that definitions dominate uses.
//!
//! ```text
//! ^a: op0; br ^b, ^c      positions: op0 br | op1 br | op2 br | op3
//! ^b: op1; br ^d          block ^a dominates 0..=6, ^b 2..=3, ^c 4..=5, ^d 6..=6
//! ^c: op2; br ^d          (^d comes last in the text, or anywhere: the order of blocks in the text means nothing)
//! ^d: op3
//! ```
//!
//! Operations are numbered in pre-order, nested regions inline; the blocks of a region along a depth-first walk of its
//! dominator tree. So an operation's subtree, and the set dominated by a block, is an interval.
//! Unreachable blocks come last, each alone.
//! Time O((operations + blocks + edges) * log blocks).

use crate::blocks::{Graph, NONE, dominators};
use crate::builder::FactsError;
use crate::facts::{Facts, Operand, Place, Span, ValueDef};
use crate::index::{BlockId, IndexVec, OpId, OperandId, RegionId};

/// A step of the walk, on an explicit stack, because nesting may be as deep as the input.
enum Step {
    Enter(OpId),
    Leave(OpId),
    EnterRegion(RegionId),
    LeaveRegion(RegionId),
    EnterBlock(BlockId),
    /// The block's own operations are numbered; the blocks that it dominates follow.
    EndOps(BlockId),
    LeaveBlock(BlockId),
}

struct Numbering<'a> {
    facts: &'a Facts,
    spans: IndexVec<OpId, Span>,
    region_spans: IndexVec<RegionId, Span>,
    places: IndexVec<BlockId, Place>,
    /// The children of each block in the dominator tree.
    dominated: IndexVec<BlockId, Vec<BlockId>>,
    order: Vec<OpId>,
    /// Number of blocks entered.
    blocks: u32,
    stack: Vec<Step>,
}

/// Number all operations and blocks.
pub(crate) fn number(facts: &mut Facts) -> Result<(), FactsError> {
    let mut numbering = Numbering {
        spans: IndexVec::filled(Span { first: u32::MAX, last: 0 }, facts.ops.len()),
        region_spans: IndexVec::filled(Span { first: 1, last: 0 }, facts.regions.len()),
        places: IndexVec::filled(Place::default(), facts.blocks.len()),
        dominated: IndexVec::filled(Vec::new(), facts.blocks.len()),
        order: Vec::with_capacity(facts.ops.len()),
        blocks: 0,
        stack: vec![Step::EnterRegion(RegionId::new(0))],
        facts,
    };
    while let Some(step) = numbering.stack.pop() {
        numbering.step(step);
    }
    let Numbering { spans, region_spans, places, order, .. } = numbering;
    // Every operation has one block and every region one operation, so operations that the walk missed are on a cycle.
    if let Some((op, _)) = spans.iter_enumerated().find(|(_, span)| span.first == u32::MAX) {
        return Err(FactsError::Unreachable(op));
    }
    facts.spans = spans;
    facts.region_spans = region_spans;
    facts.places = places;
    facts.order = order;
    Ok(())
}

impl Numbering<'_> {
    fn step(&mut self, step: Step) {
        let next = u32::try_from(self.order.len()).unwrap_or(u32::MAX);
        match step {
            Step::EnterRegion(region) => {
                self.region_spans[region].first = next;
                self.stack.push(Step::LeaveRegion(region));
                self.enter_blocks(region);
            }
            // An empty region has `first > last`, an interval without positions.
            Step::LeaveRegion(region) => {
                let first = self.region_spans[region].first;
                let last = next.checked_sub(1).filter(|&last| last >= first);
                self.region_spans[region] = last.map_or(Span { first: 1, last: 0 }, |last| Span { first, last });
            }
            Step::EnterBlock(block) => {
                self.places[block].start = next;
                self.places[block].number = self.blocks;
                self.blocks += 1;
                self.stack.push(Step::LeaveBlock(block));
                self.stack.extend(self.dominated[block].iter().rev().map(|&block| Step::EnterBlock(block)));
                self.stack.push(Step::EndOps(block));
                self.stack.extend(self.facts.block_ops.of(block).iter().rev().map(|&op| Step::Enter(op)));
            }
            Step::EndOps(block) => self.places[block].own_end = next,
            Step::LeaveBlock(block) => {
                self.places[block].end = next;
                self.places[block].last_number = self.blocks - 1;
            }
            Step::Enter(op) => {
                self.spans[op].first = next;
                self.order.push(op);
                self.stack.push(Step::Leave(op));
                let regions = self.facts.op_regions.of(op);
                self.stack.extend(regions.iter().rev().map(|&region| Step::EnterRegion(region)));
            }
            Step::Leave(op) => self.spans[op].last = next - 1,
        }
    }

    fn enter_blocks(&mut self, region: RegionId) {
        let blocks = self.facts.region_blocks.of(region);
        let [entry, _, ..] = blocks else {
            for &block in blocks {
                self.places[block].is_reachable = true;
                self.stack.push(Step::EnterBlock(block));
            }
            return;
        };
        let graph = graph_of(self.facts, region);
        let found = dominators(&graph);
        for &number in &found.reverse_post_order {
            let block = blocks[number as usize];
            self.places[block].is_reachable = true;
            let parent = found.parents[number as usize];
            if parent != NONE {
                let parent = blocks[parent as usize];
                self.places[block].dominator = Some(parent);
                self.dominated[parent].push(block);
            }
        }
        let unreachable = blocks.iter().rev().filter(|&&block| !self.places[block].is_reachable);
        self.stack.extend(unreachable.map(|&block| Step::EnterBlock(block)));
        self.stack.push(Step::EnterBlock(*entry));
    }
}

/// The control-flow graph of a region. All successors are in the same region: checked by the builder.
pub(crate) fn graph_of(facts: &Facts, region: RegionId) -> Graph {
    let blocks = facts.region_blocks.of(region);
    let mut edges = Vec::new();
    for (&block, from) in blocks.iter().zip(0..) {
        for &next in facts.block_successors.of(block) {
            // Blocks of a region are in the order of their ids.
            if let Ok(to) = blocks.binary_search(&next) {
                edges.push((from, u32::try_from(to).unwrap_or(NONE)));
            }
        }
    }
    Graph::new(blocks.len(), &edges)
}

/// A use sees results of operations before it in its block, and the definitions of its dominators in the dominator tree,
/// in its region and the enclosing ones. In unreachable blocks it sees everything.
pub(crate) fn check_visible(facts: &Facts, operand: OperandId) -> Result<(), FactsError> {
    let Operand { op, value, .. } = facts.operands[operand];
    let span = facts.spans[op];
    let (block, first) = match facts.values[value].def {
        ValueDef::Result(def) => (facts.ops[def].block, facts.spans[def].last.saturating_add(1)),
        ValueDef::Argument(block) => (block, facts.places[block].start),
    };
    let is_visible = first <= span.first && span.first < facts.places[block].end;
    if !is_visible && facts.can_run(op) {
        return Err(FactsError::NotVisible(operand));
    }
    let misplaced = facts.aliases.of(operand).iter().any(|alias| match facts.values[alias.value].def {
        ValueDef::Result(def) => !facts.spans[def].contains(span.first),
        ValueDef::Argument(_) => false,
    });
    if misplaced { Err(FactsError::MisplacedAlias(operand)) } else { Ok(()) }
}
