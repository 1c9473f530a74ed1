//! Places transients, the buffers that live and die within a run, in one arena.
//!
//! Before:
//! ```mlir
//! %0 = memref.alloc() : memref<64x1024xf32, #s>
//! scf.forall .. { func.call @k0(%x, %0, ..) }
//! scf.forall .. { func.call @k1(%0, %r, ..) }
//! memref.dealloc %0 : memref<64x1024xf32, #s>
//! ```
//! After:
//! ```mlir
//! %arena = memref.alloc() {monopour.arena} : memref<262144xi8, #s>
//! %0 = memref.view %arena[%c0][] : memref<262144xi8, #s> to memref<64x1024xf32, #s>
//! .. memref.dealloc %arena
//! ```
//! Where a size follows from those of the inputs, or no buffer of the device is as large, the runtime plans, once per tuple of sizes: the requests stand before all
//! transients, and each transient takes its place where it was allocated.
//! ```mlir
//! %1 = memref.alloc(%n) {monopour.request = array<i64: 3, 5>} : memref<?x1024xf32, #s>
//! %0 = memref.cast %1 : memref<?x1024xf32, #s> to memref<?x1024xf32, #s>
//! ```
//! Requires: outlined (and, for a GPU, distributed) kernels; every allocation of the host function freed once or returned.
//! Ensures: the transients (`transients.rs`), also those of loops and branches, have a place; all others go to the pool. A program
//! whose transients are all of static size asks the runtime for nothing but the arena.
//! Buffers that keep a border (`borders.rs`) share their place only with buffers of the same border, as many as take half
//! of the memory of constants and arena; the fills of all others lose `monopour.border`. They are always in the arena.
//! A kernel argument in the arena is bound for writing, also where the kernel only reads it: wgpu takes one access per
//! buffer within a dispatch, and two arguments may lie in the arena. A kernel whose calls differ in which arguments lie
//! there is cloned.
//! Source: offset packing by [`monopour_analysis::plan`].

use crate::flows::Flows;
use crate::transients::{self, Transient as Found, Transients};
use crate::{borders, error};
use monopour_analysis::index::{BufferId, IndexVec};
use monopour_analysis::liveness::Interval;
use monopour_analysis::plan::{ALIGNMENT_BYTES, MemoryPlan, Request};
use monopour_contract::attributes;
use monopour_ir::conversion::{ConversionTarget, Declined, Mode, PatternSet, convert};
use monopour_ir::ops;
use monopour_ir::typed;
use monopour_ir::{Attr, Block, Diagnostics, InsertionPoint, Module, Op, OpSpec, Rewriter, Type, Value};
use std::collections::{HashMap, HashSet};
use tracing::trace;

/// Ops whose one result is the same buffer as their first operand.
pub(crate) const VIEW_LIKE: [&str; 8] = [
    ops::memref::CAST,
    ops::memref::COLLAPSE_SHAPE,
    ops::memref::EXPAND_SHAPE,
    ops::memref::EXTRACT_STRIDED_METADATA,
    ops::memref::MEMORY_SPACE_CAST,
    ops::memref::REINTERPRET_CAST,
    ops::memref::SUBVIEW,
    ops::memref::VIEW,
];

/// The plan of the host function, as the program records it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Bytes of the arena.
    pub arena_bytes: u64,
    /// Largest sum of sizes alive at once.
    pub lower_bound_bytes: u64,
    /// Each transient.
    pub transients: Vec<Placed>,
}

/// One transient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Offset in the arena, in bytes.
    pub offset_bytes: u64,
    /// Size without padding, in bytes.
    pub size_bytes: u64,
    /// Position of its first use among the ops of the host function.
    pub first: u32,
    /// Position of its last use, inclusive.
    pub last: u32,
    /// Source location of the tensor, `file:line:column`; empty when unknown.
    pub location: String,
}

/// An allocation that each run takes from the pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pooled {
    /// Size in bytes, if it is known.
    pub size_bytes: Option<u64>,
    /// Source location of the tensor, `file:line:column`; empty when unknown.
    pub location: String,
    /// The reason why it is not in the arena.
    pub reason: &'static str,
}

