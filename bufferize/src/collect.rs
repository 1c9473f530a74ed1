//! One walk over a function: the facts about its tensors, for the analysis.
//!
//! Reads the IR through the op models, without changes.
//! Requires: ranked tensors where they are copied.
//! Ensures: blocks with their successors, and block arguments as aliases of the predecessors' operands.
//! Limits: operations on tensors without a model (B0101), several blocks in a region whose model expects one (B0102).
//!
//! Two walks: one lists the operations with tensors, nested ones included, one assigns ids; then each
//! listed operation is queried for its uses once. No query is per pair, so the time is linear in the operations.

use monopour_ir::ops;
use std::collections::HashMap;
use std::rc::Rc;

use monopour_analysis::builder::FactsBuilder;
use monopour_analysis::facts::{
    Affine, Alias, Definition, Facts, RegionInfo, Slice, Subset, Use as UseFact, ValueInfo,
};
use monopour_analysis::index::{BlockId, IndexVec, OpId, OperandId, RegionId, ValueId};
use monopour_ir::{Block, Diagnostic, Diagnostics, HandleMap, Op, Region, Use, Value, interfaces};

use crate::boundary::{Callees, writable_arguments};
use crate::op_model::{
    AliasModel, BufferInfo, Index, OpModel, OpModels, SliceModel, SubsetModel, UseModel, has_tensors,
};
use crate::options::Options;
use crate::scope::is_apart;
use crate::shared_memory;
use crate::slices::{Origin, Symbols};

/// The facts of a function, with the IR of their ids.
pub(crate) struct Collected<'c> {
    pub(crate) facts: Facts,
    pub(crate) values: IndexVec<ValueId, Value<'c>>,
    pub(crate) value_ids: HandleMap<Value<'c>, ValueId>,
    pub(crate) operands: IndexVec<OperandId, Use<'c>>,
    pub(crate) operand_ids: HandleMap<(Op<'c>, usize), OperandId>,
    pub(crate) ops: IndexVec<OpId, Op<'c>>,
}

impl<'c> Collected<'c> {
    /// The id of a tensor of the function.
    pub(crate) fn id(&self, value: Value<'c>) -> Option<ValueId> {
        self.value_ids.get(&value).copied()
    }
}

/// Collects the facts of a function with a body.
pub(crate) fn collect<'c>(
    function: Op<'c>,
    models: &OpModels,
    callees: &Callees<'c>,
    options: &Options,
) -> Result<Collected<'c>, Diagnostics> {
    let blocks = Listing::of(function, models, options)?;
    let mut collector = Collector {
        models,
        callees,
        options,
        builder: FactsBuilder::new(),
        values: IndexVec::new(),
        value_ids: HandleMap::default(),
        operands: IndexVec::new(),
        operand_ids: HandleMap::default(),
        ops: IndexVec::new(),
        symbols: Symbols::default(),
        regions: HashMap::new(),
    };
    let root = collector.builder.region(None, RegionInfo::default());
    collector.regions.insert(function.region(0), root);
    // Only the entry's arguments come from callers; those of other blocks are restricted by their operands.
    let arguments = writable_arguments(function, options);
    collector.region(&blocks, root, &|block, index| {
        if block == 0 { arguments.get(index) == Some(&true) } else { options.bufferize_function_boundaries }
    });
    collector.uses();
    if options.extensions && !options.copy_before_write {
        for (a, b) in shared_memory::pairs(function)? {
            collector.share(a, b);
        }
    }
    collector.finish(function)
}

/// An operation with tensors, itself or nested, and the blocks of each of its regions.
struct Listed<'c> {
    op: Op<'c>,
    regions: Vec<Vec<ListedBlock<'c>>>,
}

struct ListedBlock<'c> {
    block: Block<'c>,
    ops: Vec<Listed<'c>>,
}

/// The walk that lists operations.
struct Listing<'a> {
    models: &'a OpModels,
    options: &'a Options,
    errors: Diagnostics,
}

