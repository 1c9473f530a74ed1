//! A walk over a function with any control flow: memrefs, their aliases, and how they are forwarded.

use monopour_ir::ops;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use monopour_analysis::index::{BlockId, Id, OpId, RegionId, ValueId};
use monopour_analysis::lifetimes::{Edge, Flow, Kind, LifetimeFacts, Set};
use monopour_analysis::ownership::Ownership;
use monopour_ir::control_flow::{successor_operands, view_source};
use monopour_ir::{Block, Diagnostic, Diagnostics, HandleMap, Op, Region, Value, WalkOrder};

use super::regions::{self, RegionFlow};
use super::{Summaries, View, by_hand};
use crate::collect::{has_unknown_effects, is_dispatch, is_donated};
use crate::models::ResultMemory;

/// Results are fresh buffers of the heap.
pub(super) const ALLOCATIONS: &[&str] = &[ops::memref::ALLOC, ops::memref::REALLOC, ops::bufferization::CLONE];
/// Results are memory of another owner.
const FOREIGN: &[&str] =
    &[ops::memref::ALLOCA, ops::memref::GET_GLOBAL, ops::bufferization::TO_BUFFER, ops::ub::POISON];
/// Ops of these dialects compute with extracted pointers; their results may point into the same buffer.
const ARITHMETIC: &[&str] = &["arith", "index", "llvm", "builtin", "ptr", "math"];

/// The facts of a function, with the IR of their ids.
pub(super) struct Collected<'c> {
    pub(super) function: Op<'c>,
    pub(super) facts: LifetimeFacts,
    pub(super) values: Vec<Value<'c>>,
    pub(super) ops: Vec<Op<'c>>,
    pub(super) blocks: Vec<Block<'c>>,
    /// The blocks of each region.
    pub(super) regions: Vec<Vec<BlockId>>,
    /// Regions of each operation that has some.
    pub(super) regions_of: HashMap<OpId, Vec<RegionId>>,
    /// How each operation or terminator forwards memrefs between regions.
    pub(super) flows: HashMap<OpId, RegionFlow<'c>>,
    /// Calls that could consume a memref: the name of the callee, and the number of the memref operand.
    pub(super) transferable: Vec<(OpId, ValueId, String, usize)>,
    /// Calls with their donated operands.
    pub(super) handed_over: BTreeMap<OpId, Vec<i32>>,
    /// Explicit frees that are dropped.
    pub(super) dropped: Vec<OpId>,
    /// Memrefs of operations of unknown effects, which may own them.
    pub(super) unknown: BTreeSet<ValueId>,
    /// Reallocated memrefs, which have a new id.
    roots: HandleMap<Value<'c>, ValueId>,
}

impl<'c> Collected<'c> {
    /// The memref that a value is, or is a view of.
    pub(super) fn root(&self, value: Value<'c>) -> Option<ValueId> {
        let mut value = value;
        loop {
            if let Some(id) = self.roots.get(&value) {
                return Some(*id);
            }
            value = shown(value)?;
        }
    }

    /// Replaces a value.
    pub(super) fn replace(&mut self, old: Value<'c>, new: Value<'c>) {
        if let Some(root) = self.roots.remove(&old) {
            self.roots.insert(new, root);
            self.values[root.index()] = new;
        }
    }

    /// The number of a memref among the memref arguments of the function.
    pub(super) fn argument_number(&self, value: ValueId) -> Option<usize> {
        let entry = *self.blocks.first()?;
        let args = entry.args().into_iter().filter(|a| a.ty().is_memref());
        args.into_iter().position(|a| self.roots.get(&a) == Some(&value))
    }
}

fn extracts_pointer(op: &Op) -> bool {
    op.is(ops::memref::EXTRACT_ALIGNED_POINTER_AS_INDEX)
}