/// What is said of the one buffer for all transients that the runtime places.
const PLANNED: &str = "all transients in one buffer, placed once the sizes of the inputs are known";

/// The allocations of a planned host function that are neither in the arena nor returned at once; those that the runtime places are one.
pub fn pooled(host: Op) -> Vec<Pooled> {
    let is_placed = |op: &Op| op.attr(attributes::ARENA).is_some() || op.attr(attributes::REQUEST).is_some();
    let allocs = host.find_all(ops::memref::ALLOC).into_iter().filter(|op| !is_placed(op));
    let kept = allocs.filter(|op| !op.result(0).uses().iter().any(|u| u.op.is(ops::func::RETURN)));
    let note = |op: Op| {
        let ty = op.result(0).ty();
        let reason = match (ty.static_size_bytes(), op.block() == host.body()) {
            (None, _) => "its size does not follow from those of the inputs: give the tensors static sizes",
            (_, false) => "a loop or a branch hands it on: make it before, and pass it in",
            _ => "it passes through a loop or a branch, so that its owner is known at run time only",
        };
        trace!(target: "plan", "{}: from the pool: {reason}", op.location());
        let location = op.location().position().map(|(f, l, c)| format!("{f}:{l}:{c}")).unwrap_or_default();
        Pooled { size_bytes: ty.static_size_bytes(), location, reason }
    };
    let placed = host.find_all(ops::memref::ALLOC).into_iter().filter(|op| op.attr(attributes::REQUEST).is_some());
    let placed = placed.take(1).map(|op| {
        trace!(target: "plan", "{}: placed once the sizes of the inputs are known", op.location());
        Pooled { size_bytes: None, location: String::new(), reason: PLANNED }
    });
    placed.chain(kept.map(note)).collect()
}

/// A transient of static size, for the arena.
struct Transient<'c> {
    found: Found<'c>,
    size_bytes: u64,
    /// The dispatch that fills its border.
    border: Option<Op<'c>>,
}

/// Places for borders take at most this part of the memory of the constants and of an arena without them.
const MOST_GROWTH: f64 = 0.5;

impl<'c> Transient<'c> {
    fn request(&self) -> Request {
        Request { live: Interval { first: self.found.first, last: self.found.last }, size_bytes: self.size_bytes }
    }
    /// What two buffers must have in common to keep their border in one place.
    fn border_key(&self) -> Option<(Type<'c>, Attr<'c>)> {
        Some((self.found.alloc().result(0).ty(), self.border?.attr(attributes::BORDER)?))
    }
}

/// Plans the memory of `host`, a function of `module`. An arena has at most `most_bytes`: of more, the runtime places what it can.
/// `poison`: mark where the contents of a place begin and end.
///
/// # Errors
/// S0004 when an arena would hold a buffer without a static size (cannot happen after `transients.rs`); IR errors.
pub fn run<'c>(module: &'c Module<'c>, host: Op<'c>, most_bytes: u64, poison: bool) -> Result<Report, Diagnostics> {
    let block = host.body().expect("the host function has a body");
    let Transients { all, deallocs, names } = Transients::of(host);
    let (mut transients, mut requested) = sort(block, all);
    let mut plan = place(&mut transients, constant_bytes(module));
    if plan.peak_bytes > most_bytes {
        let (kept, others): (Vec<_>, Vec<_>) = transients.into_iter().partition(|t| t.border.is_some());
        requested.extend(others.into_iter().map(|t| t.found));
        transients = kept;
        plan = place(&mut transients, constant_bytes(module));
    }
    forget_borders(host, &transients);
    if transients.is_empty() && requested.is_empty() {
        return Ok(Report::default());
    }
    for (t, offset) in transients.iter().zip(plan.offsets.iter()) {
        let (found, bytes) = (&t.found, t.size_bytes);
        let place = found.alloc().location();
        trace!(target: "plan", "{place}: {bytes} bytes at offset {offset}, alive from op {} to {}", found.first, found.last);
    }
    let report = report(&transients, &plan);
    let in_arena = widened(module, host, &names);
    if poison {
        // A border stays.
        let placed = transients.iter().filter(|t| t.border.is_none()).map(|t| &t.found).chain(&requested);
        let members = placed.flat_map(|found| &found.members);
        for (alloc, (first, last)) in members.filter_map(|member| Some((member.alloc, member.ends?))) {
            mark_contents(alloc, first, last)?;
        }
    }
    let mut rw = Rewriter::new(host.context());
    for dealloc in deallocs {
        let around = dealloc.parent().filter(|op| op.is(ops::scf::IF) && op.num_results() == 0);
        rw.erase(dealloc);
        // A branch that did nothing else.
        let is_empty = |op: &Op| op.regions().into_iter().flat_map(|r| r.blocks()).all(|block| block.ops().len() <= 1);
        around.filter(is_empty).into_iter().for_each(|op| rw.erase(op));
    }
    request(&mut rw, host, &requested)?;
    if !transients.is_empty() {
        rewrite(host, block, &transients, &plan)?;
    }
    widen_access(host, in_arena);
    Ok(report)
}

