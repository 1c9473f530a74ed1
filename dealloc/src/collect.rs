//! One walk over a function on memrefs: its buffers, views, uses and forwarded operands.
//!
//! Limits: regions with several blocks, explicit frees, extracted pointers, ops of unknown effects or with memref results
//! of unknown origin: `lifetimes` handles those.

use monopour_analysis::index::{BlockId, Id, OpId, ValueId};
use monopour_analysis::ownership::{Forward, ForwardTo, MemrefKind, OwnershipError, OwnershipFacts};
use monopour_contract::attributes;
use monopour_ir::control_flow::Traits;
use monopour_ir::ops;
use monopour_ir::{Block, HandleMap, Op, Value, WalkOrder};

/// Results alias the memref operands.
const VIEWS: &[&str] = &[
    ops::arith::SELECT,
    ops::memref::ASSUME_ALIGNMENT,
    ops::arith::INDEX_CAST,
    ops::memref::CAST,
    ops::memref::COLLAPSE_SHAPE,
    ops::memref::EXPAND_SHAPE,
    ops::memref::MEMORY_SPACE_CAST,
    ops::memref::REINTERPRET_CAST,
    ops::memref::RESHAPE,
    ops::memref::SUBVIEW,
    ops::memref::TRANSPOSE,
    ops::memref::VIEW,
    ops::memref::EXTRACT_STRIDED_METADATA,
];
/// Results are fresh buffers to be freed. A function's results are owned by its caller.
const ALLOCATIONS: &[&str] = &[ops::memref::ALLOC, ops::bufferization::CLONE, ops::func::CALL];
/// Results are memory of another owner.
const FOREIGN: &[&str] = &[ops::memref::ALLOCA, ops::memref::GET_GLOBAL, ops::bufferization::TO_BUFFER];
/// Region ops with known forwarding of memrefs.
const REGION_OPS: &[&str] = &[ops::scf::IF, ops::scf::FOR, ops::scf::FORALL, ops::scf::WHILE];

/// The facts of a function, with the IR of their ids.
pub(crate) struct Collected<'c> {
    pub(crate) facts: OwnershipFacts,
    pub(crate) values: Vec<Value<'c>>,
    pub(crate) ops: Vec<Op<'c>>,
    pub(crate) blocks: Vec<Block<'c>>,
    /// (memref, possible alias), by views, operands and forwards.
    pub(crate) aliases: Vec<(ValueId, ValueId)>,
}

/// Whether the body of this op is a dispatch, whose buffers later phases place.
pub(crate) fn is_dispatch(op: Op) -> bool {
    let mapped =
        || op.attr("mapping").and_then(|m| m.as_array()).is_some_and(|m| m.iter().any(|a| a.dialect() == "gpu"));
    op.is(ops::scf::FORALL) && (op.attr(attributes::KERNEL).is_some() || mapped())
}

/// Whether a function's caller donates the argument.
pub(crate) fn is_donated(function: Op, index: usize) -> bool {
    let attrs = function.attr("arg_attrs").and_then(|a| a.as_array()).unwrap_or_default();
    attrs.get(index).is_some_and(|a| a.get(attributes::DONATE).is_some())
}

/// Whether a call donates the operand to its callee.
pub(crate) fn hands_over(call: Op, index: usize) -> bool {
    let numbers = || call.attr(attributes::DONATE).and_then(|a| a.as_ints()).unwrap_or_default();
    call.is(ops::func::CALL) && numbers().iter().any(|number| usize::try_from(*number) == Ok(index))
}

/// Whether this walk covers the function; the bodies of dispatches are skipped.
pub(crate) fn covers(function: Op) -> bool {
    let mut visit = vec![function];
    while let Some(op) = visit.pop() {
        if !is_covered(op) {
            return false;
        }
        if !is_dispatch(op) {
            visit.extend(op.regions().iter().flat_map(|r| r.blocks()).flat_map(Block::ops));
        }
    }
    true
}

