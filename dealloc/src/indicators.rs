//! Dynamic ownership: an `i1` travels beside the memref.
//!
//! ```text
//! %r = scf.if %c -> (memref<8xf32>) {             %r, %own = scf.if %c -> (memref<8xf32>, i1) {
//!   %a = memref.alloc() : memref<8xf32>             %a = memref.alloc() : memref<8xf32>
//!   scf.yield %a                            ==>     scf.yield %a, %true
//! } else { scf.yield %arg }                       } else { scf.yield %arg, %false }
//! "use"(%r)                                       "use"(%r)
//!                                                 scf.if %own { memref.dealloc %r }
//! ```
//!
//! A loop's initial value stays with its owner outside, so its indicator starts as false.

use monopour_ir::ops;
use std::collections::{HashMap, HashSet};

use monopour_analysis::index::{Id, OpId, ValueId};
use monopour_analysis::ownership::{Condition, ForwardTo, Owners, Ownership, Place};
use monopour_ir::{Block, Diagnostics, HandleMap, InsertionPoint, Location, Op, OpSpec, Region, Rewriter, Type, Value};

use crate::collect::Collected;
use crate::frees::copy_of;

/// Indicators by value; `collected` is updated when ops are recreated.
pub(crate) struct Indicators<'c> {
    by_value: HashMap<ValueId, Value<'c>>,
    /// Whether each transfer hands ownership over, in the order of transfers.
    gives: Vec<Give>,
    /// Values whose ownership is handed over with a terminator's operand.
    given: HashSet<ValueId>,
    /// Possible aliases of memory that a block frees at its end.
    freed: HashSet<(Block<'c>, ValueId)>,
}

/// Whether a terminator's operand comes with ownership.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Give {
    /// It does.
    Always,
    /// It does not, or it is one of several memrefs: a receiver that has to own it gets a copy.
    Never,
    /// If the indicator of this value is set.
    If(ValueId),
}

/// Decides for each transfer whether ownership goes along with the forwarded value, and which values it leaves.
///
/// A terminator may forward one of several memrefs, some of which its block owns. Then the block frees its own, and a copy is forwarded.
pub(crate) fn gives(collected: &Collected, owners: &Owners) -> (Vec<Give>, HashSet<ValueId>) {
    let ids: HandleMap<Value, ValueId> =
        collected.values.iter().zip(0u32..).map(|(v, i)| (*v, ValueId::new(i))).collect();
    let mut given: HashSet<(OpId, ValueId)> = HashSet::new();
    let mut out = Vec::with_capacity(owners.transfers.len());
    for transfer in &owners.transfers {
        let terminator = transfer.forward.terminator;
        let block = collected.ops[terminator.index()].block();
        let base = base_of(collected.values[transfer.forward.value.index()]);
        let own = ids
            .get(&base)
            .copied()
            .filter(|id| base.block() == block && owners.ownership[*id] != Some(Ownership::NotOwned));
        // A result that is not owned itself may always be the one memref that this block gives away.
        let id = own.or_else(|| single_owner(collected, owners, block, transfer.forward.value));
        let give = match (transfer.ownership, id, id.and_then(|id| owners.ownership[id])) {
            (Some(Ownership::Owned | Ownership::AT_RUN_TIME), Some(id), Some(Ownership::AT_RUN_TIME)) => Give::If(id),
            (Some(Ownership::Owned | Ownership::AT_RUN_TIME), Some(_), Some(Ownership::Owned)) => Give::Always,
            _ => Give::Never,
        };
        // A loop's slot is forwarded twice, to its argument and its result: one transfer of one operand.
        let is_argument =
            matches!(transfer.forward.to, ForwardTo::Value(to) if collected.values[to.index()].defining_op().is_none());
        let first = give == Give::Never || is_argument || id.is_none_or(|id| given.insert((terminator, id)));
        out.push(if first { give } else { Give::Never });
    }
    (out, given.into_iter().map(|(_, value)| value).collect())
}