/// The transients of static size with their borders, and those that the runtime places. One of dynamic size takes all others along
/// that have no border.
fn sort<'c>(block: Block<'c>, all: Vec<Found<'c>>) -> (Vec<Transient<'c>>, Vec<Found<'c>>) {
    let borders = block.ops().into_iter().filter(|op| op.attr(attributes::BORDER).is_some());
    let borders: HashMap<Op, Op> = borders.filter_map(|fill| Some((filled(fill)?, fill))).collect();
    let is_dynamic = all.iter().any(|found| found.size_bytes.is_none());
    let (mut transients, mut requested) = (vec![], vec![]);
    for found in all {
        let border = borders.get(&found.alloc()).copied();
        match found.size_bytes {
            Some(size_bytes) if !is_dynamic || border.is_some() => {
                transients.push(Transient { found, size_bytes, border });
            }
            _ => requested.push(found),
        }
    }
    (transients, requested)
}

/// Bytes of all constants.
fn constant_bytes(module: &Module) -> u64 {
    let globals = module.body().ops().into_iter().filter(|op| op.is(ops::memref::GLOBAL));
    let bytes = globals.filter_map(|op| op.attr("type")?.as_type()?.static_size_bytes());
    bytes.fold(0, u64::saturating_add)
}

/// The allocation that an outlined fill writes.
fn filled<'c>(fill: Op<'c>) -> Option<Op<'c>> {
    let call = fill.body().and_then(Block::first_op)?;
    let buffers: Vec<Value> = call.operands().into_iter().filter(|v| v.ty().is_memref()).collect();
    if let [buffer] = buffers[..] { borders::root(buffer) } else { None }
}

/// Removes the attribute from fills that each run has to repeat.
fn forget_borders(host: Op, transients: &[Transient]) {
    let mut rw = Rewriter::new(host.context());
    let kept: HashSet<Op> = transients.iter().filter_map(|t| t.border).collect();
    for fill in host.find_all(ops::scf::FORALL) {
        if fill.attr(attributes::BORDER).is_some() && !kept.contains(&fill) {
            rw.remove_attr(fill, attributes::BORDER);
        }
    }
}

/// Offsets of all transients; those that find no place for their border lose it.
fn place(transients: &mut [Transient], constant_bytes: u64) -> MemoryPlan {
    let shared = transients.iter().map(Transient::request).collect();
    let shared = monopour_analysis::plan::plan(&shared);
    let growth = shared.peak_bytes.saturating_add(constant_bytes) as f64 * MOST_GROWTH;
    let most_bytes = shared.peak_bytes.saturating_add(growth as u64);
    let mut places = border_places(transients);
    let mut best = (0, shared);
    // The most places that fit: more of them never take less.
    let mut beyond = places.len() + 1;
    while beyond - best.0 > 1 {
        let count = best.0 + (beyond - best.0) / 2;
        let plan = place_with(transients, &places[..count]);
        if plan.peak_bytes <= most_bytes { best = (count, plan) } else { beyond = count }
    }
    for i in places.split_off(best.0).into_iter().flatten() {
        transients[i].border = None;
    }
    best.1
}

