//! Decide where each allocation of a function on memrefs is freed, and the ownership of forwarded memrefs.
//!
//! ```text
//! before                              after
//! %0 = memref.alloc                   %0 = memref.alloc
//! %1 = memref.subview %0              %1 = memref.subview %0
//! use(%1)                             use(%1)
//! other()                             dealloc %0                 (or at the end of the block)
//! ```
//!
//! Ownership is per memref, in a lattice: not known yet < owned, not owned < decided at run time by an indicator.
//! A function owns its allocations and the memrefs that region operations hand over; it never owns its arguments or globals.
//! A block that forwards an owned memref transfers the ownership; a captured value is never owned inside.
//! An initial value of a loop stays owned outside the loop.
//!
//! Requires: structured control flow, one block per region, the terminator last; definitions before uses.
//! Ensures: on every path each allocation is freed exactly once or returned, provided the caller acts on
//! [`Free::condition`] and clones memrefs that are returned without ownership by [`Transfer::ownership`].
//! Invariant: a state only rises in the lattice, so each loop argument changes at most twice.
//! Time O(edges), plus, for each allocation, the number of its aliases.

use std::fmt;

use crate::index::{BlockId, Id, IndexVec, Lists, OpId, ValueId};
use crate::nesting::Tree;

/// The kind of a memref.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemrefKind {
    /// A fresh allocation that has to be freed.
    Allocation,
    /// Memory with another owner: a function argument, a global, a stack allocation.
    Foreign,
    /// (Part of) one of its sources: a view, a cast, a select.
    View,
    /// A result of a region operation: one of the operands forwarded to it.
    RegionResult,
    /// The same for an argument of a region: one source enters the region, others come from its terminator.
    RegionArgument,
}

/// A memref.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memref {
    pub kind: MemrefKind,
    pub block: BlockId,
    /// The defining operation; `None` for a block argument.
    pub op: Option<OpId>,
}

/// The receiver of a terminator's memref operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardTo {
    /// This result or region argument, which may alias it.
    Value(ValueId),
    /// The function's caller.
    Caller,
}

/// A memref operand of a terminator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forward {
    /// The terminator.
    pub terminator: OpId,
    /// The forwarded memref.
    pub value: ValueId,
    /// The receiver.
    pub to: ForwardTo,
}

/// Whether a memref owns its buffer: the block that defines it frees the buffer, or transfers the ownership.
///
/// `I` identifies an indicator, the `i1` that decides at run time; `()` where it is the memref's only one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ownership<I = ()> {
    /// Another owner frees it.
    NotOwned,
    /// It does.
    Owned,
    /// It does if the indicator is set.
    Indicator(I),
}

impl Ownership {
    /// By the memref's indicator.
    pub const AT_RUN_TIME: Self = Self::Indicator(());
}

/// The ownership on two paths together; `None` where nothing is known yet.
fn join(a: Option<Ownership>, b: Option<Ownership>) -> Option<Ownership> {
    match (a, b) {
        (None, known) | (known, None) => known,
        (Some(a), Some(b)) => Some(if a == b { a } else { Ownership::AT_RUN_TIME }),
    }
}

/// The position of a free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Right after this operation.
    After(OpId),
    /// At the end of this block, before its terminator.
    End(BlockId),
}

/// The condition of a free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// On every execution.
    Always,
    /// If the run-time indicator of the memref is set.
    IfOwned,
    /// Unless the terminator of the block forwards the same memory (compared at run time), and if owned.
    UnlessForwarded,
}

/// One free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Free {
    /// The memref: an allocation, or a result or argument that came with ownership.
    pub value: ValueId,
    /// Where.
    pub place: Place,
    /// When.
    pub condition: Condition,
}

/// Whether a terminator transfers ownership along with a memref.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The operand.
    pub forward: Forward,
    /// The receiver's ownership. A caller must own: a returned memref that is not `Owned` has to be cloned
    /// ([`Ownership::AT_RUN_TIME`]: if its indicator is not set). `None` if unreachable.
    pub ownership: Option<Ownership>,
}

/// The placement of frees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// At the end of the block that owns the memref (upstream's form).
    #[default]
    BlockEnd,
    /// Right after the last use through any alias.
    LastUse,
}

/// The decisions on one function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owners {
    /// Ownership of each memref; `None` for unreachable ones.
    pub ownership: IndexVec<ValueId, Option<Ownership>>,
    /// Every free, by value.
    pub frees: Vec<Free>,
    /// The ownership that each terminator transfers, in the order in which forwards were added.
    pub transfers: Vec<Transfer>,
}

