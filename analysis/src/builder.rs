//! Builds [`Facts`] from one walk over an IR, and checks that they are consistent.
//!
//! The caller adds regions, blocks, operations, results and operands in any order in which ids are known, usually
//! parents before children: an operation and its results, then its regions, then (for terminators) the aliasing of
//! their operands with the results of the parent.
//! Blocks of a region are added in the order of the text, the entry first; they may stand in any order that the
//! control flow between them allows (their operations are numbered along the dominator tree).
//! Nothing is checked until [`FactsBuilder::finish`], which never panics.
//! Time and memory of `finish` are linear in the number of facts.

use std::collections::HashMap;
use std::fmt;

use crate::facts::{
    Affine, Alias, Block, Definition, Facts, Op, Operand, Reads, Region, RegionInfo, Relation, Slice, Source, Subset,
    Use, Value, ValueDef, ValueInfo,
};
use crate::index::{BlockId, Id, IndexVec, Lists, OpId, OperandId, RegionId, SliceId, ValueId};
use crate::makers::makers;
use crate::numbering::{check_visible, number};

/// An inconsistency of facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FactsError {
    /// There is no region, or region 0 has an operation, or another region has none.
    NoSingleRoot,
    /// An id does not belong to these facts: the name of the table and the number.
    UnknownId(&'static str, u32),
    /// The operation is nested in itself, or not under the root region.
    Unreachable(OpId),
    /// The value does not dominate the operand's operation.
    NotVisible(OperandId),
    /// The operand aliases a result of an operation that is neither its own nor an enclosing one.
    MisplacedAlias(OperandId),
    /// The subset of the operation names an operand or result of another operation.
    ForeignSubset(OpId),
    /// The value is never a definition, but aliases an operand.
    UndefinedAlias(ValueId),
    /// The block passes control to a block of another region.
    ForeignSuccessor(BlockId),
    /// A slice has offsets, sizes and strides of different lengths.
    UnevenSlice(SliceId),
}

impl fmt::Display for FactsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSingleRoot => write!(f, "expected region 0 to be the only region without an operation"),
            Self::UnknownId(table, number) => write!(f, "{table} {number} does not exist"),
            Self::Unreachable(op) => {
                write!(f, "operation {op} is not nested under the root region")
            }
            Self::NotVisible(operand) => write!(f, "operand {operand} uses a value that its operation does not see"),
            Self::MisplacedAlias(operand) => write!(f, "{operand} aliases a result of an operation not around it"),
            Self::ForeignSubset(op) => write!(f, "the subset of {op} names an operand or result of another operation"),
            Self::UndefinedAlias(value) => write!(f, "{value} aliases an operand and cannot have undefined contents"),
            Self::ForeignSuccessor(block) => write!(f, "block {block} passes control to a block of another region"),
            Self::UnevenSlice(slice) => write!(f, "slice {slice} has offsets, sizes and strides of different lengths"),
        }
    }
}

impl std::error::Error for FactsError {}

/// Collects facts; see the module.
#[derive(Clone, Debug, Default)]
pub struct FactsBuilder {
    facts: Facts,
    slice_ids: HashMap<Slice, SliceId>,
    aliases: Vec<(OperandId, Alias)>,
    flows: Vec<(ValueId, OperandId)>,
    region_successors: Vec<(RegionId, RegionId)>,
    block_successors: Vec<(BlockId, BlockId)>,
}

impl FactsBuilder {
    /// A builder without facts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Add a region of `op`; the first region, without an operation, is the function body.
    pub fn region(&mut self, op: Option<OpId>, info: RegionInfo) -> RegionId {
        self.facts.regions.push(Region { op, info })
    }

    /// Control may pass from one region of a region branch op to another one (or itself).
    pub fn region_successor(&mut self, from: RegionId, to: RegionId) {
        self.region_successors.push((from, to));
    }

    /// Append a block to a region.
    pub fn block(&mut self, region: RegionId) -> BlockId {
        self.facts.blocks.push(Block { region })
    }

    /// Control may pass from one block to another.
    pub fn block_successor(&mut self, from: BlockId, to: BlockId) {
        self.block_successors.push((from, to));
    }