/// The transients that can share a place in which their border stays: of one border, one after the other. Those that save more
/// dispatches per byte come first.
fn border_places(transients: &[Transient]) -> Vec<Vec<usize>> {
    let mut places: HashMap<(Type, Attr), Vec<Vec<usize>>> = HashMap::new();
    let mut order: Vec<usize> = (0..transients.len()).filter(|i| transients[*i].border.is_some()).collect();
    order.sort_by_key(|i| transients[*i].found.first);
    for i in order {
        let Some(key) = transients[i].border_key() else { continue };
        let ends_before = |place: &&mut Vec<usize>| {
            place.last().is_some_and(|last| transients[*last].found.last < transients[i].found.first)
        };
        let own = places.entry(key).or_default();
        match own.iter_mut().find(ends_before) {
            Some(place) => place.push(i),
            None => own.push(vec![i]),
        }
    }
    let mut places: Vec<Vec<usize>> = places.into_values().flatten().collect();
    places.sort_by_key(|place| (transients[place[0]].size_bytes / place.len() as u64, place[0]));
    places
}

/// Offsets if these places are taken in all of a run, and between runs.
fn place_with(transients: &[Transient], places: &[Vec<usize>]) -> MemoryPlan {
    let placed: HashSet<usize> = places.iter().flatten().copied().collect();
    let own: Vec<usize> = (0..transients.len()).filter(|i| !placed.contains(i)).collect();
    let mut requests: IndexVec<BufferId, Request> = own.iter().map(|i| transients[*i].request()).collect();
    for place in places {
        let live = Interval { first: 0, last: u32::MAX };
        requests.push(Request { live, ..transients[place[0]].request() });
    }
    let plan = monopour_analysis::plan::plan(&requests);
    let members = own.into_iter().map(|i| vec![i]).chain(places.iter().cloned());
    let mut offsets = vec![0; transients.len()];
    for (members, offset) in members.zip(plan.offsets.iter()) {
        members.into_iter().for_each(|i| offsets[i] = *offset);
    }
    MemoryPlan { offsets: offsets.into_iter().collect(), ..plan }
}

fn report(transients: &[Transient], plan: &MemoryPlan) -> Report {
    let placed = transients.iter().zip(plan.offsets.iter()).map(|(t, offset)| Placed {
        offset_bytes: *offset,
        size_bytes: t.size_bytes,
        first: t.found.first,
        last: t.found.last,
        location: t.found.location(),
    });
    Report { arena_bytes: plan.peak_bytes, lower_bound_bytes: plan.lower_bound_bytes, transients: placed.collect() }
}

/// WRITE: marks of a transient before the first op of the block that touches it, and behind the last one.
fn mark_contents(alloc: Op, first: Op, last: Op) -> Result<(), Diagnostics> {
    let cx = alloc.context();
    let mut rw = Rewriter::new(cx);
    for place in [InsertionPoint::Before(first), InsertionPoint::After(last)] {
        rw.set_point(place);
        let spec = OpSpec::new(ops::memref::DEALLOC, alloc.location()).operands(&[alloc.result(0)]);
        rw.create(spec.attr(attributes::POISON, Attr::unit(cx)))?;
    }
    Ok(())
}

