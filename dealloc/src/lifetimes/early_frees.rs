//! The arguments that a function would free before it allocates, if it consumed them.
//!
//! ```text
//! func.func private @f(%p: memref<8xf32>) {
//!   "use"(%p)
//! memref.dealloc %p                       // before the allocation: a caller would free %p only after it
//!   %a = memref.alloc()
//! ```
//!
//! Requires: decisions made as if the function owned the arguments.
//! Time: linear in the function.

use monopour_ir::ops;
use std::collections::BTreeSet;

use monopour_analysis::index::{BlockId, Id, OpId, RegionId, ValueId};
use monopour_analysis::lifetimes::{Action, Lifetimes, Place};
use monopour_ir::{Op, Value};

use super::collect::{ALLOCATIONS, Collected};

const LOOPS: &[&str] = &[ops::scf::FOR, ops::scf::WHILE, ops::scf::PARALLEL, ops::scf::FORALL, ops::affine::FOR];

/// Memref arguments, by number.
pub(super) fn of(collected: &Collected, lifetimes: &Lifetimes) -> BTreeSet<usize> {
    let later = Later::new(collected);
    let released = lifetimes.actions.iter().filter(|(place, _)| later.is_behind(*place)).filter_map(|(_, a)| match a {
        Action::Release { value, .. } => Some(*value),
        Action::Consume { .. } => None,
    });
    // Arguments that a callee would free early.
    let transferred = collected
        .transferable
        .iter()
        .map(|(op, value, ..)| (*op, *value))
        .filter(|o| lifetimes.transferred.contains(o));
    let early: Vec<ValueId> = released.chain(transferred.map(|(_, value)| value)).collect();
    let origins = collected.facts.origins().of(&early);
    let args = collected.blocks.first().map_or(vec![], |b| b.args()).into_iter().filter(|a| a.ty().is_memref());
    let is_early = |arg: &Value| collected.root(*arg).is_some_and(|root| origins.contains(&root));
    args.enumerate().filter(|(_, arg)| is_early(arg)).map(|(number, _)| number).collect()
}

/// The later operations that may allocate.
struct Later<'c, 'a> {
    collected: &'a Collected<'c>,
    /// Whether an operation or a nested one allocates or calls.
    takes_memory: Vec<bool>,
    /// The parent operation of each region.
    around: Vec<Option<OpId>>,
    /// The last such operation of each block.
    last: Vec<Option<OpId>>,
    /// Whether there is one after the end of each block, in its region or an enclosing one.
    behind: Vec<bool>,
}

impl<'c, 'a> Later<'c, 'a> {
    fn new(collected: &'a Collected<'c>) -> Self {
        let ids = (0..collected.ops.len()).map(OpId::from_index);
        let names =
            |op: &Op<'c>| ALLOCATIONS.contains(&op.name()) || op.is(ops::func::CALL) || op.is(ops::func::CALL_INDIRECT);
        let blocks = collected.blocks.len();
        let mut this = Self {
            collected,
            takes_memory: collected.ops.iter().map(names).collect(),
            around: vec![None; collected.regions.len()],
            last: vec![None; blocks],
            behind: vec![false; blocks],
        };
        for (op, region) in collected.regions_of.iter().flat_map(|(op, all)| all.iter().map(move |r| (*op, *r))) {
            this.around[region.index()] = Some(op);
        }
        // Nested operations come after their parent in the order of the walk.
        for id in ids.rev() {
            let is_inside = |region: &RegionId| {
                collected.regions[region.index()].iter().any(|block| this.last[block.index()].is_some())
            };
            let inner = collected.regions_of.get(&id).is_some_and(|regions| regions.iter().any(is_inside));
            this.takes_memory[id.index()] |= inner;
            let block = collected.facts.block_of(id).index();
            if this.takes_memory[id.index()] && this.last[block].is_none() {
                this.last[block] = Some(id);
            }
        }
        this.spread();
        this
    }

    /// From each block to its predecessors, and from the parent op into its regions.
    fn spread(&mut self) {
        let mut into: Vec<Vec<usize>> = vec![Vec::new(); self.collected.blocks.len()];
        for edge in self.collected.facts.edges() {
            into[edge.to.index()].push(self.collected.facts.block_of(edge.from).index());
        }
        // Nested regions come after their parents.
        for region in 0..self.collected.regions.len() {
            let blocks = &self.collected.regions[region];
            let behind_all = self.around[region].is_some_and(|op| {
                let is_loop = LOOPS.contains(&self.collected.ops[op.index()].name());
                is_loop && self.takes_memory[op.index()] || self.is_behind(Place::After(op))
            });
            let mut work = Vec::new();
            for block in blocks.iter().map(|b| b.index()) {
                self.behind[block] |= behind_all;
                if self.last[block].is_some() || behind_all {
                    work.push(block);
                }
            }
            while let Some(block) = work.pop() {
                for from in &into[block] {
                    if !std::mem::replace(&mut self.behind[*from], true) {
                        work.push(*from);
                    }
                }
            }
        }
    }

    /// Whether an allocation may follow a place.
    fn is_behind(&self, place: Place) -> bool {
        let facts = &self.collected.facts;
        let behind = |block: BlockId, at: Option<OpId>| {
            // Operations of a block are numbered in order.
            let in_block = self.last[block.index()].is_some_and(|last| at.is_none_or(|op| last > op));
            in_block || self.behind[block.index()]
        };
        match place {
            Place::Start(block) => behind(block, None),
            Place::Before(op) | Place::After(op) | Place::Edge(op, _) => behind(facts.block_of(op), Some(op)),
        }
    }
}