impl Owners {
    /// Whether every free is unconditional and every transfer decided: no run-time indicators are needed.
    pub fn is_static(&self) -> bool {
        self.frees.iter().all(|free| free.condition == Condition::Always)
            && self.transfers.iter().all(|transfer| transfer.ownership != Some(Ownership::AT_RUN_TIME))
    }
}

/// An inconsistency of facts about memrefs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OwnershipError {
    /// An id does not exist: the name of the table and the number.
    UnknownId(&'static str, u32),
    /// The operation is nested in itself, or not under the function's block.
    Unreachable(OpId),
    /// The value does not dominate an operation that uses it.
    NotVisible(ValueId, OpId),
    /// A terminator is not the last operation of its block.
    NotATerminator(OpId),
}

impl fmt::Display for OwnershipError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownId(table, number) => write!(f, "{table} {number} does not exist"),
            Self::Unreachable(op) => write!(f, "operation {op} is not nested under the function's block"),
            Self::NotVisible(value, op) => write!(f, "operation {op} uses {value}, which it does not see"),
            Self::NotATerminator(op) => write!(f, "operation {op} forwards values and is not the last of its block"),
        }
    }
}

impl std::error::Error for OwnershipError {}

/// Collects facts about the memrefs of one function, in the order of a walk, and decides.
#[derive(Clone, Debug, Default)]
pub struct OwnershipFacts {
    pub(crate) blocks: IndexVec<BlockId, Option<OpId>>,
    pub(crate) ops: IndexVec<OpId, BlockId>,
    pub(crate) memrefs: IndexVec<ValueId, Memref>,
    pub(crate) sources: Vec<(ValueId, ValueId)>,
    pub(crate) uses: Vec<(ValueId, OpId)>,
    pub(crate) forwards: Vec<Forward>,
}

impl OwnershipFacts {
    /// No facts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Add the block of a region of `op`, or (once) the block of the function.
    pub fn block(&mut self, op: Option<OpId>) -> BlockId {
        self.blocks.push(op)
    }

    /// Append an operation to a block.
    pub fn op(&mut self, block: BlockId) -> OpId {
        self.ops.push(block)
    }

    /// Add a memref result of an operation.
    ///
    /// # Errors
    /// The operation does not exist.
    pub fn result(&mut self, op: OpId, kind: MemrefKind) -> Result<ValueId, OwnershipError> {
        let block = *self.ops.get(op).ok_or(OwnershipError::UnknownId("operation", op.number()))?;
        Ok(self.memrefs.push(Memref { kind, block, op: Some(op) }))
    }

    /// Add a memref argument of a block.
    pub fn argument(&mut self, block: BlockId, kind: MemrefKind) -> ValueId {
        self.memrefs.push(Memref { kind, block, op: None })
    }

    /// `value` may be (part of) the memory of `source`: a view, or an operand that a region operation forwards
    /// without its ownership (a loop's initial value). Operands of terminators are added by [`Self::forward`].
    pub fn source(&mut self, value: ValueId, source: ValueId) {
        self.sources.push((value, source));
    }

    /// `op` accesses the memory of `value`.
    pub fn uses(&mut self, op: OpId, value: ValueId) {
        self.uses.push((value, op));
    }

    /// The terminator forwards a memref. A value that one terminator forwards to several places is added for each.
    pub fn forward(&mut self, forward: Forward) {
        self.forwards.push(forward);
    }

    /// Decide.
    ///
    /// # Errors
    /// The facts are not consistent.
    pub fn decide(&self, placement: Placement) -> Result<Owners, OwnershipError> {
        let tree = Tree::new(self)?;
        tree.check(self)?;
        Ok(Solver::new(self, tree).solve(placement))
    }
}

fn sibling_numbers(facts: &OwnershipFacts) -> IndexVec<ValueId, u32> {
    let mut arguments = IndexVec::<BlockId, u32>::filled(0, facts.blocks.len());
    let mut results = IndexVec::<OpId, u32>::filled(0, facts.ops.len());
    let number = |memref: &Memref| {
        let next = match memref.op {
            Some(op) => &mut results[op],
            None => &mut arguments[memref.block],
        };
        *next += 1;
        *next - 1
    };
    facts.memrefs.iter().map(number).collect()
}