/// WRITE: one arena, views into it, no other allocation of a transient.
fn rewrite(host: Op, block: Block, transients: &[Transient], plan: &MemoryPlan) -> Result<(), Diagnostics> {
    let arena = create_arena(host, block, transients, plan.peak_bytes)?;
    let members = transients.iter().enumerate().flat_map(|(i, t)| t.found.members.iter().map(move |m| (m.alloc, i)));
    let places: &HashMap<Op, usize> = &members.collect();
    let of = move |op: Op| places.get(&op).copied();
    let offsets: Vec<u64> = plan.offsets.iter().copied().collect();
    let mut target = ConversionTarget::new();
    target.dynamically_legal_op(ops::memref::ALLOC, move |op| of(op).is_none());
    let mut patterns = PatternSet::new();
    patterns.add_fn(ops::memref::ALLOC, |op, _, rw| {
        let index = of(op).ok_or_else(|| Declined::NoMatch("not a transient".to_owned()))?;
        let offset = rw.const_index(offsets[index] as i64, op.location());
        let spec =
            OpSpec::new(ops::memref::VIEW, op.location()).operands(&[arena, offset]).results(&[op.result(0).ty()]);
        let view = rw.create(spec).map_err(Declined::Failed)?;
        rw.replace_op(op, &[view.result(0)]);
        Ok(())
    });
    convert(host, &target, &patterns, Mode::Partial)?;
    Ok(())
}

fn create_arena<'c>(
    host: Op<'c>,
    block: Block<'c>,
    transients: &[Transient<'c>],
    bytes: u64,
) -> Result<Value<'c>, Diagnostics> {
    let cx = host.context();
    let like = transients[0].found.alloc().result(0).ty();
    let space = like.as_memref().and_then(|m| m.memory_space);
    let bytes = i64::try_from(bytes).map_err(|_| error::not_contiguous(host, &like.to_string()))?;
    let ty = Type::memref(&[bytes], Type::integer(cx, 8), space);
    let mut rw = Rewriter::new(cx);
    rw.set_point(InsertionPoint::Start(block));
    let alloc = typed::memref::alloc(host.location(), &[], ty)
        .attr("alignment", Attr::i64(cx, ALIGNMENT_BYTES as i64))
        .attr(attributes::ARENA, Attr::unit(cx));
    let arena = rw.create(alloc)?.result(0);
    let end = block.terminator().expect("the host function has a terminator");
    rw.set_point(InsertionPoint::Before(end));
    rw.create(OpSpec::new(ops::memref::DEALLOC, host.location()).operands(&[arena]))?;
    Ok(arena)
}

/// WRITE: the requests before all transients, and each transient as its place.
fn request<'c>(rw: &mut Rewriter<'c>, host: Op<'c>, requested: &[Found<'c>]) -> Result<(), Diagnostics> {
    let Some(end) = host.body().and_then(Block::terminator) else { return Ok(()) };
    let places = requested.iter().filter_map(|found| found.alloc().beside(end));
    let first = places.reduce(|first, place| if place.is_before_in_block(first) { place } else { first });
    let Some(first) = first else { return Ok(()) };
    let mut moved = HashSet::new();
    for found in requested {
        for size in transients::sizes_before(host, found.alloc(), &mut moved).unwrap_or_default() {
            if first.is_before_in_block(size) {
                rw.move_before(size, first);
            }
        }
    }
    rw.set_point(InsertionPoint::Before(first));
    let mut made = vec![];
    for found in requested {
        let (alloc, ty) = (found.alloc(), found.alloc().result(0).ty());
        let lives = Attr::dense_i64(host.context(), &[i64::from(found.first), i64::from(found.last)]);
        let spec = OpSpec::new(ops::memref::ALLOC, alloc.location()).operands(&alloc.operands()).results(&[ty]);
        made.push(rw.create(spec.attrs(&alloc.attrs()).attr(attributes::REQUEST, lives))?.result(0));
    }
    let members =
        requested.iter().zip(made).flat_map(|(found, made)| found.members.iter().map(move |m| (m.alloc, made)));
    for (alloc, requested) in members {
        let ty = alloc.result(0).ty();
        rw.set_point(InsertionPoint::Before(alloc));
        let spec = OpSpec::new(ops::memref::CAST, alloc.location()).operands(&[requested]).results(&[ty]);
        let place = rw.create(spec)?;
        rw.replace_op(alloc, &[place.result(0)]);
    }
    Ok(())
}

