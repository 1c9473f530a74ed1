//! Facts about one function on tensors: values, operations, regions, uses, and how each use touches memory.
//!
//! Facts are plain tables, built once by [`FactsBuilder`](crate::builder::FactsBuilder) and never changed.
//! They describe the effects that an operand *would* have in place; which operands are is a decision
//! ([`crate::one_shot::Decisions`]).
//!
//! Only tensor values and tensor operands are listed.
//! An operation without tensors may be left out unless it has regions with listed operations.
//! Names and source locations stay with the caller: `label` fields are indices into its table.
//!
//! Invariants, checked by the builder:
//! * every id is in its table, every value dominates its uses, there is one root region (region 0);
//! * [`Facts::span`] numbers operations in pre-order, so an operation's subtree is an interval of positions, and so is
//!   the set dominated by a block ([`Facts::dominates`]);
//! * aliasing is listed forwards, by operand; the reverse edges ([`Facts::sources`]) are its exact inverse.

pub use crate::effects::{Affine, Alias, BufferInfo, Definition, Reads, RegionInfo, Relation, Slice, Subset, Use};
use crate::index::{BlockId, IndexVec, Lists, OpId, OperandId, RegionId, SliceId, ValueId};

/// How many slices of slices are followed.
const MOST_SLICES: usize = 16;

/// Index into the caller's table of names and locations.
pub type Label = u32;

/// The definition of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueDef {
    /// A result of an operation.
    Result(OpId),
    /// An argument of a block (also a loop's iteration argument, or an argument of the function).
    Argument(BlockId),
}

/// Properties of a value, given by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueInfo {
    /// Its buffer.
    pub buffer: BufferInfo,
    /// The rank is known. An unranked tensor cannot be copied.
    pub ranked: bool,
    /// Size of the contents, when static.
    pub size_bytes: Option<u64>,
    /// Name and location for explanations.
    pub label: Label,
}

impl Default for ValueInfo {
    fn default() -> Self {
        Self { buffer: BufferInfo::default(), ranked: true, size_bytes: None, label: 0 }
    }
}

/// A value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// Its definition.
    pub def: ValueDef,
    /// Its properties, given by the caller.
    pub info: ValueInfo,
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// Its block.
    pub block: BlockId,
    /// Name and location for explanations.
    pub label: Label,
    /// Control enters and leaves its regions only along declared edges (a *region branch op*).
    /// Two regions of which neither is reachable from the other then never run both.
    pub region_branch: bool,
    /// A terminator that forwards its operands to the parent operation (a yield, a return), not to other blocks.
    pub gives_out: bool,
    /// How it reads or overwrites a part of a tensor.
    pub subset: Option<Subset>,
}

/// A region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The parent operation; `None` for the root region (the function body).
    pub op: Option<OpId>,
    /// Its properties, given by the caller.
    pub info: RegionInfo,
}

/// A block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its region.
    pub region: RegionId,
}

/// An operand: one tensor slot of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// The operation that uses the value.
    pub op: OpId,
    /// The value used.
    pub value: ValueId,
    /// The contents may be loaded.
    pub reads: bool,
    /// The buffer may be stored to.
    pub writes: bool,
    /// Must bufferize in place.
    pub must_in_place: bool,
    /// See [`Use::elementwise`].
    pub elementwise: bool,
    /// Counts as a read: reads, or forwards unwritten contents to a value that is read.
    pub counts_as_read: bool,
}

/// A reversed alias: the value may alias this operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The aliasing operand.
    pub operand: OperandId,
    /// The relation between the buffers.
    pub relation: Relation,
    /// See [`Alias::definite`].
    pub definite: bool,
    /// See [`Alias::retypes`].
    pub retypes: bool,
}

/// The interval of positions of an operation and everything nested in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The position of the operation itself, in pre-order.
    pub first: u32,
    /// The largest position in its subtree.
    pub last: u32,
}

impl Span {
    /// Whether the position lies in the interval.
    pub const fn contains(self, position: u32) -> bool {
        self.first <= position && position <= self.last
    }

    /// Whether the other operation is nested in this one (not itself).
    pub const fn properly_encloses(self, other: Self) -> bool {
        self.first < other.first && other.last <= self.last
    }
}

/// The positions of a block, and its interval in the dominator tree of its region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// The position of its first operation.
    pub start: u32,
    /// The position after its last operation and that one's subtree.
    pub own_end: u32,
    /// The position after everything that the block dominates.
    pub end: u32,
    /// Its number in the walk of the dominator tree, and the largest among the blocks that it dominates.
    pub number: u32,
    pub last_number: u32,
    pub dominator: Option<BlockId>,
    /// Whether it is reachable from the entry of its region.
    pub is_reachable: bool,
}