/// The memref of this block that `value` certainly is, through region ops that only forward it.
fn single_owner(collected: &Collected, owners: &Owners, block: Option<Block>, value: ValueId) -> Option<ValueId> {
    let (mut found, mut seen, mut work) = (HashSet::new(), HashSet::new(), vec![value]);
    while let Some(value) = work.pop() {
        if !seen.insert(value) {
            continue;
        }
        let memref = collected.values[value.index()];
        let is_owner = matches!(owners.ownership[value], Some(Ownership::Owned | Ownership::AT_RUN_TIME));
        if is_owner && memref.block() == block {
            found.insert(value);
            continue;
        }
        let sources = work.len();
        work.extend(collected.aliases.iter().filter(|(_, to)| *to == value).map(|(from, _)| *from));
        // A value from outside, or without a source, has another owner.
        if work.len() == sources || !is_inside(memref.block(), block) {
            return None;
        }
    }
    if found.len() == 1 { found.into_iter().next() } else { None }
}

fn is_inside(inner: Option<Block>, outer: Option<Block>) -> bool {
    let mut at = inner;
    while let Some(block) = at {
        if Some(block) == outer {
            return true;
        }
        at = block.parent_op().and_then(Op::block);
    }
    false
}

/// All possible aliases of memory that a block frees at its end, by block.
fn freed_unless_forwarded<'c>(
    collected: &Collected<'c>,
    owners: &Owners,
    given: &HashSet<ValueId>,
) -> HashSet<(Block<'c>, ValueId)> {
    let mut found = HashSet::new();
    for free in owners.frees.iter().filter(|f| f.condition == Condition::UnlessForwarded && !given.contains(&f.value)) {
        let Place::End(block) = free.place else { continue };
        let block = collected.blocks[block.index()];
        // A region's result may alias another one, through their common origins.
        let origins = closure(vec![free.value], |value| {
            let made = collected.values[value.index()];
            let is_region_value = made
                .defining_op()
                .map_or(made.block() != collected.blocks.first().copied(), |op| !op.regions().is_empty());
            let back = collected.aliases.iter().filter(move |(_, to)| is_region_value && *to == value);
            back.map(|(from, _)| *from).collect()
        });
        let all = closure(origins, |value| {
            collected.aliases.iter().filter(|(from, _)| *from == value).map(|(_, to)| *to).collect()
        });
        found.extend(all.into_iter().map(|value| (block, value)));
    }
    found
}

fn closure(start: Vec<ValueId>, next: impl Fn(ValueId) -> Vec<ValueId>) -> Vec<ValueId> {
    let (mut seen, mut work, mut found) = (HashSet::new(), start, Vec::new());
    while let Some(value) = work.pop() {
        if seen.insert(value) {
            found.push(value);
            work.extend(next(value));
        }
    }
    found
}

/// The source of a chain of views of one memref.
pub(crate) fn base_of<'c>(value: Value<'c>) -> Value<'c> {
    let mut value = value;
    while let Some(op) = value
        .defining_op()
        .filter(|op| op.dialect() == "memref" && op.num_operands() > 0 && op.operand(0).ty().is_memref())
    {
        value = op.operand(0);
    }
    value
}

impl<'c> Indicators<'c> {
    /// Adds an `i1` for every result and argument with dynamic ownership.
    pub(crate) fn add(
        rw: &mut Rewriter<'c>,
        collected: &mut Collected<'c>,
        owners: &Owners,
    ) -> Result<Self, Diagnostics> {
        let (gives, given) = gives(collected, owners);
        let freed = freed_unless_forwarded(collected, owners, &given);
        let mut this = Self { by_value: HashMap::new(), gives, given, freed };
        let ids: HandleMap<Value, ValueId> =
            collected.values.iter().zip(0u32..).map(|(v, i)| (*v, ValueId::new(i))).collect();
        for index in 0..collected.ops.len() {
            let op = collected.ops[index];
            let slots = slots_of(op, owners, &ids);
            if slots.is_empty() {
                continue;
            }
            let new = this.extend(rw, collected, op, &slots, &ids)?;
            collected.ops[index] = new;
        }
        this.terminate(rw, collected, owners)?;
        Ok(this)
    }