struct Solver<'a> {
    facts: &'a OwnershipFacts,
    tree: Tree,
    /// Sources of each value, by views and by operands of region operations.
    sources: Lists<ValueId, ValueId>,
    /// Indices of forwards to each value.
    incoming: Lists<ValueId, u32>,
    /// Indices of forwards by each terminator, in order.
    of_terminator: Lists<OpId, u32>,
    results: Lists<OpId, ValueId>,
    /// Arguments of the blocks of each operation.
    arguments: Lists<OpId, ValueId>,
    /// The number of each memref among the arguments of its block or the results of its operation.
    numbers: IndexVec<ValueId, u32>,
    state: IndexVec<ValueId, Option<Ownership>>,
}

impl<'a> Solver<'a> {
    fn new(facts: &'a OwnershipFacts, tree: Tree) -> Self {
        let count = facts.memrefs.len();
        let incoming: Vec<_> = facts
            .forwards
            .iter()
            .zip(0_u32..)
            .filter_map(|(forward, index)| match forward.to {
                ForwardTo::Value(value) => Some((value, index)),
                ForwardTo::Caller => None,
            })
            .collect();
        let of_terminator: Vec<_> =
            facts.forwards.iter().zip(0_u32..).map(|(forward, index)| (forward.terminator, index)).collect();
        let results: Vec<_> =
            facts.memrefs.iter_enumerated().filter_map(|(value, memref)| Some((memref.op?, value))).collect();
        let arguments: Vec<_> = facts
            .memrefs
            .iter_enumerated()
            .filter(|(_, memref)| memref.op.is_none())
            .filter_map(|(value, memref)| Some((facts.blocks[memref.block]?, value)))
            .collect();
        Self {
            facts,
            tree,
            arguments: Lists::group(facts.ops.len(), &arguments),
            sources: Lists::group(count, &facts.sources),
            incoming: Lists::group(count, &incoming),
            of_terminator: Lists::group(facts.ops.len(), &of_terminator),
            results: Lists::group(facts.ops.len(), &results),
            numbers: sibling_numbers(facts),
            state: IndexVec::filled(None, count),
        }
    }

    fn solve(mut self, placement: Placement) -> Owners {
        for (value, memref) in self.facts.memrefs.iter_enumerated() {
            self.state[value] = match memref.kind {
                MemrefKind::Allocation => Some(Ownership::Owned),
                // A view is freed through its source.
                MemrefKind::Foreign | MemrefKind::View => Some(Ownership::NotOwned),
                MemrefKind::RegionResult | MemrefKind::RegionArgument => None,
            };
        }
        // The results of an operation depend only on its nested operations, so inner operations come first.
        for index in (0..self.tree.order.len()).rev() {
            self.update_op(self.tree.order[index]);
        }
        let transfers: Vec<_> = (0..self.facts.forwards.len())
            .map(|index| Transfer { forward: self.facts.forwards[index], ownership: self.transferred(index) })
            .collect();
        let frees = self.frees(placement);
        Owners { ownership: self.state, frees, transfers }
    }

    fn update_op(&mut self, op: OpId) {
        // The arguments of a loop depend on each other through its terminator.
        loop {
            let arguments: Vec<_> = self.arguments.of(op).to_vec();
            // Every argument is updated, so no short circuit.
            let risen = arguments.into_iter().filter(|&value| self.update(value)).count();
            if risen == 0 {
                break;
            }
        }
        for index in 0..self.results.of(op).len() {
            self.update(self.results.of(op)[index]);
        }
    }

    /// Join the ownership of the operands forwarded to a region's argument or result; whether its state rose.
    fn update(&mut self, value: ValueId) -> bool {
        let kind = self.facts.memrefs[value].kind;
        if !matches!(kind, MemrefKind::RegionResult | MemrefKind::RegionArgument) {
            return false;
        }
        // An operand that enters a region stays owned outside.
        let entering = !self.sources.of(value).is_empty();
        let start = entering.then_some(Ownership::NotOwned);
        let incoming = self.incoming.of(value).iter();
        let found = incoming.fold(start, |state, &index| join(state, self.transferred(index as usize)));
        let joined = join(self.state[value], found);
        std::mem::replace(&mut self.state[value], joined) != joined
    }