/// All facts about one function.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub(crate) values: IndexVec<ValueId, Value>,
    pub(crate) ops: IndexVec<OpId, Op>,
    pub(crate) regions: IndexVec<RegionId, Region>,
    pub(crate) blocks: IndexVec<BlockId, Block>,
    pub(crate) operands: IndexVec<OperandId, Operand>,
    pub(crate) slices: IndexVec<SliceId, Slice>,
    pub(crate) aliases: Lists<OperandId, Alias>,
    pub(crate) sources: Lists<ValueId, Source>,
    pub(crate) uses: Lists<ValueId, OperandId>,
    pub(crate) op_operands: Lists<OpId, OperandId>,
    pub(crate) op_results: Lists<OpId, ValueId>,
    pub(crate) op_regions: Lists<OpId, RegionId>,
    pub(crate) region_blocks: Lists<RegionId, BlockId>,
    pub(crate) region_successors: Lists<RegionId, RegionId>,
    pub(crate) block_ops: Lists<BlockId, OpId>,
    pub(crate) block_arguments: Lists<BlockId, ValueId>,
    pub(crate) block_successors: Lists<BlockId, BlockId>,
    /// For printing only: each operand's `reads` as declared.
    pub(crate) declared_reads: IndexVec<OperandId, Reads>,
    pub(crate) spans: IndexVec<OpId, Span>,
    /// Operations by position.
    pub(crate) order: Vec<OpId>,
    /// Positions of each region; `first > last` when it is empty.
    pub(crate) region_spans: IndexVec<RegionId, Span>,
    pub(crate) places: IndexVec<BlockId, Place>,
    /// Operands whose contents a value receives.
    pub(crate) flows: Lists<ValueId, OperandId>,
    /// For each operand that writes, the value that it makes ([`crate::makers`]).
    pub(crate) made: IndexVec<OperandId, Option<ValueId>>,
    pub(crate) value_is_read: IndexVec<ValueId, bool>,
    /// Pairs of values that may alias, whatever is decided.
    pub(crate) shared: Vec<(ValueId, ValueId)>,
    /// The region that defines each symbol of slices, where it is known.
    pub(crate) symbol_scopes: Vec<Option<RegionId>>,
}

impl Facts {
    /// All values.
    pub const fn values(&self) -> &IndexVec<ValueId, Value> {
        &self.values
    }

    /// All operations, in the order in which they were added.
    pub const fn ops(&self) -> &IndexVec<OpId, Op> {
        &self.ops
    }

    /// All regions; region 0 is the function body.
    pub const fn regions(&self) -> &IndexVec<RegionId, Region> {
        &self.regions
    }

    /// All blocks.
    pub const fn blocks(&self) -> &IndexVec<BlockId, Block> {
        &self.blocks
    }

    /// All tensor operands.
    pub const fn operands(&self) -> &IndexVec<OperandId, Operand> {
        &self.operands
    }

    /// All slices.
    pub const fn slices(&self) -> &IndexVec<SliceId, Slice> {
        &self.slices
    }

    /// The values that alias the operand when it is in place.
    pub fn aliasing_values(&self, operand: OperandId) -> &[Alias] {
        self.aliases.of(operand)
    }

    /// The operands that the value may alias (`aliasing_operands`), possibly of other operations.
    pub fn sources(&self, value: ValueId) -> &[Source] {
        self.sources.of(value)
    }

    /// The operands whose contents the value receives: for a region argument the operands that enter the region and those
    /// that its terminator forwards, for a result of a region operation the yielded ones.
    pub fn flows(&self, value: ValueId) -> &[OperandId] {
        self.flows.of(value)
    }

    /// The uses of a value, by id.
    pub fn uses(&self, value: ValueId) -> &[OperandId] {
        self.uses.of(value)
    }

    /// The tensor operands of an operation, left to right.
    pub fn operands_of(&self, op: OpId) -> &[OperandId] {
        self.op_operands.of(op)
    }

    /// The tensor results of an operation.
    pub fn results_of(&self, op: OpId) -> &[ValueId] {
        self.op_results.of(op)
    }

    /// The regions of an operation.
    pub fn regions_of(&self, op: OpId) -> &[RegionId] {
        self.op_regions.of(op)
    }

    /// The blocks of a region.
    pub fn blocks_of(&self, region: RegionId) -> &[BlockId] {
        self.region_blocks.of(region)
    }

    /// The operations of a block, first to last.
    pub fn ops_of(&self, block: BlockId) -> &[OpId] {
        self.block_ops.of(block)
    }

    /// The tensor arguments of a block.
    pub fn arguments_of(&self, block: BlockId) -> &[ValueId] {
        self.block_arguments.of(block)
    }