/// The memrefs of a planned host function that may lie in an arena.
pub(crate) fn in_arena<'c>(host: Op<'c>) -> HashSet<Value<'c>> {
    let is_arena = |root: &Value| {
        let op = root.defining_op().filter(|op| op.is(ops::memref::ALLOC));
        op.is_some_and(|op| op.attr(attributes::ARENA).is_some() || op.attr(attributes::REQUEST).is_some())
    };
    let flows = Flows::of(host);
    flows.reached(flows.roots.iter().copied().filter(is_arena))
}

/// Per argument: whether the kernel only reads it, and a call passes it from the arena.
type InArena = Vec<bool>;

/// Calls of one kernel with the same arguments from the arena.
type Way<'c> = (InArena, Vec<Op<'c>>);

/// The kernels that get memory of the arena, with the ways in which their calls do.
type Widened<'c> = Vec<(Op<'c>, Vec<Way<'c>>)>;

/// READ: the arguments of kernels that lie in the arena, under one of these names, and are only read.
fn widened<'c>(module: &'c Module<'c>, host: Op<'c>, names: &HashSet<Value<'c>>) -> Widened<'c> {
    let symbols = module.symbols();
    let mut found: Widened = vec![];
    let mut places: HashMap<Op, usize> = HashMap::new();
    for call in host.find_all(ops::func::CALL) {
        let kernel = call.callee().and_then(|name| symbols.get(name)).copied();
        let Some(kernel) = kernel else { continue };
        let Some(attrs) = kernel.attr("arg_attrs").and_then(|a| a.as_array()) else { continue };
        let is_read = |i: usize| attrs[i].get(attributes::ACCESS).is_some_and(|a| a.as_string() == Some("read"));
        let is_in_arena = |i: usize| i < call.num_operands() && is_read(i) && names.contains(&call.operand(i));
        let in_arena: InArena = (0..attrs.len()).map(is_in_arena).collect();
        let place = *places.entry(kernel).or_insert_with(|| {
            found.push((kernel, vec![]));
            found.len() - 1
        });
        let ways = &mut found[place].1;
        match ways.iter_mut().find(|(known, _)| *known == in_arena) {
            Some((_, calls)) => calls.push(call),
            None => ways.push((in_arena, vec![call])),
        }
    }
    found
}

/// WRITE: binds arguments in the arena for writing. A kernel whose calls differ in which these are is cloned per way: other
/// arguments keep the kernel's access, so that one buffer may be passed twice.
fn widen_access(host: Op, found: Widened) {
    let cx = host.context();
    let mut rw = Rewriter::new(cx);
    for (kernel, ways) in found {
        let name = kernel.symbol_name().expect("invariant: it was found by its name");
        for (number, (in_arena, calls)) in ways.into_iter().enumerate().rev() {
            // The first way keeps the kernel, and is rewritten last.
            let (own, own_name) =
                if number == 0 { (kernel, name.clone()) } else { copy(kernel, &name, number, &mut rw) };
            widen(own, &in_arena, &mut rw);
            calls.into_iter().for_each(|call| rw.set_attr(call, "callee", Attr::symbol(cx, &own_name)));
        }
    }
}

/// Clones a kernel under a name of its own, behind it.
fn copy<'c>(kernel: Op<'c>, name: &str, number: usize, rw: &mut Rewriter<'c>) -> (Op<'c>, String) {
    let name = format!("{name}_binding_{number}");
    rw.set_point(InsertionPoint::After(kernel));
    let copy = rw.clone_op(kernel, |v| v);
    rw.set_attr(copy, "sym_name", Attr::string(kernel.context(), &name));
    rw.insert(copy);
    (copy, name)
}

fn widen<'c>(kernel: Op<'c>, in_arena: &InArena, rw: &mut Rewriter<'c>) {
    let cx = kernel.context();
    let read_write = Attr::dict(cx, &[(attributes::ACCESS, Attr::string(cx, "read_write"))]);
    let attrs = kernel.attr("arg_attrs").and_then(|a| a.as_array()).unwrap_or_default();
    let widened = attrs.iter().zip(in_arena);
    let widened: Vec<Attr> = widened.map(|(old, arena)| if *arena { read_write } else { *old }).collect();
    rw.set_attr(kernel, "arg_attrs", Attr::array(cx, &widened));
}