    /// The ownership of a terminator's operand in the terminator's block.
    fn transferred(&self, index: usize) -> Option<Ownership> {
        let forward = self.facts.forwards[index];
        let block = self.facts.ops[forward.terminator];
        let roots = self.owners_in(block, forward.value);
        let state = roots.iter().fold(None, |state, &(_, own)| join(state, own));
        if state == Some(Ownership::NotOwned) {
            return state;
        }
        // Only one of several operands with the same memory can take the ownership.
        let siblings = self.of_terminator.of(forward.terminator).iter();
        let earlier = siblings.take_while(|&&other| (other as usize) < index);
        let earlier = earlier.map(|&other| &self.facts.forwards[other as usize]);
        let origins = self.origins(forward.value);
        let also_owned = |other: &Forward| {
            let may_own = self.owners_in(block, other.value).iter().any(|root| root.1 != Some(Ownership::NotOwned));
            may_own && self.origins(other.value).iter().any(|origin| origins.binary_search(origin).is_ok())
        };
        let rivals: Vec<_> = earlier.filter(|other| also_owned(other)).collect();
        // A loop's value goes to its next iteration and to its result: the same ownership, not a second one.
        let is_same = |rival: &&Forward| rival.value == forward.value && self.is_same_slot(rival, &forward);
        let certain = |rival: &&Forward| roots.len() == 1 && self.owners_in(block, rival.value) == roots;
        let to_caller = forward.to == ForwardTo::Caller;
        match &rivals[..] {
            [] => state,
            [only] if is_same(only) => state,
            // A caller gets a copy. Any other receiver has to test whether it got the ownership of its memory.
            rivals if to_caller && rivals.iter().any(certain) => Some(Ownership::NotOwned),
            _ => Some(Ownership::AT_RUN_TIME),
        }
    }

    /// All values that the value may be (part of), sorted. Two values without a common origin share no memory.
    fn origins(&self, value: ValueId) -> Vec<ValueId> {
        let (mut seen, mut work) = (std::collections::BTreeSet::new(), vec![value]);
        while let Some(value) = work.pop() {
            if seen.insert(value) {
                let forwarded = self.incoming.of(value).iter().map(|&index| self.facts.forwards[index as usize].value);
                work.extend(self.sources.of(value).iter().copied().chain(forwarded));
            }
        }
        seen.into_iter().collect()
    }

    /// Whether two forwards are one operand of a loop: to the argument of the next iteration and to the loop's result
    /// with the same number.
    fn is_same_slot(&self, a: &Forward, b: &Forward) -> bool {
        let (ForwardTo::Value(a), ForwardTo::Value(b)) = (a.to, b.to) else { return false };
        let kind = |value: ValueId| self.facts.memrefs[value].kind;
        let kinds = [kind(a), kind(b)];
        kinds.contains(&MemrefKind::RegionArgument)
            && kinds.contains(&MemrefKind::RegionResult)
            && self.numbers[a] == self.numbers[b]
    }

    /// The values behind `value` that may own memory, with the ownership that `block` has of them.
    fn owners_in(&self, block: BlockId, value: ValueId) -> Vec<(ValueId, Option<Ownership>)> {
        let (mut found, mut seen, mut work) = (Vec::new(), Vec::new(), vec![value]);
        while let Some(value) = work.pop() {
            if seen.contains(&value) {
                continue;
            }
            seen.push(value);
            let memref = self.facts.memrefs[value];
            let own = memref.block == block;
            let is_result = matches!(memref.kind, MemrefKind::RegionResult | MemrefKind::RegionArgument)
                && !(own && memref.kind == MemrefKind::RegionArgument);
            if !own && !self.is_nested(memref.block, block) {
                // A value from outside is never owned inside.
                found.push((value, Some(Ownership::NotOwned)));
                continue;
            }
            let state = self.state[value];
            if memref.kind == MemrefKind::View && !self.sources.of(value).is_empty() {
                work.extend(self.sources.of(value));
                continue;
            }
            // Not owned itself, at least sometimes: then it may alias another value that this block owns.
            if is_result && state != Some(Ownership::Owned) {
                let forwarded = self.incoming.of(value).iter().map(|&index| self.facts.forwards[index as usize].value);
                work.extend(self.sources.of(value).iter().copied().chain(forwarded));
            }
            if !is_result || state != Some(Ownership::NotOwned) {
                found.push((value, if own { state } else { Some(Ownership::NotOwned) }));
            }
        }
        found
    }

    fn is_nested(&self, inner: BlockId, outer: BlockId) -> bool {
        self.facts.blocks[inner].is_some_and(|op| self.tree.op_in_block(self.facts, outer, op).is_some())
    }