    /// The successors of a block.
    pub fn successors(&self, block: BlockId) -> &[BlockId] {
        self.block_successors.of(block)
    }

    /// The positions of an operation's subtree.
    pub fn span(&self, op: OpId) -> Span {
        self.spans[op]
    }

    /// The operation at a position.
    pub fn op_at(&self, position: u32) -> OpId {
        self.order[position as usize]
    }

    /// Whether the first block dominates the second (also if they are one block).
    /// Blocks of different regions do not dominate each other.
    pub fn dominates(&self, a: BlockId, b: BlockId) -> bool {
        let (above, below) = (self.places[a], self.places[b]);
        self.blocks[a].region == self.blocks[b].region
            && above.number <= below.number
            && below.number <= above.last_number
    }

    /// Whether the operation is reachable: its block and all enclosing blocks are.
    pub fn can_run(&self, op: OpId) -> bool {
        let mut op = Some(op);
        while let Some(current) = op {
            if !self.places[self.ops[current].block].is_reachable {
                return false;
            }
            op = self.parent_of(current);
        }
        true
    }

    /// The parent region of an operation.
    pub fn region_of(&self, op: OpId) -> RegionId {
        self.blocks[self.ops[op].block].region
    }

    /// The parent operation, if any.
    pub fn parent_of(&self, op: OpId) -> Option<OpId> {
        self.regions[self.region_of(op)].op
    }

    /// The region in which a value is defined (for a block argument, the region of its block).
    pub fn defining_region(&self, value: ValueId) -> RegionId {
        match self.values[value].def {
            ValueDef::Result(op) => self.region_of(op),
            ValueDef::Argument(block) => self.blocks[block].region,
        }
    }

    /// The block in which a value is defined.
    pub fn defining_block(&self, value: ValueId) -> BlockId {
        match self.values[value].def {
            ValueDef::Result(op) => self.ops[op].block,
            ValueDef::Argument(block) => block,
        }
    }

    /// The operation that defines a value; `None` for a block argument.
    pub fn defining_op(&self, value: ValueId) -> Option<OpId> {
        match self.values[value].def {
            ValueDef::Result(op) => Some(op),
            ValueDef::Argument(_) => None,
        }
    }

    /// The enclosing region, if any.
    pub fn enclosing_region(&self, region: RegionId) -> Option<RegionId> {
        self.regions[region].op.map(|op| self.region_of(op))
    }

    /// Whether the contents of the value are read, possibly through values that alias it.
    pub fn is_value_read(&self, value: ValueId) -> bool {
        self.value_is_read[value]
    }

    /// Pairs of values that may alias, whatever is decided.
    pub fn shared_values(&self) -> &[(ValueId, ValueId)] {
        &self.shared
    }

    /// The region in which a symbol of slices is defined: it has one value for each run of the region. `None`: unknown.
    pub fn symbol_scope(&self, symbol: u32) -> Option<RegionId> {
        self.symbol_scopes.get(symbol as usize).copied().flatten()
    }

    /// Whether the edge goes from a slice to its container.
    pub(crate) fn is_extraction(&self, edge: &Source) -> bool {
        let op = self.operands[edge.operand].op;
        matches!(self.ops[op].subset, Some(Subset::Extraction { container, .. }) if container == edge.operand)
    }

    /// The container and slice that a value was extracted from.
    pub(crate) fn extracted(&self, value: ValueId) -> Option<(ValueId, SliceId)> {
        match self.ops[self.defining_op(value)?].subset {
            Some(Subset::Extraction { container, result, slice }) if result == value => {
                Some((self.operands[container].value, slice))
            }
            _ => None,
        }
    }

    /// Whether a value is a slice of another one, or a slice of a slice, up to a depth.
    pub(crate) fn is_slice_of(&self, value: ValueId, of: ValueId) -> bool {
        let container = |value: &ValueId| self.extracted(*value).map(|(container, _)| container);
        std::iter::successors(container(&value), container).take(MOST_SLICES).any(|container| container == of)
    }

    /// Whether the operand is the destination of an insertion that has no result (`tensor.parallel_insert_slice`).
    pub fn is_collected(&self, operand: OperandId) -> bool {
        let op = self.operands[operand].op;
        self.op_results.of(op).is_empty()
            && matches!(self.ops[op].subset, Some(Subset::Insertion { destination, .. }) if destination == operand)
    }

    /// The value whose contents this write makes, if it is one value and no other write may overwrite it.
    pub fn made_by(&self, write: OperandId) -> Option<ValueId> {
        self.made[write]
    }

    /// Whether other operations are nested in this one: it may forward its operands to arguments that are read inside.
    pub fn has_body(&self, op: OpId) -> bool {
        self.spans[op].first < self.spans[op].last
    }
}
