//! The buffers that live and die within a run, and the ops between which each is alive.
//!
//! ```text
//! %0 = memref.alloc()                                           op 0
//! %r = scf.if %c {                                              op 1
//!   %1 = memref.alloc()                                         op 2
//!   dispatch(%0, %1)                                            op 3
//!   yield %1, true           %1: from op 3 to op 6
//! } else {
//!   yield %x, false
//! }
//! copy %r, %y                                                   op 6
//! scf.if %owns { dealloc %r }
//! ```
//! An op's position is that in the text; a dispatch counts as one op. A buffer that is made outside of a loop and used in it is alive
//! in all of the loop; one that is made in a loop, within an iteration. Buffers of two branches are alive at different ops.
//!
//! A transient passes through loops and branches under the names of their arguments and results, which are then freed in its
//! place. It must have been made for its iteration alone, and where it may be freed, no allocation that is not a transient may be.
//! Inputs are bound for reading, the arena for writing, and no buffer in both ways: so a kernel that gets either a transient or
//! another buffer gets no second transient.

use crate::flows::Flows;
use monopour_contract::{MOST_REQUESTS, attributes};
use monopour_ir::interfaces::is_pure;
use monopour_ir::ops;
use monopour_ir::{Block, Op, Use, Value};
use std::collections::{HashMap, HashSet};

/// A buffer that lives and dies within a run, or several of one type of which a run has one: those that an `scf.if` results in.
pub(crate) struct Transient<'c> {
    /// In the order of the text.
    pub(crate) members: Vec<Member<'c>>,
    /// Bytes; `None` where they follow from the sizes of the inputs.
    pub(crate) size_bytes: Option<u64>,
    /// Position of the first op that uses it.
    pub(crate) first: u32,
    /// Position of the last op that uses it, inclusive.
    pub(crate) last: u32,
}

/// An allocation.
#[derive(Clone, Copy)]
pub(crate) struct Member<'c> {
    pub(crate) alloc: Op<'c>,
    /// The first and the last op of its block that use it, unless ops of other blocks do.
    pub(crate) ends: Option<(Op<'c>, Op<'c>)>,
}

impl<'c> Transient<'c> {
    /// The first allocation.
    pub(crate) fn alloc(&self) -> Op<'c> {
        self.members[0].alloc
    }

    /// `file:line:column`; empty when unknown.
    pub(crate) fn location(&self) -> String {
        let position = self.alloc().location().position();
        position.map(|(f, l, c)| format!("{f}:{l}:{c}")).unwrap_or_default()
    }
}

/// The transients of a host function.
pub(crate) struct Transients<'c> {
    /// In the order of the text.
    pub(crate) all: Vec<Transient<'c>>,
    /// The ops that would free them.
    pub(crate) deallocs: Vec<Op<'c>>,
    /// All names of their memory that are no others'.
    pub(crate) names: HashSet<Value<'c>>,
}

impl<'c> Transients<'c> {
    /// Those of `host`.
    pub(crate) fn of(host: Op<'c>) -> Self {
        let flows = Flows::of(host);
        let positions = Positions::of(host);
        let mut lives: HashMap<Value, Life> = HashMap::new();
        let allocs = host.find_all(ops::memref::ALLOC);
        let are_few = allocs.len() <= MOST_REQUESTS;
        for alloc in allocs {
            let names = flows.reached([alloc.result(0)]);
            if is_candidate(host, alloc)
                && (are_few || alloc.num_operands() == 0)
                && names.iter().all(|name| is_followed(alloc, *name))
                && let Some(life) = positions.life(alloc, &names)
            {
                lives.insert(alloc.result(0), life);
            }
        }
        let uses = Uses::of(host, &flows);
        // One that is none may make others none.
        loop {
            let is_transient = |root: &Value| lives.contains_key(root);
            let none: Vec<Value> = uses.mixed(&is_transient).flatten().copied().collect();
            if none.iter().filter(|root| lives.remove(*root).is_some()).count() == 0 {
                break;
            }
        }
        let is_transient = |root: &Value| lives.contains_key(root);
        let freed = uses.freed.into_iter().filter(|(_, roots)| roots.iter().any(is_transient));
        let deallocs = freed.map(|(op, _)| op).collect();
        let mut names = flows.reached(lives.keys().copied());
        names.retain(|name| flows.roots_of(*name).iter().all(is_transient));
        let allocs = host.find_all(ops::memref::ALLOC).into_iter();
        let mut all: Vec<Transient> =
            allocs.filter_map(|alloc| Some(transient(alloc, lives.remove(&alloc.result(0))?))).collect();
        // The inner ones first.
        host.find_all(ops::scf::IF).into_iter().rev().for_each(|op| share(op, &flows, &mut all));
        Self { all, deallocs, names }
    }
}

