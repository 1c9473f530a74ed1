//! The state of upstream's form: ownership of memrefs by block, and the rewriter.

use monopour_ir::control_flow::{Traits, successor_operands};
use monopour_ir::ops;
use monopour_ir::typed::{Index, Slice, bufferization, memref};
use monopour_ir::{
    Block, Diagnostic, Diagnostics, HandleMap, InsertionPoint, Location, Op, OpSpec, Rewriter, Type, Value,
};

use crate::callees::Callees;
use crate::control_flow::Liveness;
use crate::indicators::{If, if_owned};
use crate::models::OwnershipModels;
use crate::ownership::BlockOwnership;
use crate::{Options, Stats};

/// The state of one block.
#[derive(Default)]
struct Scope<'c> {
    ownership: HandleMap<Value<'c>, BlockOwnership<'c>>,
    /// Freed at the end unless forwarded, in this order.
    candidates: Vec<Value<'c>>,
    /// The constants false and true, once created.
    constants: [Option<Value<'c>>; 2],
}

/// The memrefs to free at the end of a block: base buffers, each with its indicator.
#[derive(Clone, Debug, Default)]
pub struct Freeable<'c> {
    /// Base buffers, because a view cannot be freed.
    pub bases: Vec<Value<'c>>,
    /// The indicator of each.
    pub conditions: Vec<Value<'c>>,
}

/// The indicators of the memrefs that a dealloc retained.
#[derive(Clone, Debug, Default)]
pub struct Retained<'c> {
    /// Of the memrefs that a terminator forwards, in order.
    pub forwarded: Vec<Value<'c>>,
    /// Of each retained memref, forwarded ones first.
    pub retained: Vec<(Value<'c>, Value<'c>)>,
}

/// The state of one function.
pub struct State<'c, 'a> {
    rw: Rewriter<'c>,
    models: &'a OwnershipModels,
    options: &'a Options,
    callees: &'a Callees<'c>,
    stats: &'a mut Stats,
    liveness: Liveness<'c>,
    scopes: HandleMap<Block<'c>, Scope<'c>>,
}

impl std::fmt::Debug for State<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("options", self.options).finish_non_exhaustive()
    }
}