    fn frees(&self, placement: Placement) -> Vec<Free> {
        let aliases: Vec<_> = self
            .facts
            .forwards
            .iter()
            .filter_map(|forward| match forward.to {
                ForwardTo::Value(to) => Some((forward.value, to)),
                ForwardTo::Caller => None,
            })
            .chain(self.facts.sources.iter().map(|&(value, source)| (source, value)))
            .collect();
        let count = self.facts.memrefs.len();
        let origins: Vec<_> = aliases.iter().map(|&(from, to)| (to, from)).collect();
        let (aliases, origins) = (Lists::group(count, &aliases), Lists::group(count, &origins));
        let uses = Lists::group(count, &self.facts.uses);
        let forwards: Vec<_> = self.facts.forwards.iter().map(|forward| (forward.value, *forward)).collect();
        let forwards = Lists::group(count, &forwards);
        let walk = Aliases { aliases, uses, forwards, mark: std::cell::RefCell::new((vec![0; count], 0)), origins };
        let may_own = |value: &ValueId| matches!(self.state[*value], Some(Ownership::Owned | Ownership::AT_RUN_TIME));
        self.facts.memrefs.ids().filter(may_own).filter_map(|value| self.free(&walk, placement, value)).collect()
    }

    /// The free of `value`; `None` if its block always transfers the ownership.
    fn free(&self, walk: &Aliases, placement: Placement, value: ValueId) -> Option<Free> {
        let memref = self.facts.memrefs[value];
        let block = memref.block;
        let terminator = self.tree.last_op[block];
        let mut last = memref.op;
        let mut escapes = false;
        for alias in walk.of(value, memref.kind) {
            let forwards = walk.forwards.of(alias);
            escapes |= forwards.iter().any(|forward| Some(forward.terminator) == terminator);
            let used = walk.uses.of(alias).iter().copied().chain(forwards.iter().map(|forward| forward.terminator));
            for op in used {
                // Uses outside the block are uses by the new owner.
                let Some(op) = self.tree.op_in_block(self.facts, block, op) else { continue };
                if last.is_none_or(|last| self.tree.spans[last].0 < self.tree.spans[op].0) {
                    last = Some(op);
                }
            }
        }
        if escapes && self.is_given_away(block, value) {
            return None;
        }
        let at_run_time = self.state[value] == Some(Ownership::AT_RUN_TIME);
        let condition = match (escapes, at_run_time) {
            (true, _) => Condition::UnlessForwarded,
            (false, true) => Condition::IfOwned,
            (false, false) => Condition::Always,
        };
        let place = match last {
            Some(op) if placement == Placement::LastUse && !escapes && Some(op) != terminator => Place::After(op),
            _ => Place::End(block),
        };
        Some(Free { value, place, condition })
    }

    /// Whether the terminator of `block` certainly forwards the memory of `value`, and nothing else in its place.
    fn is_given_away(&self, block: BlockId, value: ValueId) -> bool {
        let Some(terminator) = self.tree.last_op[block] else { return false };
        self.of_terminator.of(terminator).iter().any(|&index| {
            let roots = self.owners_in(block, self.facts.forwards[index as usize].value);
            roots.len() == 1 && roots[0].0 == value
        })
    }
}

/// Values derived from each other.
struct Aliases {
    /// Possible sources of a value: the aliases backwards.
    origins: Lists<ValueId, ValueId>,
    aliases: Lists<ValueId, ValueId>,
    uses: Lists<ValueId, OpId>,
    forwards: Lists<ValueId, Forward>,
    /// The search in which each value was last visited, and the number of searches.
    mark: std::cell::RefCell<(Vec<u32>, u32)>,
}

impl Aliases {
    /// All values that may share memory with `value`.
    ///
    /// A fresh allocation aliases only values derived from it. A region's result or argument may also alias
    /// another one of the same region.
    fn of(&self, value: ValueId, kind: MemrefKind) -> Vec<ValueId> {
        let start = if kind == MemrefKind::Allocation { vec![value] } else { self.closure(vec![value], &self.origins) };
        self.closure(start, &self.aliases)
    }

    fn closure(&self, start: Vec<ValueId>, edges: &Lists<ValueId, ValueId>) -> Vec<ValueId> {
        let mut mark = self.mark.borrow_mut();
        mark.1 += 1;
        let round = mark.1;
        let (mut found, mut work) = (Vec::new(), start);
        while let Some(next) = work.pop() {
            if std::mem::replace(&mut mark.0[next.index()], round) != round {
                found.push(next);
                work.extend(edges.of(next));
            }
        }
        found
    }
}