/// The source of a view.
fn shown<'c>(value: Value<'c>) -> Option<Value<'c>> {
    let op = value.defining_op()?;
    if let Some(source) = view_source(op) {
        return Some(source).filter(|v| v.ty().is_memref());
    }
    if op.dialect() != "memref" || ALLOCATIONS.contains(&op.name()) || FOREIGN.contains(&op.name()) {
        return None;
    }
    // The first memref operand is the source.
    op.operands().into_iter().find(|v| v.ty().is_memref())
}

pub(super) fn collect<'c>(
    function: Op<'c>,
    summaries: &Summaries,
    view: View<'_>,
) -> Result<Collected<'c>, Diagnostics> {
    let out = Collected {
        function,
        facts: LifetimeFacts::new(),
        values: vec![],
        ops: vec![],
        blocks: vec![],
        regions: vec![],
        regions_of: HashMap::new(),
        flows: HashMap::new(),
        transferable: vec![],
        handed_over: BTreeMap::new(),
        dropped: vec![],
        unknown: BTreeSet::new(),
        roots: HandleMap::default(),
    };
    let mut walk = Walk {
        out,
        summaries,
        view,
        extracts: false,
        op_ids: HandleMap::default(),
        block_ids: HandleMap::default(),
        errors: Diagnostics::default(),
    };
    walk.region(function, function.region(0), None);
    walk.arguments();
    walk.extracts = walk.out.ops.iter().any(extracts_pointer);
    for id in 0..walk.out.ops.len() {
        let op = walk.out.ops[id];
        walk.op(op, OpId::from_index(id));
    }
    walk.pointers();
    let freed = by_hand::settle(&mut walk.out);
    walk.errors.0.extend(freed.0);
    if walk.errors.has_errors() { Err(walk.errors) } else { Ok(walk.out) }
}

struct Walk<'c, 'a> {
    out: Collected<'c>,
    summaries: &'a Summaries,
    view: View<'a>,
    /// Whether an address is extracted: accesses through it are not followed into calls.
    extracts: bool,
    op_ids: HandleMap<Op<'c>, OpId>,
    block_ids: HandleMap<Block<'c>, BlockId>,
    errors: Diagnostics,
}