impl<'a> Listing<'a> {
    /// The blocks of a function's body.
    fn of<'c>(
        function: Op<'c>,
        models: &'a OpModels,
        options: &'a Options,
    ) -> Result<Vec<ListedBlock<'c>>, Diagnostics> {
        let mut this = Self { models, options, errors: Diagnostics::default() };
        let blocks = this.region(function.region(0));
        if this.errors.has_errors() { Err(this.errors) } else { Ok(blocks) }
    }

    fn region<'c>(&mut self, region: Region<'c>) -> Vec<ListedBlock<'c>> {
        region.blocks().into_iter().map(|block| ListedBlock { block, ops: self.block(block) }).collect()
    }

    fn block<'c>(&mut self, block: Block<'c>) -> Vec<Listed<'c>> {
        let mut listed = Vec::new();
        let mut next = block.first_op();
        while let Some(op) = next {
            next = op.next();
            if is_apart(op, self.options) {
                continue;
            }
            let regions: Vec<_> = op.regions().into_iter().map(|r| self.region(r)).collect();
            let has_tensors = has_tensors(op);
            if has_tensors || regions.iter().flatten().any(|b| !b.ops.is_empty()) {
                self.check(op, has_tensors, regions.iter().any(|r| r.len() > 1));
                listed.push(Listed { op, regions });
            }
        }
        listed
    }

    fn check(&mut self, op: Op, has_tensors: bool, has_several_blocks: bool) {
        let options = self.options;
        match self.models.taking_part(op, options) {
            Some(model) if has_several_blocks && !model.has_several_blocks(op) => {
                self.errors.0.push(several_blocks(op, options));
            }
            Some(model) => self.errors.0.extend(model.refuse(op, options)),
            None => {
                let stays = options.allow_unknown_ops
                    || !options.extensions
                    || !options.dialect_filter.is_empty()
                    || op.dialect() == "func";
                if has_tensors && !stays {
                    self.errors.0.push(unknown_op(op));
                }
            }
        }
    }
}

/// Whether an operand is the output of a parallel loop that stays on tensors (`dialect-filter`).
///
/// The later run that bufferizes the loop chooses the buffer and its copies: here it must not be written, and is still written
/// through a `to_buffer`.
pub(crate) fn inserts_into_what_stays<'c>(op: Op<'c>, index: usize, takes_part: impl Fn(Op<'c>) -> bool) -> bool {
    let forall = || op.parent().and_then(Op::parent);
    op.is(ops::tensor::PARALLEL_INSERT_SLICE) && index == 1 && forall().is_some_and(|forall| !takes_part(forall))
}

/// An op that stays on tensors may return its operands, and forward them to its regions.
fn unknown_aliases<'c>(op: Op<'c>) -> Vec<AliasModel<'c>> {
    let entries = op.regions().into_iter().filter_map(|r| r.entry()).flat_map(|block| block.args());
    let tensors = op.results().into_iter().chain(entries).filter(|r| r.ty().is_tensor());
    tensors.map(|r| AliasModel { definite: false, ..AliasModel::unknown(r) }).collect()
}

/// A region of an operation that stays on tensors, by the op's interfaces.
///
/// (Upstream assumes that the regions of such operations run once: LLVM 22 lets an iteration of `scf.parallel` write contents
/// that the next one reads.)
fn region_of_others(op: Op, region: usize) -> RegionInfo {
    let parallel = matches!(op.name(), ops::scf::PARALLEL | ops::affine::PARALLEL);
    let repetitive = parallel || (interfaces::is_loop_like(op) && interfaces::is_repetitive_region(op, region));
    RegionInfo { repetitive, parallel, ..RegionInfo::default() }
}

fn unknown_op(op: Op) -> Diagnostic {
    let message = format!("{} has tensors, and nothing says how it uses their memory", op.name());
    Diagnostic::error("B0101", op.location(), message)
        .with_help("rewrite it to linalg or tensor operations, or register an op model")
}

fn several_blocks(op: Op, options: &Options) -> Diagnostic {
    let message = match options.extensions {
        true => format!("a region of {} has several blocks, and its model expects one", op.name()),
        false => format!(
            "'{}' op op or BufferizableOpInterface implementation does not support unstructured control flow, \
             but at least one region has multiple blocks",
            op.name()
        ),
    };
    Diagnostic::error("B0102", op.location(), message)
        .with_help("lift branches to scf.if, scf.for and scf.while (pass lift-cf-to-scf)")
}

