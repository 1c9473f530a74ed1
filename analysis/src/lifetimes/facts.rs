//! What is known about the memrefs of a function with any control flow.

use std::collections::BTreeSet;

use crate::index::{BlockId, IndexVec, Lists, OpId, RegionId, ValueId};

/// What a memref is. A view is no memref of its own: its uses are uses of what it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A fresh allocation, to be freed.
    Fresh,
    /// Memory that is never this function's: an argument, a global, the stack.
    Foreign,
    /// Some of the memory of other memrefs, by [`LifetimeFacts::alias`]; held by those.
    Alias,
    /// Likewise, but an indicator beside it says whether it was handed over.
    Given,
    /// What edges and flows pass to it.
    Passed,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Memref {
    pub kind: Kind,
    pub block: BlockId,
    /// The defining operation; none for an argument.
    pub op: Option<OpId>,
}

/// An edge of a control-flow graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The terminator.
    pub from: OpId,
    /// Which of its successors.
    pub index: u32,
    /// The block.
    pub to: BlockId,
    /// Memref arguments of the block with what they get.
    pub passes: Vec<(ValueId, ValueId)>,
}

/// What a flow passes memrefs to.
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
    /// What is passed.
    pub sources: Vec<ValueId>,
    /// Where to, with a memref for each source (none for the caller).
    pub targets: Vec<(Set, Vec<ValueId>)>,
}

/// A memref that an operation would consume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transferable {
    pub value: ValueId,
    /// What the operation uses besides, the same memref once more if it does.
    pub others: Vec<ValueId>,
}

/// Collects what is known, in the order of a walk, and decides.
///
/// Ids are numbers in the order of adding; whoever collects keeps what they stand for. Region 0 is the function's.
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

    /// An operation uses a memref, or something made from it.
    pub fn uses(&mut self, op: OpId, value: ValueId) {
        self.uses.push((op, value));
    }

    /// A result may be the memory of a memref that was there before.
    pub fn alias(&mut self, result: ValueId, source: ValueId) {
        self.aliases.push((result, source));
    }

    /// The operation frees the memory of the memref.
    pub fn frees(&mut self, op: OpId, value: ValueId) {
        self.frees.push((op, value));
    }

    /// The operation would consume the memref, and use `others` besides: [`Lifetimes::transferred`] says if it can.
    ///
    /// [`Lifetimes::transferred`]: super::Lifetimes::transferred
    pub fn may_transfer(&mut self, op: OpId, value: ValueId, others: Vec<ValueId>) {
        self.transferable.push((op, Transferable { value, others }));
    }

    /// Somebody may use the memory as long as the memref is in scope.
    pub fn pin(&mut self, value: ValueId) {
        self.pinned.push(value);
    }

    /// A terminator may branch.
    pub fn edge(&mut self, edge: Edge) {
        self.edges.push(edge);
    }

    /// Memrefs pass into a region or out of it. Every operation with regions enters them by a flow, if only of nothing;
    /// terminators that pass nothing need none.
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

    /// What kind a memref is.
    pub fn kind(&self, value: ValueId) -> Kind {
        self.memrefs[value].kind
    }

    /// Says what kind a memref is, in place of what was said before.
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

    /// What passes memrefs on, backwards.
    pub fn origins(&self) -> Origins {
        let flows = self.flows.iter().flat_map(|flow| {
            flow.targets.iter().flat_map(|(_, values)| values.iter().copied().zip(flow.sources.iter().copied()))
        });
        let passed = self.edges.iter().flat_map(|edge| edge.passes.iter().copied());
        let pairs: Vec<_> = self.aliases.iter().copied().chain(passed).chain(flows).collect();
        Origins { sources: Lists::group(self.memrefs.len(), &pairs) }
    }
}

/// What each memref gets its memory from, by views, edges and flows.
#[derive(Clone, Debug)]
pub struct Origins {
    sources: Lists<ValueId, ValueId>,
}

impl Origins {
    /// What memrefs may be the memory of, themselves included.
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