    /// Append a tensor argument to a block.
    pub fn argument(&mut self, block: BlockId, info: ValueInfo) -> ValueId {
        self.facts.values.push(Value { def: ValueDef::Argument(block), info })
    }

    /// Append an operation to a block.
    pub fn op(&mut self, block: BlockId, label: u32) -> OpId {
        self.facts.ops.push(Op { block, label, region_branch: false, gives_out: false, subset: None })
    }

    /// Declare `op` a region branch op: control enters and leaves its regions only along declared edges.
    pub fn region_branch(&mut self, op: OpId) {
        if let Some(op) = self.facts.ops.get_mut(op) {
            op.region_branch = true;
        }
    }

    /// Declare that `op` is a terminator that forwards its operands to the parent operation.
    /// Only the order of visits from terminators depends on it.
    pub fn gives_out(&mut self, op: OpId) {
        if let Some(op) = self.facts.ops.get_mut(op) {
            op.gives_out = true;
        }
    }

    /// Append a tensor result to an operation.
    pub fn result(&mut self, op: OpId, info: ValueInfo) -> ValueId {
        self.facts.values.push(Value { def: ValueDef::Result(op), info })
    }

    /// Append a tensor operand to an operation.
    pub fn operand(&mut self, op: OpId, value: ValueId, used: Use) -> OperandId {
        self.facts.declared_reads.push(used.reads);
        self.facts.operands.push(Operand {
            op,
            value,
            reads: used.reads == Reads::Yes,
            writes: used.writes,
            must_in_place: used.must_in_place,
            elementwise: used.elementwise,
            counts_as_read: false,
        })
    }

    /// Set the value of an operand that was not known yet (defined in a block later in the text).
    pub fn use_value(&mut self, operand: OperandId, value: ValueId) {
        if let Some(operand) = self.facts.operands.get_mut(operand) {
            operand.value = value;
        }
    }

    /// Declare that the operand is read if `value` is, if that value was not known together with the operand
    /// (`scf.for`: the iteration argument).
    pub fn reads_if(&mut self, operand: OperandId, value: ValueId) {
        if let Some(reads) = self.facts.declared_reads.get_mut(operand) {
            *reads = Reads::IfRead(value);
            self.facts.operands[operand].reads = false;
        }
    }

    /// Declare that `alias.value` aliases `operand` when the operand is in place.
    pub fn alias(&mut self, operand: OperandId, alias: Alias) {
        self.aliases.push((operand, alias));
    }

    /// Declare that `value` receives the contents of `operand`: a region argument or the result of a region
    /// operation. Decisions do not depend on it; [`crate::checker`] follows contents along it.
    pub fn flow(&mut self, operand: OperandId, value: ValueId) {
        self.flows.push((value, operand));
    }

    /// Declare that two values may alias, whatever is decided (two results of one call).
    pub fn share(&mut self, a: ValueId, b: ValueId) {
        self.facts.shared.push((a, b));
    }

    /// Declare the region in which a symbol of slices is defined. Undeclared ones may change with every use.
    pub fn symbol(&mut self, symbol: u32, region: RegionId) {
        let scopes = &mut self.facts.symbol_scopes;
        let index = symbol as usize;
        if scopes.len() <= index {
            scopes.resize(index + 1, None);
        }
        scopes[index] = Some(region);
    }

    /// The id of a slice; equal slices get the same id.
    pub fn slice(&mut self, slice: Slice) -> SliceId {
        let normalise = |numbers: Vec<Affine>| numbers.into_iter().map(Affine::normalised).collect();
        let slice = Slice {
            offsets: normalise(slice.offsets),
            sizes: normalise(slice.sizes),
            strides: normalise(slice.strides),
        };
        *self.slice_ids.entry(slice).or_insert_with_key(|slice| self.facts.slices.push(slice.clone()))
    }

    /// Declare that an operation reads or overwrites a part of a tensor.
    pub fn subset(&mut self, op: OpId, subset: Subset) {
        if let Some(op) = self.facts.ops.get_mut(op) {
            op.subset = Some(subset);
        }
    }