/// Whether the slice varies by iteration over a tensor that all iterations share.
///
/// Contents that one iteration wrote to such a slice in place are read by another as the part around its own slice: the exemption
/// of insertions, which do not read the slice that they overwrite, does not apply, so it is collected as any other use.
/// (Upstream applies it: LLVM 22 loses the tensor's old contents.)
fn moves_over_outer(models: &OpModels, options: &Options, op: Op, destination: Value, slice: &SliceModel) -> bool {
    let numbers = slice.offsets.iter().chain(&slice.sizes).chain(&slice.strides);
    let computed: Vec<Value> =
        numbers.filter_map(|n| if let Index::Dynamic(v) = n { Some(*v) } else { None }).collect();
    let mut around = op.parent();
    while let Some(parent) = around.filter(|p| !p.is(ops::func::FUNC)) {
        let repeats = |model: &Rc<dyn OpModel>| (0..parent.regions().len()).any(|r| model.region(parent, r).repetitive);
        if models.get(parent, options).is_some_and(repeats) {
            if is_made_inside(destination, parent) {
                return false;
            }
            if computed.iter().any(|v| is_defined_inside(*v, parent)) {
                return true;
            }
        }
        around = parent.parent();
    }
    false
}

fn is_defined_inside(value: Value, parent: Op) -> bool {
    value.block().and_then(|b| b.parent_op()).is_some_and(|o| o.is_inside(parent))
}

/// Whether each iteration has its own contents: the value and the sources of its views are defined inside the loop.
fn is_made_inside(value: Value, parent: Op) -> bool {
    let Some(op) = value.defining_op().filter(|_| is_defined_inside(value, parent)) else {
        return is_defined_inside(value, parent);
    };
    let passes_on = matches!(
        op.name(),
        ops::arith::SELECT | ops::tensor::CAST | ops::tensor::COLLAPSE_SHAPE | ops::tensor::EXPAND_SHAPE
    ) || matches!(op.name(), ops::tensor::EXTRACT_SLICE | ops::tensor::RESHAPE);
    let tensors = || op.operands().into_iter().filter(|v| v.ty().is_tensor());
    match passes_on {
        true => tensors().all(|v| is_made_inside(v, parent)),
        // The result of a branch or a loop may have any origin.
        false => op.regions().is_empty() || matches!(op.dialect(), "linalg" | "tensor"),
    }
}