/// Whether the op's memory effects are unknown.
pub(crate) fn has_unknown_effects(op: Op) -> bool {
    let traits = Traits::of(op);
    let is_described = traits.has_memory_effects() || traits.has_recursive_effects() || traits.is_call();
    !is_described && !op.is_terminator() && !op.is(ops::bufferization::DEALLOC)
}

/// One block per region, no frees, known memory effects, and known forwarding of memrefs.
fn is_covered(op: Op) -> bool {
    if has_memrefs(op) && has_unknown_effects(op) {
        return false;
    }
    let touches = || op.nested(WalkOrder::Pre).iter().any(|o| has_memrefs(*o));
    if op.regions().iter().any(|r| r.blocks().len() > 1) && touches() {
        return false;
    }
    // An extracted pointer is an alias that is not tracked.
    let others = [
        ops::memref::DEALLOC,
        ops::bufferization::DEALLOC,
        ops::memref::REALLOC,
        ops::memref::EXTRACT_ALIGNED_POINTER_AS_INDEX,
    ];
    if others.contains(&op.name()) {
        return false;
    }
    let makes = op.results().iter().any(|r| r.ty().is_memref());
    let known = [VIEWS, ALLOCATIONS, FOREIGN, REGION_OPS].iter().any(|list| list.contains(&op.name()));
    let holds = op.operands().iter().chain(&op.results()).any(|v| v.ty().is_memref() && v.ty().element().is_memref());
    if (makes && !known) || holds {
        return false;
    }
    let carries = op.body().is_some_and(|b| b.args().iter().any(|a| a.ty().is_memref()));
    !carries || REGION_OPS.contains(&op.name()) || op.is(ops::func::FUNC) || op.dialect() == "linalg"
}

/// Whether the op has a memref operand or result.
pub(crate) fn has_memrefs(op: Op) -> bool {
    op.operands().iter().chain(&op.results()).any(|v| v.ty().is_memref())
}

/// Collects a covered function.
pub(crate) fn collect<'c>(function: Op<'c>) -> Result<Collected<'c>, OwnershipError> {
    let mut walk = Walk {
        out: Collected { facts: OwnershipFacts::new(), values: vec![], ops: vec![], blocks: vec![], aliases: vec![] },
        ids: HandleMap::default(),
    };
    let Some(body) = function.body() else { return Ok(walk.out) };
    let id = walk.block(body, None);
    for (index, arg) in body.args().into_iter().enumerate().filter(|(_, a)| a.ty().is_memref()) {
        // The function owns a donated input, as if it had allocated it.
        let kind = if is_donated(function, index) { MemrefKind::Allocation } else { MemrefKind::Foreign };
        let value = walk.out.facts.argument(id, kind);
        walk.name(arg, value);
    }
    walk.ops(body, id)?;
    Ok(walk.out)
}

struct Walk<'c> {
    out: Collected<'c>,
    ids: HandleMap<Value<'c>, ValueId>,
}

impl<'c> Walk<'c> {
    fn name(&mut self, value: Value<'c>, id: ValueId) {
        debug_assert_eq!(id.index(), self.out.values.len(), "values are named in order");
        self.out.values.push(value);
        self.ids.insert(value, id);
    }

    fn source(&mut self, value: ValueId, source: ValueId) {
        self.out.facts.source(value, source);
        self.out.aliases.push((source, value));
    }

    fn block(&mut self, block: Block<'c>, parent: Option<OpId>) -> BlockId {
        self.out.blocks.push(block);
        self.out.facts.block(parent)
    }

    fn ops(&mut self, block: Block<'c>, id: BlockId) -> Result<(), OwnershipError> {
        for op in block.ops() {
            let op_id = self.out.facts.op(id);
            self.out.ops.push(op);
            self.op(op, op_id)?;
        }
        Ok(())
    }