    /// Check the facts and compute the derived tables.
    ///
    /// # Errors
    /// The first inconsistency found.
    pub fn finish(self) -> Result<Facts, FactsError> {
        self.check_ids()?;
        let Self { mut facts, aliases, flows, region_successors, block_successors, .. } = self;
        facts.flows = Lists::group(facts.values.len(), &flows);
        facts.region_successors = Lists::group(facts.regions.len(), &region_successors);
        facts.block_successors = Lists::group(facts.blocks.len(), &block_successors);
        facts.aliases = Lists::group(facts.operands.len(), &aliases);
        index_tables(&mut facts, &aliases);
        number(&mut facts)?;
        facts.made = makers(&facts);
        for operand in facts.operands.ids() {
            check_visible(&facts, operand)?;
        }
        for op in facts.ops.ids() {
            check_subset(&facts, op)?;
        }
        let never = |value: &ValueId| facts.values[*value].info.buffer.definition == Definition::Never;
        if let Some(value) = facts.values.ids().find(|value| never(value) && !facts.sources.of(*value).is_empty()) {
            return Err(FactsError::UndefinedAlias(value));
        }
        propagate_reads(&mut facts);
        Ok(facts)
    }

    fn check_ids(&self) -> Result<(), FactsError> {
        let facts = &self.facts;
        for (id, region) in facts.regions.iter_enumerated() {
            if region.op.is_none() != (id.number() == 0) {
                return Err(FactsError::NoSingleRoot);
            }
            region.op.map_or(Ok(()), |op| known("operation", op, facts.ops.len()))?;
        }
        if facts.regions.is_empty() {
            return Err(FactsError::NoSingleRoot);
        }
        for block in facts.blocks.iter() {
            known("region", block.region, facts.regions.len())?;
        }
        for op in facts.ops.iter() {
            known("block", op.block, facts.blocks.len())?;
        }
        for value in facts.values.iter() {
            match value.def {
                ValueDef::Result(op) => known("operation", op, facts.ops.len())?,
                ValueDef::Argument(block) => known("block", block, facts.blocks.len())?,
            }
        }
        for (operand, reads) in facts.operands.iter().zip(facts.declared_reads.iter()) {
            known("operation", operand.op, facts.ops.len())?;
            known("value", operand.value, facts.values.len())?;
            if let Reads::IfRead(value) = *reads {
                known("value", value, facts.values.len())?;
            }
        }
        self.check_edges()
    }

    fn check_edges(&self) -> Result<(), FactsError> {
        let facts = &self.facts;
        for (operand, alias) in &self.aliases {
            known("operand", *operand, facts.operands.len())?;
            known("value", alias.value, facts.values.len())?;
            if let Relation::EquivalentIf { first, second } = alias.relation {
                for (a, b) in [Some(first), second].into_iter().flatten() {
                    known("value", a, facts.values.len())?;
                    known("value", b, facts.values.len())?;
                }
            }
        }
        for &(a, b) in &facts.shared {
            known("value", a, facts.values.len())?;
            known("value", b, facts.values.len())?;
        }
        for &(value, operand) in &self.flows {
            known("value", value, facts.values.len())?;
            known("operand", operand, facts.operands.len())?;
        }
        for region in facts.symbol_scopes.iter().flatten() {
            known("region", *region, facts.regions.len())?;
        }
        for &(from, to) in &self.region_successors {
            known("region", from, facts.regions.len())?;
            known("region", to, facts.regions.len())?;
        }
        for &(from, to) in &self.block_successors {
            known("block", from, facts.blocks.len())?;
            known("block", to, facts.blocks.len())?;
            if facts.blocks[from].region != facts.blocks[to].region {
                return Err(FactsError::ForeignSuccessor(from));
            }
        }
        for (id, slice) in facts.slices.iter_enumerated() {
            if slice.offsets.len() != slice.sizes.len() || slice.sizes.len() != slice.strides.len() {
                return Err(FactsError::UnevenSlice(id));
            }
        }
        Ok(())
    }
}

fn known<I: Id>(table: &'static str, id: I, len: usize) -> Result<(), FactsError> {
    let number = u32::try_from(id.index()).unwrap_or(u32::MAX);
    if id.index() < len { Ok(()) } else { Err(FactsError::UnknownId(table, number)) }
}