struct Collector<'c, 'a> {
    models: &'a OpModels,
    callees: &'a Callees<'c>,
    options: &'a Options,
    builder: FactsBuilder,
    values: IndexVec<ValueId, Value<'c>>,
    value_ids: HandleMap<Value<'c>, ValueId>,
    operands: IndexVec<OperandId, Use<'c>>,
    operand_ids: HandleMap<(Op<'c>, usize), OperandId>,
    ops: IndexVec<OpId, Op<'c>>,
    symbols: Symbols<'c>,
    /// The listed regions.
    regions: HashMap<Region<'c>, RegionId>,
}

impl<'c> Collector<'c, '_> {
    /// Operations, results, regions and arguments: every value that an alias can name must have its id first.
    ///
    /// `writable` takes the positions of a block and of its argument.
    fn region(&mut self, blocks: &[ListedBlock<'c>], id: RegionId, writable: &dyn Fn(usize, usize) -> bool) {
        let ids: Vec<BlockId> = blocks.iter().map(|_| self.builder.block(id)).collect();
        if blocks.len() > 1 {
            let id_of: HashMap<Block, BlockId> = blocks.iter().zip(&ids).map(|(b, id)| (b.block, *id)).collect();
            for (from, block) in ids.iter().zip(blocks) {
                for successor in block.block.successors() {
                    if let Some(to) = id_of.get(&successor) {
                        self.builder.block_successor(*from, *to);
                    }
                }
            }
        }
        for (position, (block, id)) in blocks.iter().zip(ids).enumerate() {
            for (index, arg) in block.block.args().into_iter().enumerate().filter(|(_, a)| a.ty().is_tensor()) {
                let info = ValueInfo {
                    buffer: BufferInfo { writable: writable(position, index), ..BufferInfo::default() },
                    ..self.info(arg)
                };
                let value = self.builder.argument(id, info);
                self.name(arg, value);
            }
            for op in &block.ops {
                self.op(op, id);
            }
        }
    }

    fn info(&self, value: Value<'c>) -> ValueInfo {
        ValueInfo {
            size_bytes: value.ty().static_size_bytes(),
            // A tensor that cannot be copied is reported separately, and the copy is refused at its insertion.
            ranked: true,
            label: u32::try_from(self.values.len()).unwrap_or(u32::MAX),
            ..ValueInfo::default()
        }
    }

    fn name(&mut self, value: Value<'c>, id: ValueId) {
        self.values.push(value);
        self.value_ids.insert(value, id);
    }

    fn op(&mut self, listed: &Listed<'c>, block: BlockId) {
        let op = listed.op;
        let label = u32::try_from(self.ops.len()).unwrap_or(u32::MAX);
        let id = self.builder.op(block, label);
        if op.is_terminator() && op.successors().is_empty() {
            self.builder.gives_out(id);
        }
        self.ops.push(op);
        let model = self.models.taking_part(op, self.options).cloned();
        for (index, result) in op.results().into_iter().enumerate().filter(|(_, r)| r.ty().is_tensor()) {
            // A result of an op that stays on tensors is not writable.
            let foreign = BufferInfo { writable: false, definition: Definition::Always, allocates: false };
            let known = model.as_ref().map_or(foreign, |m| m.result(op, index));
            let lent = model.as_ref().is_none_or(|m| m.is_result_writable(op, index, self.callees));
            let buffer = BufferInfo { writable: known.writable && lent, ..known };
            let info = ValueInfo { buffer, ..self.info(result) };
            let value = self.builder.result(id, info);
            self.name(result, value);
        }
        let mut region_ids = Vec::new();
        for (index, blocks) in listed.regions.iter().enumerate() {
            let known = model.as_ref().map_or_else(|| region_of_others(op, index), |m| m.region(op, index));
            let writable = model.as_ref().is_some_and(|m| m.are_arguments_writable(op, index));
            let region_id = self.builder.region(Some(id), known);
            region_ids.push(region_id);
            self.regions.insert(op.region(index), region_id);
            self.region(blocks, region_id, &|_, _| writable);
        }
        if let Some(edges) = model.as_ref().and_then(|m| m.region_branches(op)) {
            self.builder.region_branch(id);
            for (from, to) in edges {
                if let (Some(from), Some(to)) = (region_ids.get(from), region_ids.get(to)) {
                    self.builder.region_successor(*from, *to);
                }
            }
        }
    }

    /// Operands, their aliases, and subsets.
    fn uses(&mut self) {
        for (id, op) in self.ops.iter_enumerated().map(|(id, op)| (id, *op)).collect::<Vec<_>>() {
            let model = self.models.taking_part(op, self.options).cloned();
            for (index, operand) in op.operands().into_iter().enumerate().filter(|(_, v)| v.ty().is_tensor()) {
                let Some(&value) = self.value_ids.get(&operand) else { continue };
                let used = model.as_ref().map_or(UseModel::READ_WRITE, |m| m.use_of(op, index, self.callees));
                let reads = used.reads.with_ids(|v| self.value_ids.get(&v).copied());
                let is_left = |op, index| {
                    inserts_into_what_stays(op, index, |op| self.models.taking_part(op, self.options).is_some())
                };
                // Without an analysis an operand that should be copied and cannot be is an error.
                let is_uncopiable =
                    model.is_some() && operand.ty().is_unranked_tensor() && !self.options.copy_before_write;
                let fact = UseFact {
                    reads,
                    writes: used.writes,
                    must_in_place: used.must_in_place && !is_left(op, index) || is_uncopiable,
                    elementwise: used.elementwise,
                };
                let operand_id = self.builder.operand(id, value, fact);
                self.operands.push(Use { op, index });
                self.operand_ids.insert((op, index), operand_id);
                let aliases =
                    model.as_ref().map_or_else(|| unknown_aliases(op), |m| m.aliases(op, index, self.callees));
                for alias in aliases {
                    self.alias(operand_id, alias);
                }
                for value in model.as_ref().map(|m| m.flows(op, index)).unwrap_or_default() {
                    if let Some(&value) = self.value_ids.get(&value) {
                        self.builder.flow(operand_id, value);
                    }
                }
            }
            for (index, argument) in model.as_ref().map(|m| m.passes_to_blocks(op)).unwrap_or_default() {
                self.pass_to_block(op, index, argument);
            }
            for (a, b) in model.as_ref().map(|m| m.shared_results(op, self.callees)).unwrap_or_default() {
                if let (Some(&a), Some(&b)) = (self.value_ids.get(&op.result(a)), self.value_ids.get(&op.result(b))) {
                    self.builder.share(a, b);
                }
            }
            if let Some(subset) = model.and_then(|m| m.subset(op)) {
                self.subset(id, op, subset);
            }
        }
    }

    fn pass_to_block(&mut self, op: Op<'c>, index: usize, argument: Value<'c>) {
        let Some(&operand) = self.operand_ids.get(&(op, index)) else { return };
        self.alias(operand, AliasModel::maybe_equivalent(argument));
        if let Some(&value) = self.value_ids.get(&argument) {
            self.builder.flow(operand, value);
        }
    }

    fn share(&mut self, a: Value<'c>, b: Value<'c>) {
        if let (Some(&a), Some(&b)) = (self.value_ids.get(&a), self.value_ids.get(&b)) {
            self.builder.share(a, b);
        }
    }

    fn alias(&mut self, operand: OperandId, alias: AliasModel<'c>) {
        let Some(&value) = self.value_ids.get(&alias.value) else { return };
        let relation = alias.relation.with_ids(|v| self.value_ids.get(&v).copied());
        self.builder.alias(operand, Alias { value, relation, definite: alias.definite, retypes: alias.retypes });
    }

    fn subset(&mut self, id: OpId, op: Op<'c>, subset: SubsetModel<'c>) {
        match subset {
            SubsetModel::Extraction { container, result, slice } => {
                let slice = self.slice(&slice);
                let slice = self.builder.slice(slice);
                let (Some(&container), Some(&result)) =
                    (self.operand_ids.get(&(op, container)), self.value_ids.get(&result))
                else {
                    return;
                };
                self.builder.subset(id, Subset::Extraction { container, result, slice });
            }
            SubsetModel::Insertion { source, destination, slice } => {
                if slice
                    .as_ref()
                    .is_some_and(|s| moves_over_outer(self.models, self.options, op, op.operand(destination), s))
                {
                    return;
                }
                let slice = slice.map(|s| self.slice(&s)).map(|s| self.builder.slice(s));
                let source = source.and_then(|source| self.operand_ids.get(&(op, source)).copied());
                let Some(&destination) = self.operand_ids.get(&(op, destination)) else { return };
                self.builder.subset(id, Subset::Insertion { source, destination, slice });
            }
        }
    }

    fn slice(&mut self, slice: &SliceModel<'c>) -> Slice {
        let mut numbers =
            |list: &[Index<'c>]| -> Vec<Affine> { list.iter().map(|i| self.symbols.affine(*i)).collect() };
        Slice { offsets: numbers(&slice.offsets), sizes: numbers(&slice.sizes), strides: numbers(&slice.strides) }
    }

    /// Where the symbols of slices are defined. A term has a value wherever its numbers have one: in the innermost region of
    /// theirs, which was numbered last.
    fn symbol_scopes(&mut self) {
        let mut scopes: Vec<Option<RegionId>> = Vec::new();
        for (symbol, origin) in (0u32..).zip(self.symbols.origins()) {
            let scope = match origin {
                Origin::Value(value) => self.listed_region(*value),
                Origin::Term(numbers) => {
                    let of = |number: &u32| scopes.get(*number as usize).copied().flatten();
                    numbers.iter().map(of).try_fold(RegionId::new(0), |inner, scope| Some(inner.max(scope?)))
                }
            };
            if let Some(scope) = scope {
                self.builder.symbol(symbol, scope);
            }
            scopes.push(scope);
        }
    }

    /// The innermost listed region around the definition of a value.
    fn listed_region(&self, value: Value<'c>) -> Option<RegionId> {
        let mut region = value.block()?.region()?;
        loop {
            if let Some(id) = self.regions.get(&region) {
                return Some(*id);
            }
            region = region.blocks().first()?.parent_op()?.block()?.region()?;
        }
    }

    fn finish(mut self, function: Op<'c>) -> Result<Collected<'c>, Diagnostics> {
        self.symbol_scopes();
        let facts = self.builder.finish().map_err(|error| {
            let message = format!("the facts about this function do not fit together: {error}");
            Diagnostics::from(
                Diagnostic::error("B0103", function.location(), message)
                    .with_help("an op model names a wrong operand or value"),
            )
        })?;
        Ok(Collected {
            facts,
            values: self.values,
            value_ids: self.value_ids,
            operands: self.operands,
            operand_ids: self.operand_ids,
            ops: self.ops,
        })
    }
}