/// The buffers that may be freed or passed to a kernel, where each may be one of several.
struct Uses<'c> {
    /// Each dealloc, with what it may free.
    freed: Vec<(Op<'c>, Vec<Value<'c>>)>,
    /// By call and memref of it.
    passed: Vec<Vec<Vec<Value<'c>>>>,
}

impl<'c> Uses<'c> {
    fn of(host: Op<'c>, flows: &Flows<'c>) -> Self {
        let roots = |value: Value<'c>| flows.roots_of(value);
        let passed = host
            .find_all(ops::func::CALL)
            .into_iter()
            .map(|call| call.operands().into_iter().filter(|operand| operand.ty().is_memref()).map(roots).collect());
        let freed = host.find_all(ops::memref::DEALLOC).into_iter().map(|op| (op, roots(op.operand(0)))).collect();
        Self { freed, passed: passed.collect() }
    }

    /// Sets of buffers of which none can be a transient: one of them may be freed in place of an allocation that is none, or is
    /// passed in place of another buffer to a kernel that gets a transient, too.
    fn mixed(&self, is_transient: &impl Fn(&Value<'c>) -> bool) -> impl Iterator<Item = &Vec<Value<'c>>> {
        let some = |roots: &Vec<Value<'c>>| roots.iter().any(is_transient);
        let is_allocated = |root: &Value| root.defining_op().is_some_and(|op| !op.is(ops::memref::GET_GLOBAL));
        // An input that is freed is freed with the run.
        let is_mixed =
            |roots: &Vec<Value<'c>>| some(roots) && roots.iter().any(|root| is_allocated(root) && !is_transient(root));
        let freed = self.freed.iter().map(|(_, roots)| roots).filter(|roots| is_mixed(roots));
        let passed = self.passed.iter().flat_map(|call| {
            let count = call.iter().filter(|roots| some(roots)).count();
            call.iter().filter(move |roots| {
                let is_alone = count == 1 && !is_mixed(roots);
                some(roots) && !roots.iter().all(is_transient) && !is_alone
            })
        });
        freed.chain(passed).collect::<Vec<_>>().into_iter()
    }
}

fn transient<'c>(alloc: Op<'c>, life: Life<'c>) -> Transient<'c> {
    let size_bytes = alloc.result(0).ty().static_size_bytes();
    Transient { members: vec![Member { alloc, ends: life.ends }], size_bytes, first: life.first, last: life.last }
}

/// Makes one transient of two that the branches of an `scf.if` make for one result, each perhaps in some cases only.
fn share<'c>(branch: Op<'c>, flows: &Flows<'c>, all: &mut Vec<Transient<'c>>) {
    let ends = branch.regions().into_iter().filter_map(|region| region.entry()?.terminator());
    let [then, otherwise] = ends.collect::<Vec<_>>()[..] else { return };
    for at in (0..branch.num_results()).filter(|at| branch.result(*at).ty().is_memref()) {
        let made = |end: Op<'c>, all: &[Transient<'c>]| {
            let of = |root: Value<'c>| {
                let is_inside = root.defining_op().is_some_and(|alloc| alloc.beside(end).is_some());
                let is_it = |member: &Member| member.alloc.result(0) == root;
                all.iter().position(|transient| is_inside && transient.members.iter().any(is_it))
            };
            // The result may also be a buffer that no branch makes.
            let mut found = flows.roots_of(end.operand(at)).into_iter().filter_map(of);
            let first = found.next()?;
            found.all(|other| other == first).then_some(first)
        };
        let (Some(first), Some(second)) = (made(then, all), made(otherwise, all)) else { continue };
        if first != second && all[first].alloc().result(0).ty() == all[second].alloc().result(0).ty() {
            let second = all.remove(second);
            let first = &mut all[first];
            (first.first, first.last) = (first.first.min(second.first), first.last.max(second.last));
            first.members.extend(second.members);
        }
    }
}

/// Whether the size of an allocation is known, or follows from the inputs and the allocation is in no loop or branch.
fn is_candidate(host: Op, alloc: Op) -> bool {
    let ty = alloc.result(0).ty();
    match ty.static_size_bytes() {
        _ if alloc.attr(attributes::ARENA).is_some() => false,
        Some(bytes) => bytes > 0 && alloc.num_operands() == 0,
        None => {
            alloc.block() == host.body()
                && crate::views::lies_without_gaps(ty)
                && sizes_before(host, alloc, &mut HashSet::new()).is_some()
        }
    }
}

/// The ops that compute the sizes of an allocation, in the order of the text; `None` where they need more than the inputs.
pub(crate) fn sizes_before<'c>(host: Op<'c>, alloc: Op<'c>, seen: &mut HashSet<Op<'c>>) -> Option<Vec<Op<'c>>> {
    let mut found = vec![];
    for operand in alloc.operands() {
        computed(host, operand, seen, &mut found)?;
    }
    Some(found)
}