    /// Whether the transfer at this position hands ownership over.
    pub(crate) fn give(&self, transfer: usize) -> Give {
        self.gives[transfer]
    }

    /// Whether a terminator forwards the value with its ownership, so that its block does not free it.
    pub(crate) fn is_given(&self, value: ValueId) -> bool {
        self.given.contains(&value)
    }

    /// The indicator of a value with dynamic ownership.
    pub(crate) fn of(&self, value: ValueId) -> Option<Value<'c>> {
        self.by_value.get(&value).copied()
    }

    /// Recreates the op with one more `i1` for each slot.
    fn extend(
        &mut self,
        rw: &mut Rewriter<'c>,
        collected: &mut Collected<'c>,
        op: Op<'c>,
        slots: &[usize],
        ids: &HandleMap<Value<'c>, ValueId>,
    ) -> Result<Op<'c>, Diagnostics> {
        let loc = op.location();
        rw.set_point(InsertionPoint::Before(op));
        let bit = Type::integer(rw.context(), 1);
        let mut operands = op.operands();
        if op.is(ops::scf::FOR) {
            let none = rw.const_bool(false, loc);
            operands.extend(slots.iter().map(|_| none));
        }
        let mut results: Vec<Type> = op.results().iter().map(|r| r.ty()).collect();
        results.extend(slots.iter().map(|_| bit));
        let new = rw.recreate(op, &operands, &results)?;
        let count = op.num_results();
        for (extra, slot) in slots.iter().enumerate() {
            if let Some(id) = ids.get(&op.result(*slot)) {
                self.by_value.insert(*id, new.result(count + extra));
            }
            if let Some(body) = new.body().filter(|_| op.is(ops::scf::FOR)) {
                let argument = rw.add_block_arg(body, bit, loc);
                if let Some(id) = ids.get(&body.arg(slot + 1)) {
                    self.by_value.insert(*id, argument);
                }
            }
        }
        for (i, old) in op.results().into_iter().enumerate() {
            if let Some(id) = ids.get(&old) {
                collected.values[id.index()] = new.result(i);
            }
        }
        let kept: Vec<Value> = new.results()[..count].to_vec();
        rw.replace_op(op, &kept);
        Ok(new)
    }

    /// Adds indicators to terminators, and copies memrefs that they must own and do not.
    fn terminate(&self, rw: &mut Rewriter<'c>, collected: &Collected<'c>, owners: &Owners) -> Result<(), Diagnostics> {
        for (position, transfer) in owners.transfers.iter().enumerate() {
            let ForwardTo::Value(target) = transfer.forward.to else { continue };
            // A loop's slot has a result and an argument; the terminator names the slot once.
            let Some(slot) = collected.values[target.index()].result_index() else { continue };
            let terminator = collected.ops[transfer.forward.terminator.index()];
            let (loc, point) = (terminator.location(), InsertionPoint::Before(terminator));
            rw.set_point(point);
            let has_indicator = self.by_value.contains_key(&target);
            let mut operands = terminator.operands();
            // The receiver relies on the analysis; where its result was one of several memrefs, a copy makes it true.
            let freed_here = || terminator.block().is_some_and(|b| self.freed.contains(&(b, transfer.forward.value)));
            let must_own = transfer.ownership == Some(Ownership::Owned)
                || (transfer.ownership == Some(Ownership::AT_RUN_TIME)
                    && (self.gives[position] == Give::Never || freed_here()));
            let indicator = match self.gives[position] {
                Give::Always => rw.const_bool(true, loc),
                Give::If(root) if !must_own => {
                    self.by_value.get(&root).copied().unwrap_or_else(|| rw.const_bool(false, loc))
                }
                give if must_own => {
                    operands[slot] = self.owned(rw, terminator, operands[slot], give)?;
                    rw.const_bool(true, loc)
                }
                _ => rw.const_bool(false, loc),
            };
            if has_indicator {
                operands.push(indicator);
            }
            rw.set_operands(terminator, &operands);
        }
        Ok(())
    }

    /// The value if it comes with ownership, else a copy of it.
    pub(crate) fn owned(
        &self,
        rw: &mut Rewriter<'c>,
        terminator: Op<'c>,
        value: Value<'c>,
        give: Give,
    ) -> Result<Value<'c>, Diagnostics> {
        let (loc, point) = (terminator.location(), InsertionPoint::Before(terminator));
        rw.set_point(point);
        let indicator = match give {
            Give::Always => return Ok(value),
            Give::Never => None,
            Give::If(root) => self.of(root),
        };
        let Some(indicator) = indicator else { return copy_of(rw, terminator, value) };
        let copy = |rw: &mut Rewriter<'c>| Ok(vec![copy_of(rw, terminator, value)?]);
        Ok(if_owned(rw, If::new(point, loc, indicator, &[value.ty()]), |_| Ok(vec![value]), copy)?.result(0))
    }
}