impl<'c> Walk<'c, '_> {
    /// Numbers blocks, operations and memrefs.
    fn region(&mut self, op: Op<'c>, region: Region<'c>, parent: Option<OpId>) {
        let id = self.out.facts.region(parent);
        self.out.regions.push(vec![]);
        if let Some(parent) = parent {
            self.out.regions_of.entry(parent).or_default().push(id);
        }
        let blocks = region.blocks();
        for block in &blocks {
            let number = self.out.facts.block(id);
            self.out.blocks.push(*block);
            self.out.regions[id.index()].push(number);
            self.block_ids.insert(*block, number);
            for arg in block.args().into_iter().filter(|a| a.ty().is_memref()) {
                let value = self.out.facts.argument(number, Kind::Passed);
                self.name(arg, value);
            }
        }
        let ends = |b: &Block<'c>| b.ops().last().is_none_or(|op| op.is_terminator() || !op.successors().is_empty());
        if !blocks.iter().all(ends) {
            self.refuse(op, "has blocks without terminators");
        }
        for block in &blocks {
            for op in block.ops() {
                self.declare(op, self.block_ids[block]);
            }
        }
    }

    fn declare(&mut self, op: Op<'c>, block: BlockId) {
        let id = self.out.facts.op(block);
        self.out.ops.push(op);
        self.op_ids.insert(op, id);
        for result in op.results().into_iter().filter(|r| r.ty().is_memref() && shown(*r).is_none()) {
            let value = self.out.facts.result(id, Kind::Passed);
            self.name(result, value);
        }
        if !is_dispatch(op) {
            for region in op.regions() {
                self.region(op, region, Some(id));
            }
        }
    }

    fn name(&mut self, value: Value<'c>, id: ValueId) {
        debug_assert_eq!(id.index(), self.out.values.len(), "memrefs are named in order");
        self.out.values.push(value);
        self.out.roots.insert(value, id);
    }

    fn refuse(&mut self, op: Op<'c>, what: &str) {
        let message = format!("{} {what}, and nothing says who owns it", op.name());
        let error = Diagnostic::error("D0103", op.location(), message)
            .with_help("allocate with memref.alloc, and make views with memref operations");
        self.errors.0.push(error);
    }

    fn arguments(&mut self) {
        let Some(entry) = self.out.blocks.first().copied() else { return };
        let name = self.out.function.symbol_name().unwrap_or_default();
        let consumed = self.view.consumed.get(&name);
        let args = entry.args().into_iter().enumerate().filter(|(_, arg)| arg.ty().is_memref());
        for (number, (index, arg)) in args.enumerate() {
            let Some(id) = self.out.roots.get(&arg).copied() else { continue };
            // The function owns a donated input, as if it had allocated it, and one that it consumes.
            let is_own = is_donated(self.out.function, index) || consumed.is_some_and(|t| t.contains(&number));
            self.out.facts.set_kind(id, if is_own { Kind::Fresh } else { Kind::Foreign });
        }
    }

    fn op(&mut self, op: Op<'c>, id: OpId) {
        // An explicit free counts as a use only if it stays.
        if !by_hand::is_free(op) {
            self.uses(op, id);
        }
        let memrefs: Vec<ValueId> = op.results().iter().filter_map(|r| self.out.roots.get(r).copied()).collect();
        if op.operands().iter().chain(&op.results()).any(|v| v.ty().is_memref() && v.ty().element().is_memref()) {
            self.refuse(op, "stores memrefs in memory");
        }
        if !op.successors().is_empty() {
            self.edges(op, id);
        }
        match op.name() {
            name if ALLOCATIONS.contains(&name) => self.kinds(&memrefs, Kind::Fresh),
            name if FOREIGN.contains(&name) => self.kinds(&memrefs, Kind::Foreign),
            ops::arith::SELECT => self.alias_all(op, &memrefs),
            ops::func::CALL => self.call(op, id, &memrefs),
            ops::func::CALL_INDIRECT => self.kinds(&memrefs, Kind::Fresh),
            _ if is_dispatch(op) && memrefs.is_empty() => {}
            _ if !op.regions().is_empty() || op.is_terminator() => self.flow(op, id, &memrefs),
            _ if memrefs.is_empty() => {}
            _ => self.results(op, &memrefs),
        }
        let operands = self.memref_operands(op);
        if (operands.is_empty() && memrefs.is_empty()) || !has_unknown_effects(op) {
            return;
        }
        if self.view.allows_unknown {
            // The op may keep a pointer.
            for operand in operands.into_iter().chain(memrefs) {
                self.out.facts.pin(operand);
            }
        } else if memrefs.is_empty() && self.view.models.by_name(op).is_none() {
            self.errors.0.push(unknown_effects(op));
        }
    }

    /// The results of an operation that is not known by name.
    fn results(&mut self, op: Op<'c>, memrefs: &[ValueId]) {
        match self.view.models.result_memory(op) {
            Some(ResultMemory::Fresh) => self.kinds(memrefs, Kind::Fresh),
            Some(ResultMemory::Foreign) => self.kinds(memrefs, Kind::Foreign),
            Some(ResultMemory::Operands) => self.alias_all(op, memrefs),
            None if self.view.allows_unknown => {
                self.out.unknown.extend(memrefs);
                self.alias_all(op, memrefs);
            }
            None => self.refuse(op, "makes a memref"),
        }
    }

    fn memref_operands(&self, op: Op<'c>) -> Vec<ValueId> {
        op.operands().into_iter().filter(|v| v.ty().is_memref()).filter_map(|v| self.out.root(v)).collect()
    }

    fn uses(&mut self, op: Op<'c>, id: OpId) {
        let inner = if is_dispatch(op) { op.nested(WalkOrder::Pre) } else { vec![op] };
        let operands: BTreeSet<ValueId> = inner.into_iter().flat_map(|op| self.memref_operands(op)).collect();
        for operand in operands {
            self.out.facts.uses(id, operand);
        }
    }

    fn kinds(&mut self, memrefs: &[ValueId], kind: Kind) {
        memrefs.iter().for_each(|v| self.out.facts.set_kind(*v, kind));
    }

    fn alias_all(&mut self, op: Op<'c>, memrefs: &[ValueId]) {
        self.kinds(memrefs, Kind::Alias);
        let operands = self.memref_operands(op);
        for result in memrefs {
            operands.iter().for_each(|source| self.out.facts.alias(*result, *source));
        }
    }

    fn call(&mut self, op: Op<'c>, id: OpId, memrefs: &[ValueId]) {
        let callee = op.callee().unwrap_or_default();
        let consumed = self.view.consumed.get(callee);
        self.note_transfers(op, id, callee);
        let Some(summary) = self.summaries.get(callee) else { return self.kinds(memrefs, Kind::Fresh) };
        let operands = self.memref_operands(op);
        for (result, (own, aliases)) in memrefs.iter().zip(&summary.results) {
            let kind = match own {
                Ownership::Owned => Kind::Fresh,
                Ownership::NotOwned => Kind::Alias,
                Ownership::Indicator(_) => Kind::Given,
            };
            self.out.facts.set_kind(*result, kind);
            // A consumed operand is returned with its owner, if at all.
            let sources = aliases.iter().filter(|i| kind != Kind::Fresh && consumed.is_none_or(|t| !t.contains(*i)));
            for source in sources.filter_map(|i| operands.get(*i)) {
                self.out.facts.alias(*result, *source);
            }
        }
        for (first, second) in &summary.pairs {
            if let (Some(first), Some(second)) = (memrefs.get(*first), memrefs.get(*second)) {
                self.out.facts.alias(*second, *first);
            }
        }
    }

    /// Records the operands that a callee consumes, or could consume.
    fn note_transfers(&mut self, op: Op<'c>, id: OpId, callee: &str) {
        let (consumed, consumable) = (self.view.consumed.get(callee), self.view.consumable.get(callee));
        if consumed.is_none() && consumable.is_none() {
            return;
        }
        let operands: Vec<(i32, Value)> = (0..).zip(op.operands()).filter(|(_, v)| v.ty().is_memref()).collect();
        for (number, (index, operand)) in operands.iter().enumerate() {
            let Some(root) = self.out.root(*operand) else { continue };
            if consumed.is_some_and(|t| t.contains(&number)) {
                self.out.facts.frees(id, root);
                self.out.handed_over.entry(id).or_default().push(*index);
            }
            // For a view the callee would have to free its source.
            let is_whole = self.out.values[root.index()] == *operand;
            if consumable.is_some_and(|w| w.contains(&number)) && is_whole && !self.extracts {
                let others = operands.iter().enumerate().filter(|(other, _)| *other != number);
                let others = others.filter_map(|(_, (_, v))| self.out.root(*v)).collect();
                self.out.facts.may_transfer(id, root, others);
                self.out.transferable.push((id, root, callee.to_owned(), number));
            }
        }
    }

    fn edges(&mut self, op: Op<'c>, id: OpId) {
        for (index, (block, number)) in op.successors().into_iter().zip(0_u32..).enumerate() {
            let to = self.block_ids[&block];
            let operands = successor_operands(op, index).map(|range| range.of(op));
            let args = block.args();
            let Some(operands) = operands.filter(|o| o.len() == args.len()) else {
                if args.iter().any(|a| a.ty().is_memref()) {
                    let message = format!("{} does not say what it hands to its successors", op.name());
                    let error = Diagnostic::error("D0101", op.location(), message)
                        .with_help("use branches of the dialect cf, or implement BranchOpInterface");
                    self.errors.0.push(error);
                } else {
                    self.out.facts.edge(Edge { from: id, index: number, to, passes: vec![] });
                }
                continue;
            };
            let pairs = args.iter().zip(&operands).filter(|(a, _)| a.ty().is_memref());
            let passes = pairs.filter_map(|(a, o)| Some((*self.out.roots.get(a)?, self.out.root(*o)?))).collect();
            self.out.facts.edge(Edge { from: id, index: number, to, passes });
        }
    }

    /// An operation with regions, or a terminator that leaves one.
    fn flow(&mut self, op: Op<'c>, id: OpId, memrefs: &[ValueId]) {
        let regions = self.out.regions_of.get(&id).cloned().unwrap_or_default();
        let flow = regions::flow_of(op);
        let Some(flow) = flow else {
            let has_memrefs = |block: Block<'c>| block.args().iter().any(|a| a.ty().is_memref());
            if !memrefs.is_empty() || op.regions().iter().filter_map(|r| r.entry()).any(has_memrefs) {
                return self.refuse(op, "passes memrefs through its regions");
            }
            let passes =
                op.is_terminator() && op.operands().iter().any(|v| v.ty().is_memref()) && op.successors().is_empty();
            if passes {
                return self.refuse(op, "passes memrefs on");
            }
            if !regions.is_empty() {
                let targets = regions.into_iter().map(|r| (Set::Region(r), vec![])).collect();
                self.out.facts.flow(Flow { at: id, sources: vec![], targets });
            }
            return;
        };
        let sources = flow.sources.iter().filter_map(|v| self.out.root(*v)).collect();
        let mut targets = Vec::new();
        for (target, values) in &flow.targets {
            let set = match target {
                regions::Target::Region(at, number) => {
                    let of = self.op_ids.get(at).and_then(|id| self.out.regions_of.get(id));
                    of.and_then(|all| all.get(*number)).map(|r| Set::Region(*r))
                }
                regions::Target::Results(at) => self.op_ids.get(at).map(|id| Set::Results(*id)),
                regions::Target::Caller => Some(Set::Caller),
            };
            let values = values.iter().filter_map(|v| self.out.roots.get(v).copied()).collect();
            targets.extend(set.map(|set| (set, values)));
        }
        self.out.facts.flow(Flow { at: id, sources, targets });
        self.out.flows.insert(id, flow);
    }

    /// Ops on an extracted pointer are uses of the buffer, as far as they can be followed.
    fn pointers(&mut self) {
        for op in self.out.ops.clone().into_iter().filter(extracts_pointer) {
            let Some(root) = self.out.root(op.operand(0)) else { continue };
            let (mut work, mut seen) = (op.results(), BTreeSet::new());
            let mut escapes = false;
            while let Some(value) = work.pop() {
                for user in value.uses().into_iter().map(|u| u.op) {
                    let Some(id) = self.op_ids.get(&user).copied() else { continue };
                    if !seen.insert(id) {
                        continue;
                    }
                    self.out.facts.uses(id, root);
                    escapes |= user.is_terminator() || !user.regions().is_empty() || user.is(ops::memref::STORE);
                    let is_pointer = |v: &Value<'c>| !v.ty().is_memref() && !v.ty().is_float();
                    if ARITHMETIC.contains(&user.dialect()) {
                        escapes |= user.results().iter().any(|r| r.ty().is_memref());
                        work.extend(user.results().into_iter().filter(is_pointer));
                    }
                }
            }
            if escapes {
                self.out.facts.pin(root);
            }
        }
    }
}

fn unknown_effects(op: Op) -> Diagnostic {
    let message = format!("{} does not say what it does to memory: it might keep or free its memrefs", op.name());
    Diagnostic::error("D0107", op.location(), message)
        .with_help("give the op memory effects, or allow it with allow-unknown-effects: its memrefs then live to the end of their scope")
}