impl<'c, 'a> State<'c, 'a> {
    pub(crate) fn new(
        function: Op<'c>,
        models: &'a OwnershipModels,
        options: &'a Options,
        callees: &'a Callees<'c>,
        stats: &'a mut Stats,
    ) -> Self {
        let (rw, liveness) = (Rewriter::new(function.context()), Liveness::of(function));
        stats.steps += liveness.steps;
        Self { rw, models, options, callees, stats, liveness, scopes: HandleMap::default() }
    }
    /// The options of the pass.
    pub fn options(&self) -> &Options {
        self.options
    }
    /// The rewriter; set its insertion point before creating ops, or use [`Self::create_before`].
    pub fn rewriter(&mut self) -> &mut Rewriter<'c> {
        &mut self.rw
    }
    /// Creates an operation right before another.
    ///
    /// # Errors
    /// As [`OpSpec::build`].
    pub fn create_before(&mut self, at: Op<'c>, spec: OpSpec<'c, '_>) -> Result<Op<'c>, Diagnostics> {
        self.before(at).create(spec)
    }
    /// The rewriter, with its insertion point before an op.
    pub fn before(&mut self, at: Op<'c>) -> &mut Rewriter<'c> {
        self.rw.set_point(InsertionPoint::Before(at));
        &mut self.rw
    }
    /// `i1`.
    pub fn bit(&self) -> Type<'c> {
        Type::integer(self.rw.context(), 1)
    }
    /// A constant indicator, created once at the start of a block.
    pub fn constant(&mut self, block: Block<'c>, is_set: bool) -> Value<'c> {
        let slot = usize::from(is_set);
        if let Some(known) = self.scopes.entry(block).or_default().constants[slot] {
            return known;
        }
        let loc = block.parent_op().map_or_else(|| Location::unknown(self.rw.context()), Op::location);
        self.rw.set_point(InsertionPoint::Start(block));
        let value = self.rw.const_bool(is_set, loc);
        self.scopes.entry(block).or_default().constants[slot] = Some(value);
        value
    }

    /// The ownership of a memref in a block. A memref captured from outside the region is not owned.
    pub fn ownership(&mut self, value: Value<'c>, block: Block<'c>) -> BlockOwnership<'c> {
        if let Some(known) = self.scopes.get(&block).and_then(|scope| scope.ownership.get(&value)) {
            return *known;
        }
        let is_captured = value.block().and_then(Block::region) != block.region();
        if is_captured { BlockOwnership::Unique(self.constant(block, false)) } else { BlockOwnership::Uninitialized }
    }
    /// Sets the ownership of a memref in a block.
    pub fn set(&mut self, value: Value<'c>, block: Block<'c>, ownership: BlockOwnership<'c>) {
        self.stats.steps += 1;
        if self.scopes.entry(block).or_default().ownership.insert(value, ownership).is_none() {
            self.stats.memrefs += 1;
        }
    }
    /// Replaces the ownership of a memref by the result of the dealloc before a terminator.
    pub(crate) fn take_over(&mut self, terminator: Op<'c>, value: Value<'c>, indicator: Value<'c>) {
        if let Some(block) = terminator.block() {
            self.set(value, block, BlockOwnership::Unique(indicator));
        }
    }
    /// Lets the end of the block free a memref that it owns and does not forward.
    pub fn add_candidate(&mut self, value: Value<'c>, block: Block<'c>) {
        self.scopes.entry(block).or_default().candidates.push(value);
    }
    /// Memrefs live into a block.
    pub(crate) fn live_in(&self, block: Block<'c>) -> Vec<Value<'c>> {
        self.liveness.live_in(block)
    }

    /// Whether callers of a function statically own all memrefs that it returns.
    pub fn promises_results(&self, function: Op<'c>) -> bool {
        Traits::of(function).is_function() && !self.callees.passes_indicators(function)
    }
    /// Whether a call has an additional indicator result for each memref result.
    pub fn callee_passes_indicators(&self, call: Op<'c>) -> bool {
        self.callees.callee_of(call).is_some_and(|callee| self.callees.passes_indicators(callee))
    }

    /// Recreates an operation with this many indicators after its results.
    ///
    /// # Errors
    /// MLIR's diagnostics for the operation.
    pub fn append_results(&mut self, op: Op<'c>, count: usize) -> Result<Op<'c>, Diagnostics> {
        if count == 0 {
            return Ok(op);
        }
        let bit = self.bit();
        let mut results: Vec<Type> = op.results().iter().map(|r| r.ty()).collect();
        results.extend(std::iter::repeat_n(bit, count));
        self.rw.set_point(InsertionPoint::Before(op));
        let new = self.rw.recreate(op, &op.operands(), &results)?;
        let kept: Vec<Value> = new.results()[..op.num_results()].to_vec();
        for (old, value) in op.results().into_iter().zip(&kept) {
            self.liveness.replace(old, *value);
        }
        self.rw.replace_op(op, &kept);
        Ok(new)
    }

    /// The memrefs that the block of a terminator may free there.
    ///
    /// # Errors
    /// D0111 for a candidate of unknown ownership.
    pub fn freeable(&mut self, terminator: Op<'c>) -> Result<Freeable<'c>, Diagnostics> {
        let Some(block) = terminator.block() else { return Ok(Freeable::default()) };
        let mut found = Freeable::default();
        for value in self.scopes.entry(block).or_default().candidates.clone() {
            self.stats.steps += 1;
            let Some(indicator) = self.ownership(value, block).indicator() else { return Err(unowned(value).into()) };
            found.bases.push(self.base(terminator, value)?);
            found.conditions.push(indicator);
        }
        Ok(found)
    }
    /// Inserts a dealloc before a terminator, which retains its operands for the successor and the memrefs live there.
    /// Without a successor, nothing is retained.
    ///
    /// # Errors
    /// D0110 for a branch with unknown successor operands.
    pub fn dealloc(
        &mut self,
        terminator: Op<'c>,
        freeable: &Freeable<'c>,
        successor: Option<usize>,
    ) -> Result<Retained<'c>, Diagnostics> {
        let Some(number) = successor else { return self.dealloc_but(terminator, freeable, &[], &[]) };
        let operands = successor_operands(terminator, number).ok_or_else(|| unpassable(terminator))?;
        let memrefs: Vec<Value> = operands.of(terminator).into_iter().filter(|v| v.ty().is_memref()).collect();
        let live = terminator.successors().get(number).map_or(vec![], |block| self.live_in(*block));
        self.dealloc_but(terminator, freeable, &memrefs, &live)
    }
    /// Inserts a dealloc that retains the memrefs forwarded to the parent operation; returns their indicators.
    ///
    /// # Errors
    /// As [`Self::freeable`].
    pub fn free_rest(&mut self, terminator: Op<'c>, forwarded: &[Value<'c>]) -> Result<Vec<Value<'c>>, Diagnostics> {
        let freeable = self.freeable(terminator)?;
        let retained = self.dealloc_but(terminator, &freeable, forwarded, &[])?;
        for (value, indicator) in retained.retained {
            self.take_over(terminator, value, indicator);
        }
        Ok(retained.forwarded)
    }

    fn dealloc_but(
        &mut self,
        at: Op<'c>,
        freeable: &Freeable<'c>,
        forwarded: &[Value<'c>],
        live: &[Value<'c>],
    ) -> Result<Retained<'c>, Diagnostics> {
        let values: Vec<Value> = forwarded.iter().chain(live).copied().collect();
        let Some(block) = at.block().filter(|_| !(freeable.bases.is_empty() && values.is_empty())) else {
            return Ok(Retained::default());
        };
        let indicators = if freeable.bases.is_empty() {
            let never = self.constant(block, false);
            vec![never; values.len()]
        } else {
            self.stats.deallocs += 1;
            let spec = bufferization::dealloc(at.location(), &freeable.bases, &freeable.conditions, &values);
            self.create_before(at, spec)?.results()
        };
        let of_forwarded = indicators[..forwarded.len()].to_vec();
        Ok(Retained { forwarded: of_forwarded, retained: values.into_iter().zip(indicators).collect() })
    }

    /// A memref that the block of a terminator certainly owns: the same one, or a copy.
    ///
    /// # Errors
    /// MLIR's diagnostics for the new ops.
    pub fn owned(&mut self, terminator: Op<'c>, value: Value<'c>) -> Result<Value<'c>, Diagnostics> {
        let Some(block) = terminator.block() else { return Ok(value) };
        let (loc, ty) = (terminator.location(), value.ty());
        let ownership = match self.ownership(value, block) {
            // The operation's model may know more, in its own block.
            BlockOwnership::Unknown => self.model_indicator(terminator, value, block)?,
            known => known,
        };
        if ownership.is_always() {
            return Ok(value);
        }
        self.stats.clones += 1;
        let at = InsertionPoint::Before(terminator);
        self.rw.set_point(at);
        let new = match ownership.indicator() {
            None => clone_of(&mut self.rw, loc, value)?,
            Some(indicator) => {
                let clone = |rw: &mut Rewriter<'c>| clone_of(rw, loc, value).map(|v| vec![v]);
                if_owned(&mut self.rw, If::new(at, loc, indicator, &[ty]), |_| Ok(vec![value]), clone)?.result(0)
            }
        };
        let always = self.constant(block, true);
        self.set(new, block, BlockOwnership::Unique(always));
        self.add_candidate(new, block);
        Ok(new)
    }

    fn model_indicator(
        &mut self,
        at: Op<'c>,
        value: Value<'c>,
        block: Block<'c>,
    ) -> Result<BlockOwnership<'c>, Diagnostics> {
        let Some(op) = value.defining_op().filter(|op| op.block() == Some(block)) else {
            return Ok(BlockOwnership::Unknown);
        };
        let Some(model) = self.models.by_name(op).cloned() else { return Ok(BlockOwnership::Unknown) };
        Ok(model.indicator(op, at, self)?.map_or(BlockOwnership::Unknown, BlockOwnership::Unique))
    }

    /// The base buffer of a memref, whatever its offset.
    fn base(&mut self, at: Op<'c>, value: Value<'c>) -> Result<Value<'c>, Diagnostics> {
        let (loc, ty) = (at.location(), value.ty());
        let index = Type::index(self.rw.context());
        let scalar = Type::memref(&[], ty.element(), ty.memref_space());
        if let Some(shape) = ty.shape() {
            let mut results = vec![scalar, index];
            results.extend(std::iter::repeat_n(index, 2 * shape.len()));
            return self.metadata(at, value, &results);
        }
        // Only the address matters, not the rank.
        let spec = memref::reinterpret_cast(loc, value, &first_element(), scalar);
        let ranked = self.create_before(at, spec)?.result(0);
        self.metadata(at, ranked, &[scalar, index])
    }

    fn metadata(&mut self, at: Op<'c>, memref: Value<'c>, results: &[Type<'c>]) -> Result<Value<'c>, Diagnostics> {
        let spec =
            OpSpec::new(ops::memref::EXTRACT_STRIDED_METADATA, at.location()).operands(&[memref]).results(results);
        Ok(self.create_before(at, spec)?.result(0))
    }
}

/// Whether the operation has a memref operand or result.
pub(crate) fn has_memrefs(op: Op) -> bool {
    (0..op.num_operands()).any(|i| op.operand(i).ty().is_memref())
        || (0..op.num_results()).any(|i| op.result(i).ty().is_memref())
}

/// The slice of `memref.reinterpret_cast` that is the first element, without a dimension.
pub(crate) fn first_element<'c>() -> Slice<'c> {
    Slice { offsets: vec![Index::Static(0)], ..Slice::default() }
}

fn clone_of<'c>(rw: &mut Rewriter<'c>, loc: Location<'c>, value: Value<'c>) -> Result<Value<'c>, Diagnostics> {
    Ok(rw.create(OpSpec::new(ops::bufferization::CLONE, loc).operands(&[value]).results(&[value.ty()]))?.result(0))
}

/// For a branch that produces successor operands itself.
pub(crate) fn unpassable(branch: Op) -> Diagnostic {
    let message = "produced operands are not supported";
    Diagnostic::error("D0110", branch.location(), message)
        .with_help("let the branch name all operands that it hands to its successors")
}

fn unowned(value: Value) -> Diagnostic {
    let op = value.defining_op().or_else(|| value.block().and_then(Block::parent_op));
    let message = "MemRef value does not have valid ownership";
    let error = match op {
        Some(op) => Diagnostic::error("D0111", op.location(), message),
        None => Diagnostic::global("D0111", message),
    };
    error.with_help("let the model of the operation that makes the memref set its ownership to one indicator")
}