/// Positions of a region op's results with dynamic ownership.
fn slots_of(op: Op, owners: &Owners, ids: &HandleMap<Value, ValueId>) -> Vec<usize> {
    if !op.is(ops::scf::IF) && !op.is(ops::scf::FOR) {
        return vec![];
    }
    let at_run_time =
        |value: Value| ids.get(&value).is_some_and(|id| owners.ownership[*id] == Some(Ownership::AT_RUN_TIME));
    let argument =
        |slot: usize| op.body().filter(|b| op.is(ops::scf::FOR) && slot + 1 < b.num_args()).map(|b| b.arg(slot + 1));
    (0..op.num_results()).filter(|i| at_run_time(op.result(*i)) || argument(*i).is_some_and(at_run_time)).collect()
}

/// An `scf.if` without its branches.
#[derive(Clone, Copy)]
pub(crate) struct If<'c, 't> {
    at: InsertionPoint<'c>,
    loc: Location<'c>,
    condition: Value<'c>,
    results: &'t [Type<'c>],
}

impl<'c, 't> If<'c, 't> {
    pub(crate) fn new(
        at: InsertionPoint<'c>,
        loc: Location<'c>,
        condition: Value<'c>,
        results: &'t [Type<'c>],
    ) -> Self {
        Self { at, loc, condition, results }
    }
}

/// `scf.if` at the insertion point; the branches yield what `then` and `otherwise` return.
pub(crate) fn if_owned<'c>(
    rw: &mut Rewriter<'c>,
    If { at, loc, condition, results }: If<'c, '_>,
    then: impl FnOnce(&mut Rewriter<'c>) -> Result<Vec<Value<'c>>, Diagnostics>,
    otherwise: impl FnOnce(&mut Rewriter<'c>) -> Result<Vec<Value<'c>>, Diagnostics>,
) -> Result<Op<'c>, Diagnostics> {
    let (first, second) = (Region::new(), Region::new());
    let blocks = (Block::new(&[]), Block::new(&[]));
    first.append(blocks.0);
    rw.set_point(InsertionPoint::End(blocks.0));
    let values = then(rw)?;
    rw.create(OpSpec::new(ops::scf::YIELD, loc).operands(&values))?;
    if !results.is_empty() {
        second.append(blocks.1);
        rw.set_point(InsertionPoint::End(blocks.1));
        let values = otherwise(rw)?;
        rw.create(OpSpec::new(ops::scf::YIELD, loc).operands(&values))?;
    }
    rw.set_point(at);
    rw.create(OpSpec::new(ops::scf::IF, loc).operands(&[condition]).results(results).region(first).region(second))
}