    fn op(&mut self, op: Op<'c>, id: OpId) -> Result<(), OwnershipError> {
        let kind = match op.name() {
            name if ALLOCATIONS.contains(&name) => MemrefKind::Allocation,
            name if FOREIGN.contains(&name) => MemrefKind::Foreign,
            name if VIEWS.contains(&name) => MemrefKind::View,
            // Its memrefs move between its regions with their ownership.
            ops::scf::WHILE => MemrefKind::Allocation,
            _ => MemrefKind::RegionResult,
        };
        let operands: Vec<ValueId> = op.operands().iter().filter_map(|v| self.ids.get(v).copied()).collect();
        for result in op.results().into_iter().filter(|r| r.ty().is_memref()) {
            let value = self.out.facts.result(id, kind)?;
            self.name(result, value);
            if kind == MemrefKind::View {
                for source in &operands {
                    self.source(value, *source);
                }
            }
        }
        for operand in &operands {
            self.out.facts.uses(id, *operand);
        }
        self.forwards(op, id);
        if is_dispatch(op) {
            self.captured(op, id);
            return Ok(());
        }
        for region in op.regions() {
            for block in region.blocks() {
                let block_id = self.block(block, Some(id));
                self.arguments(op, block, block_id);
                self.ops(block, block_id)?;
            }
        }
        Ok(())
    }

    /// Iteration arguments of a loop.
    fn arguments(&mut self, op: Op<'c>, block: Block<'c>, id: BlockId) {
        for (index, arg) in block.args().into_iter().enumerate().filter(|(_, a)| a.ty().is_memref()) {
            let kind = if op.is(ops::scf::WHILE) { MemrefKind::Allocation } else { MemrefKind::RegionArgument };
            let value = self.out.facts.argument(id, kind);
            self.name(arg, value);
            // Lower bound, upper bound and step come before the initial values; the induction variable before the arguments.
            let init = op.is(ops::scf::FOR).then(|| op.operand(index + 2)).and_then(|v| self.ids.get(&v).copied());
            if let Some(init) = init {
                self.source(value, init);
                // A loop that does not run returns its initial value.
                if let Some(result) = self.ids.get(&op.result(index - 1)).copied() {
                    self.source(result, init);
                }
            }
        }
    }

    /// The operands that a terminator forwards.
    fn forwards(&mut self, op: Op<'c>, id: OpId) {
        let Some(parent) = op.parent().filter(|_| op.is_terminator()) else { return };
        for (index, operand) in op.operands().into_iter().enumerate() {
            let Some(value) = self.ids.get(&operand).copied() else { continue };
            let mut targets = Vec::new();
            if op.is(ops::func::RETURN) || parent.is(ops::scf::WHILE) {
                targets.push(ForwardTo::Caller);
            } else if op.is(ops::scf::YIELD) {
                if parent.is(ops::scf::FOR) {
                    targets.extend(
                        parent
                            .body()
                            .map(|b| b.arg(index + 1))
                            .and_then(|a| self.ids.get(&a))
                            .map(|v| ForwardTo::Value(*v)),
                    );
                }
                targets.extend(self.ids.get(&parent.result(index)).map(|v| ForwardTo::Value(*v)));
            }
            for to in targets {
                if let ForwardTo::Value(target) = to {
                    self.out.aliases.push((value, target));
                }
                self.out.facts.forward(Forward { terminator: id, value, to });
            }
        }
    }

    /// All values that a dispatch captures.
    fn captured(&mut self, dispatch: Op<'c>, id: OpId) {
        let mut seen = Vec::new();
        for op in dispatch.nested(WalkOrder::Pre) {
            for operand in op.operands() {
                if let Some(value) = self.ids.get(&operand).copied().filter(|v| !seen.contains(v)) {
                    seen.push(value);
                    self.out.facts.uses(id, value);
                }
            }
        }
    }
}