/// Fill the tables that list children by parent, and the reverse edges.
fn index_tables(facts: &mut Facts, aliases: &[(OperandId, Alias)]) {
    let ops = facts.ops.len();
    let by_op: Vec<_> = facts.operands.iter_enumerated().map(|(id, operand)| (operand.op, id)).collect();
    facts.op_operands = Lists::group(ops, &by_op);
    let by_value: Vec<_> = facts.operands.iter_enumerated().map(|(id, operand)| (operand.value, id)).collect();
    facts.uses = Lists::group(facts.values.len(), &by_value);
    let (mut results, mut arguments) = (Vec::new(), Vec::new());
    for (id, value) in facts.values.iter_enumerated() {
        match value.def {
            ValueDef::Result(op) => results.push((op, id)),
            ValueDef::Argument(block) => arguments.push((block, id)),
        }
    }
    facts.op_results = Lists::group(ops, &results);
    facts.block_arguments = Lists::group(facts.blocks.len(), &arguments);
    let regions: Vec<_> = facts.regions.iter_enumerated().filter_map(|(id, region)| Some((region.op?, id))).collect();
    facts.op_regions = Lists::group(ops, &regions);
    let blocks: Vec<_> = facts.blocks.iter_enumerated().map(|(id, block)| (block.region, id)).collect();
    facts.region_blocks = Lists::group(facts.regions.len(), &blocks);
    let children: Vec<_> = facts.ops.iter_enumerated().map(|(id, op)| (op.block, id)).collect();
    facts.block_ops = Lists::group(facts.blocks.len(), &children);
    // Grouped by operand first, so that the reverse edges are in the order of the operands' ids.
    let mut sorted = aliases.to_vec();
    sorted.sort_by_key(|&(operand, _)| operand);
    let sources: Vec<_> = sorted
        .iter()
        .map(|&(operand, alias)| {
            let Alias { value, relation, definite, retypes } = alias;
            (value, Source { operand, relation, definite, retypes })
        })
        .collect();
    facts.sources = Lists::group(facts.values.len(), &sources);
}

fn check_subset(facts: &Facts, op: OpId) -> Result<(), FactsError> {
    let own = |operand: OperandId| {
        known("operand", operand, facts.operands.len())?;
        if facts.operands[operand].op == op { Ok(()) } else { Err(FactsError::ForeignSubset(op)) }
    };
    match facts.ops[op].subset {
        None => Ok(()),
        Some(Subset::Extraction { container, result, slice }) => {
            known("slice", slice, facts.slices.len())?;
            known("value", result, facts.values.len())?;
            if facts.values[result].def != ValueDef::Result(op) {
                return Err(FactsError::ForeignSubset(op));
            }
            own(container)
        }
        Some(Subset::Insertion { source, destination, slice }) => {
            slice.map_or(Ok(()), |slice| known("slice", slice, facts.slices.len()))?;
            source.map_or(Ok(()), own)?;
            own(destination)
        }
    }
}

/// Compute which values are read, through operands that only forward their buffer.
///
/// A least fixpoint by worklist: each value is read at most once, each edge followed at most once.
fn propagate_reads(facts: &mut Facts) {
    let waiting: Vec<_> = facts
        .declared_reads
        .iter_enumerated()
        .filter_map(|(operand, reads)| match *reads {
            Reads::IfRead(value) => Some((value, operand)),
            _ => None,
        })
        .collect();
    let waiting = Lists::group(facts.values.len(), &waiting);
    let mut is_read = IndexVec::filled(false, facts.values.len());
    let mut work: Vec<ValueId> = facts.operands.iter().filter(|used| used.reads).map(|used| used.value).collect();
    while let Some(value) = work.pop() {
        if std::mem::replace(&mut is_read[value], true) {
            continue;
        }
        for &operand in waiting.of(value) {
            facts.operands[operand].reads = true;
            work.push(facts.operands[operand].value);
        }
        for source in facts.sources.of(value) {
            let used = &facts.operands[source.operand];
            if !used.reads && !used.writes {
                work.push(used.value);
            }
        }
    }
    for id in facts.operands.ids() {
        let Operand { reads, writes, .. } = facts.operands[id];
        let passes_on = || facts.aliases.of(id).iter().any(|alias| is_read[alias.value]);
        facts.operands[id].counts_as_read = reads || (!writes && passes_on());
    }
    facts.value_is_read = is_read;
}
