//! Facts about the memrefs of a function with any control flow.

use std::collections::BTreeSet;

use crate::index::{BlockId, IndexVec, Lists, OpId, RegionId, ValueId};

/// The kind of a memref. A view is no memref of its own: its uses are uses of its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A fresh allocation, to be freed.
    Fresh,
    /// Memory that this function never owns: an argument, a global, the stack.
    Foreign,
    /// A part of other memrefs, by [`LifetimeFacts::alias`]; held by those.
    Alias,
    /// Likewise, but an indicator beside it says whether ownership was handed over.
    Given,
    /// A block argument, region argument or result, by edges and flows.
    Passed,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Memref {
    pub kind: Kind,
    pub block: BlockId,
    /// The defining operation; `None` for an argument.
    pub op: Option<OpId>,
}

/// An edge of a control-flow graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The terminator.
    pub from: OpId,
    /// The number of the successor.
    pub index: u32,
    /// The successor.
    pub to: BlockId,
    /// Memref arguments of the block with their operands.
    pub passes: Vec<(ValueId, ValueId)>,
}

/// The receiver of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// The arguments of a region.
    Region(RegionId),
    /// The results of an operation with regions.
    Results(OpId),
    /// The caller.
    Caller,
}

/// Memrefs that pass into a region or out of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// An operation that enters regions, or a terminator that leaves one.
    pub at: OpId,
    /// The forwarded memrefs.
    pub sources: Vec<ValueId>,
    /// The receivers, with a memref for each source (none for the caller).
    pub targets: Vec<(Set, Vec<ValueId>)>,
}

/// A memref that an operation can consume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transferable {
    pub value: ValueId,
    /// Other memrefs that the operation uses, the same one again if it does.
    pub others: Vec<ValueId>,
}

/// Collects facts, in the order of a walk, and decides.
///
/// Ids are numbers in the order of adding; the caller maps them to its IR. Region 0 is the function's.
#[derive(Clone, Debug, Default)]
pub struct LifetimeFacts {
    pub(crate) regions: IndexVec<RegionId, Option<OpId>>,
    pub(crate) blocks: IndexVec<BlockId, RegionId>,
    pub(crate) ops: IndexVec<OpId, BlockId>,
    pub(crate) memrefs: IndexVec<ValueId, Memref>,
    pub(crate) uses: Vec<(OpId, ValueId)>,
    pub(crate) aliases: Vec<(ValueId, ValueId)>,
    pub(crate) frees: Vec<(OpId, ValueId)>,
    pub(crate) transferable: Vec<(OpId, Transferable)>,
    pub(crate) pinned: Vec<ValueId>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) flows: Vec<Flow>,
}

impl LifetimeFacts {
    /// No facts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Add a region of `op`, or (first) the region of the function.
    pub fn region(&mut self, op: Option<OpId>) -> RegionId {
        self.regions.push(op)
    }

    /// Append a block to a region.
    pub fn block(&mut self, region: RegionId) -> BlockId {
        self.blocks.push(region)
    }

    /// Append an operation to a block.
    pub fn op(&mut self, block: BlockId) -> OpId {
        self.ops.push(block)
    }

    /// Add a memref result of an operation.
    pub fn result(&mut self, op: OpId, kind: Kind) -> ValueId {
        self.memrefs.push(Memref { kind, block: self.ops[op], op: Some(op) })
    }

    /// Add a memref argument of a block.
    pub fn argument(&mut self, block: BlockId, kind: Kind) -> ValueId {
        self.memrefs.push(Memref { kind, block, op: None })
    }

    /// An operation uses a memref, or a view of it.
    pub fn uses(&mut self, op: OpId, value: ValueId) {
        self.uses.push((op, value));
    }

    /// A result may alias an earlier memref.
    pub fn alias(&mut self, result: ValueId, source: ValueId) {
        self.aliases.push((result, source));
    }

    /// The operation frees the memory of the memref.
    pub fn frees(&mut self, op: OpId, value: ValueId) {
        self.frees.push((op, value));
    }

    /// The operation can consume the memref, and uses `others` as well: [`Lifetimes::transferred`] has the answer.
    ///
    /// [`Lifetimes::transferred`]: super::Lifetimes::transferred
    pub fn may_transfer(&mut self, op: OpId, value: ValueId, others: Vec<ValueId>) {
        self.transferable.push((op, Transferable { value, others }));
    }

    /// Keeps the memory alive as long as the memref is in scope.
    pub fn pin(&mut self, value: ValueId) {
        self.pinned.push(value);
    }

    /// A branch from a terminator.
    pub fn edge(&mut self, edge: Edge) {
        self.edges.push(edge);
    }

    /// Forwards memrefs into a region or out of it. Every operation with regions enters them by a flow, an empty one if need be;
    /// terminators that forward nothing need none.
    pub fn flow(&mut self, flow: Flow) {
        self.flows.push(flow);
    }

    /// All flows.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// All edges.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// The kind of a memref.
    pub fn kind(&self, value: ValueId) -> Kind {
        self.memrefs[value].kind
    }

    /// Replaces the kind of a memref.
    pub fn set_kind(&mut self, value: ValueId, kind: Kind) {
        self.memrefs[value].kind = kind;
    }

    /// The region in which a memref is defined.
    pub fn region_of(&self, value: ValueId) -> RegionId {
        self.blocks[self.memrefs[value].block]
    }

    /// The block of an operation.
    pub fn block_of(&self, op: OpId) -> BlockId {
        self.ops[op]
    }

    /// The region of an operation.
    pub fn region_of_op(&self, op: OpId) -> RegionId {
        self.blocks[self.ops[op]]
    }

    /// The reversed edges, flows and views.
    pub fn origins(&self) -> Origins {
        let flows = self.flows.iter().flat_map(|flow| {
            flow.targets.iter().flat_map(|(_, values)| values.iter().copied().zip(flow.sources.iter().copied()))
        });
        let passed = self.edges.iter().flat_map(|edge| edge.passes.iter().copied());
        let pairs: Vec<_> = self.aliases.iter().copied().chain(passed).chain(flows).collect();
        Origins { sources: Lists::group(self.memrefs.len(), &pairs) }
    }
}

/// The origins of each memref, by views, edges and flows.
#[derive(Clone, Debug)]
pub struct Origins {
    sources: Lists<ValueId, ValueId>,
}

impl Origins {
    /// The transitive origins of memrefs, themselves included.
    pub fn of(&self, start: &[ValueId]) -> BTreeSet<ValueId> {
        let (mut found, mut work) = (BTreeSet::new(), start.to_vec());
        while let Some(value) = work.pop() {
            if found.insert(value) {
                work.extend(self.sources.of(value));
            }
        }
        found
    }
}