fn computed<'c>(host: Op<'c>, value: Value<'c>, seen: &mut HashSet<Op<'c>>, found: &mut Vec<Op<'c>>) -> Option<()> {
    let is_argument = |value: Value| value.defining_op().is_none() && value.block() == host.body();
    let Some(op) = value.defining_op() else { return is_argument(value).then_some(()) };
    if seen.contains(&op) {
        return Some(());
    }
    let is_size = op.is(ops::memref::DIM) && is_argument(op.operand(0)) && op.operand(1).constant_int().is_some();
    if op.block() != host.body() || !op.regions().is_empty() || !(is_size || is_pure(op)) {
        return None;
    }
    for operand in op.operands().into_iter().filter(|operand| !operand.ty().is_memref()) {
        computed(host, operand, seen, found)?;
    }
    // A size of a buffer is that of an input.
    if !is_size && op.operands().iter().any(|operand| operand.ty().is_memref()) {
        return None;
    }
    seen.insert(op);
    found.push(op);
    Some(())
}

/// Whether all uses of a name of an allocation can be followed: it is not returned, and not handed on to the next iteration of a
/// loop around the allocation.
fn is_followed<'c>(alloc: Op<'c>, name: Value<'c>) -> bool {
    let owner = match name.defining_op() {
        Some(op) => Some(op),
        None => name.block().and_then(Block::parent_op),
    };
    let is_carried = owner.is_some_and(|owner| is_loop(owner) && owner != alloc && alloc.is_inside(owner));
    let is_known = |used: &Use| {
        let results = used.op.results();
        !used.op.is(ops::func::RETURN) && (is_forwarding(used.op) || results.iter().all(|r| !r.ty().is_memref()))
    };
    !is_carried && name.uses().iter().all(is_known)
}

/// Whether the memrefs that an op results in are those that `Flows` knows.
fn is_forwarding(op: Op) -> bool {
    let known = [ops::scf::IF, ops::scf::FOR, ops::scf::WHILE, ops::arith::SELECT];
    known.contains(&op.name()) || crate::plan::VIEW_LIKE.contains(&op.name())
}

fn is_loop(op: Op) -> bool {
    op.is(ops::scf::FOR) || op.is(ops::scf::WHILE)
}

/// When a buffer is used.
struct Life<'c> {
    first: u32,
    last: u32,
    ends: Option<(Op<'c>, Op<'c>)>,
}

/// By op: its position in the text, and that of the last op in it.
struct Positions<'c>(HashMap<Op<'c>, (u32, u32)>);

impl<'c> Positions<'c> {
    fn of(host: Op<'c>) -> Self {
        let mut found = HashMap::new();
        if let Some(block) = host.body() {
            number(block, &mut 0, &mut found);
        }
        Self(found)
    }

    /// From the first to the last use under any name; `None` without any.
    fn life(&self, alloc: Op<'c>, names: &HashSet<Value<'c>>) -> Option<Life<'c>> {
        let mut life: Option<Life> = None;
        for used in names.iter().flat_map(|name| name.uses()) {
            if used.op.is(ops::memref::DEALLOC) || crate::plan::VIEW_LIKE.contains(&used.op.name()) {
                continue;
            }
            let (first, last) = self.span(alloc, used.op)?;
            let beside = used.op.beside(alloc);
            life = Some(match life {
                None => Life { first, last, ends: beside.map(|op| (op, op)) },
                Some(before) => Life {
                    first: before.first.min(first),
                    last: before.last.max(last),
                    ends: before.ends.zip(beside).map(|((from, to), op)| {
                        let is_before = |a: Op<'c>, b: Op<'c>| self.0.get(&a) < self.0.get(&b);
                        (if is_before(op, from) { op } else { from }, if is_before(to, op) { op } else { to })
                    }),
                },
            });
        }
        life
    }

    /// The positions at which a use keeps the buffer alive: those of the outermost loop around it that is not around the
    /// allocation.
    fn span(&self, alloc: Op<'c>, used: Op<'c>) -> Option<(u32, u32)> {
        let (mut found, mut at) = (None, Some(used));
        while let Some(op) = at {
            let is_around = alloc.is_inside(op);
            if !is_around && (found.is_none() || is_loop(op)) {
                found = self.0.get(&op).copied().or(found);
            }
            at = op.parent().filter(|_| !is_around);
        }
        found
    }
}

fn number<'c>(block: Block<'c>, next: &mut u32, found: &mut HashMap<Op<'c>, (u32, u32)>) {
    for op in block.ops() {
        let first = *next;
        *next += 1;
        if !op.is(ops::scf::FORALL) {
            let blocks = op.regions().into_iter().flat_map(|region| region.blocks());
            blocks.for_each(|block| number(block, next, found));
        }
        found.insert(op, (first, *next - 1));
    }
}
