//! The buffers of a host function over its dispatches, and lower bounds for what they hold.
//!
//! ```text
//! %0 = memref.alloc()                         buffer 0: 100 bytes, alive from step 0 to 1
//! scf.forall .. { call @k0(%x, %0) }          step 0: makes a value in buffer 0
//! scf.forall .. { call @k1(%0, %r) }          step 1: reads it, makes the result
//! ```
//! Requires: outlined kernels, before planning. Ensures: facts for [`monopour_analysis::bounds`], in which a value is what a
//! buffer holds between two writes; nothing is in it that some decisions in place could avoid:
//! * A copy of a whole buffer is no value of its own, and a value that is copied into a part of another has no bytes: where it is
//!   made, it could be made there.
//! * A buffer that passes through a loop or a branch, or that an op selects, has no bytes: its values are not followed.
//! * A loop or a branch is one step; a buffer that it reads and writes is only written.
//! * Bytes are those that the kernels' arguments cover, and 0 where they are not static.

use monopour_analysis::bounds::{self, Graph, Origin, Read, Step, Update, Value as Fact};
use monopour_analysis::index::ValueId;
use monopour_contract::attributes;
use monopour_ir::interfaces::{EffectKind, memory_effects};
use monopour_ir::ops;
use monopour_ir::{Block, Module, Op, Value, WalkOrder};
use monopour_program::{Bounds, Life, LifeStep, Lives, Signature};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use crate::plan::{Report, VIEW_LIKE};

/// How an op uses a buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Access {
    reads: bool,
    writes: bool,
    /// Bytes of the part that it uses, if they are known.
    bytes: Option<u64>,
    /// Where it writes, if that is known.
    place: Option<Place>,
}

impl Access {
    /// Another use by the same op; two parts may be the same. Of two that are written and are not, no size is known.
    fn add(&mut self, other: Self) {
        let are_two = self.writes && other.writes && self.place != other.place;
        self.bytes = self.bytes.max(other.bytes).filter(|_| !are_two);
        self.place = match (self.writes, other.writes) {
            (true, true) => self.place.take().filter(|place| other.place.as_ref() == Some(place)),
            (true, false) => self.place.take(),
            (false, _) => other.place,
        };
        self.reads |= other.reads;
        self.writes |= other.writes;
    }
}

/// A part of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    /// Its first element in memory, and the one behind its last.
    elements: (i64, i64),
    /// Where it begins and ends in each dimension of the buffer, if it is a box of it.
    sides: Option<Rc<[(i64, i64)]>>,
}

/// What a copy put into a value: bytes, less what may be overwritten.
#[derive(Clone, Debug)]
struct Carried {
    bytes: u64,
    place: Option<Place>,
}

/// The lives of the buffers of `host`, a function of `module` with inputs and results of this signature.
pub fn run(module: &Module, host: Op, signature: &Signature) -> Lives {
    let Some(body) = host.body() else { return Lives::default() };
    let mut facts = Facts::new(module, body, signature);
    let ops = body.ops();
    for op in &ops {
        facts.op(*op);
    }
    let end = facts.steps.len().saturating_sub(1) as u32;
    let returned = ops.last().map(|op| op.operands()).unwrap_or_default();
    for (result, value) in returned.into_iter().enumerate().filter(|(_, value)| value.ty().is_memref()) {
        facts.result(result as u32, value, end);
    }
    facts.into_lives()
}

/// Sets the offsets in the arena, once it is planned: transients are in the order of their allocations.
pub fn place(lives: &mut Lives, plan: &Report) {
    let mut from = 0;
    // Those of loops and branches have no buffer here.
    for placed in &plan.transients {
        let is_it = |b: &Life| b.location == placed.location && b.bytes == Some(placed.size_bytes);
        if let Some(at) = lives.buffers[from..].iter().position(is_it) {
            lives.buffers[from + at].offset = Some(placed.offset_bytes);
            from += at + 1;
        }
    }
}

struct Facts<'c> {
    kernels: HashMap<String, Vec<Access>>,
    /// Kernels that copy one argument into another, with the bytes of all tiles if they do nothing else.
    copying: HashMap<String, u64>,
    graph: Graph,
    steps: Vec<LifeStep>,
    /// Buffers that the body allocates, in order, with the steps that use them.
    allocs: Vec<(Value<'c>, Life, bool)>,
    by_value: HashMap<Value<'c>, usize>,
    /// What each buffer holds.
    holds: HashMap<Value<'c>, ValueId>,
    /// Values without bytes of their own.
    moved: HashSet<ValueId>,
    /// Buffers whose values are not followed.
    unknown: HashSet<Value<'c>>,
    /// By result: bytes that only a copy of an input or a constant puts there; all of it, if the result is one.
    returned: Vec<u64>,
    /// What a value holds of inputs and constants, which only copies put there.
    carried: HashMap<ValueId, Vec<Carried>>,
}

impl<'c> Facts<'c> {
    fn new(module: &Module<'c>, body: Block<'c>, signature: &Signature) -> Facts<'c> {
        let kernels = module.functions().into_iter().filter(|f| f.attr(attributes::KERNEL).is_some());
        let copying = kernels.clone().filter(|kernel| kernel.attr(attributes::COPY_SITES).is_some());
        let mut facts = Facts {
            copying: copying.filter_map(|kernel| Some((kernel.symbol_name()?, copied_bytes(kernel)))).collect(),
            kernels: kernels.filter_map(|kernel| Some((kernel.symbol_name()?, accesses(kernel)))).collect(),
            graph: Graph::default(),
            steps: vec![],
            allocs: vec![],
            by_value: HashMap::new(),
            holds: HashMap::new(),
            moved: HashSet::new(),
            unknown: HashSet::new(),
            returned: vec![],
            carried: HashMap::new(),
        };
        for (i, argument) in body.args().into_iter().enumerate().filter(|(_, a)| a.ty().is_memref()) {
            let donated = signature.inputs.get(i).is_some_and(|input| input.donated);
            facts.start(argument, if donated { Origin::Donated } else { Origin::ReadOnly });
        }
        facts
    }

    /// The value that an input or a constant begins with.
    fn start(&mut self, buffer: Value<'c>, origin: Origin) {
        let bytes = buffer.ty().static_size_bytes().unwrap_or(0);
        let value = self.graph.values.push(Fact { bytes, origin, is_result: false });
        self.holds.insert(buffer, value);
    }

    fn op(&mut self, op: Op<'c>) {
        match op.name() {
            ops::memref::ALLOC => {
                let bytes = op.result(0).ty().static_size_bytes();
                let life = Life { location: place_of(op), bytes, ..Life::default() };
                self.by_value.insert(op.result(0), self.allocs.len());
                self.allocs.push((op.result(0), life, false));
            }
            ops::memref::GET_GLOBAL => self.start(op.result(0), Origin::ReadOnly),
            ops::memref::DEALLOC | ops::func::RETURN => {}
            name if VIEW_LIKE.contains(&name) => {}
            ops::memref::COPY => self.copy(op),
            _ if op.operands().iter().any(|v| v.ty().is_memref()) || !op.regions().is_empty() => self.step(op),
            _ => {}
        }
    }

    /// A dispatch, a loop or a branch, or an op on elements.
    fn step(&mut self, op: Op<'c>) {
        let call = op.body().and_then(Block::first_op).filter(|call| call.is(ops::func::CALL));
        let name = call.filter(|_| op.is(ops::scf::FORALL)).and_then(Op::callee);
        let is_dispatch = name.is_some();
        let used = self.used(op);
        if used.is_empty() {
            return;
        }
        let name = name.unwrap_or(op.name()).to_owned();
        let mut step = Step::default();
        let copied = call.and_then(Op::callee).and_then(|name| self.copying.get(name).copied());
        let is_input = |buffer: &Value<'c>| {
            self.holds.get(buffer).is_some_and(|held| self.graph.values[*held].origin == Origin::ReadOnly)
        };
        let copied_input =
            copied.filter(|_| used.len() == 2 && used.iter().all(|(buffer, access)| !access.reads || is_input(buffer)));
        for (buffer, access) in &used {
            let whole = buffer.ty().static_size_bytes();
            if !is_dispatch && access.reads && access.writes {
                // What it read before it wrote is not known.
                self.write(&mut step, *buffer, (None, None));
                continue;
            }
            if let (true, Some(held)) = (access.reads, self.holds.get(buffer)) {
                let bytes = whole.filter(|_| access.bytes == whole).unwrap_or(0);
                if copied.is_some() && !access.writes {
                    self.moved.insert(*held);
                }
                step.reads.push(Read { value: *held, bytes });
            }
            if access.writes {
                self.write(&mut step, *buffer, (access.bytes, access.place.clone()));
                if let (Some(bytes), Some(new)) = (copied_input, self.holds.get(buffer)) {
                    let place = access.place.clone();
                    self.carried.entry(*new).or_default().push(Carried { bytes, place });
                }
            }
        }
        // An update reads what it keeps: not twice.
        step.reads.retain(|read| step.updates.iter().all(|update| update.old != read.value));
        self.push(op, name, step);
    }

    /// A new value in a buffer, of which a step writes `covered` bytes; `None`: it may write any.
    fn write(&mut self, step: &mut Step, buffer: Value<'c>, (covered, place): (Option<u64>, Option<Place>)) {
        let whole = buffer.ty().static_size_bytes().unwrap_or(0);
        let old = self.holds.get(&buffer).copied();
        let before = old.map_or(0, |old| self.graph.values[old].bytes);
        let is_part = covered.is_some_and(|covered| covered < whole);
        let bytes = match covered {
            Some(covered) if is_part => before.saturating_add(covered).min(whole),
            Some(_) => whole,
            None => 0,
        };
        let new = self.graph.values.push(Fact { bytes, origin: Origin::Made, is_result: false });
        step.makes.push(new);
        if let (true, Some(old), Some(covered)) = (is_part, old, covered) {
            step.updates.push(Update { old, new, kept_bytes: before.saturating_sub(covered) });
            if let Some(mut carried) = self.carried.get(&old).cloned() {
                // What is written may be over what was copied.
                for of in carried.iter_mut().filter(|of| !are_apart(of.place.as_ref(), place.as_ref())) {
                    of.bytes = of.bytes.saturating_sub(covered);
                }
                self.carried.insert(new, carried);
            }
        }
        self.holds.insert(buffer, new);
    }

    fn copy(&mut self, op: Op<'c>) {
        let (from, to) = (base(op.operand(0)), base(op.operand(1)));
        let (Some(from), Some(to)) = (from, to) else { return };
        let bytes = [op.operand(0), op.operand(1)].into_iter().find_map(|v| v.ty().static_size_bytes());
        let is_whole = |buffer: Value<'c>| bytes.is_some() && buffer.ty().static_size_bytes() == bytes;
        let mut step = Step::default();
        let source = self.holds.get(&from).copied();
        match source {
            // The same value, in two places until one of them is written.
            Some(value) if is_whole(from) && is_whole(to) => {
                self.holds.insert(to, value);
            }
            source => {
                if let Some(value) = source {
                    self.moved.insert(value);
                    step.reads.push(Read { value, bytes: if is_whole(from) { bytes.unwrap_or(0) } else { 0 } });
                }
                let place = part_of(op.operand(1));
                self.write(&mut step, to, (bytes, place.clone()));
                let is_input = source.is_some_and(|value| self.graph.values[value].origin == Origin::ReadOnly);
                if let (true, Some(bytes), Some(new)) = (is_input, bytes, self.holds.get(&to)) {
                    self.carried.entry(*new).or_default().push(Carried { bytes, place });
                }
            }
        }
        self.touch(from);
        self.touch(to);
        self.push(op, "copy".to_owned(), step);
    }

    fn push(&mut self, op: Op<'c>, name: String, step: Step) {
        self.graph.steps.push(step);
        self.steps.push(LifeStep { name, location: place_of(op), bound_bytes: 0 });
    }

    /// Notes that the next step uses a buffer.
    fn touch(&mut self, buffer: Value<'c>) {
        let Some(at) = self.by_value.get(&buffer) else { return };
        let (step, (_, life, is_used)) = (self.steps.len() as u32, &mut self.allocs[*at]);
        life.first = if *is_used { life.first } else { step };
        life.last = step;
        *is_used = true;
    }

    /// The buffers that an op and the ops in it use, in order.
    fn used(&mut self, op: Op<'c>) -> Vec<(Value<'c>, Access)> {
        let mut used: Vec<(Value<'c>, Access)> = vec![];
        let mut note = |buffer: Value<'c>, access: Access| match used.iter_mut().find(|(known, _)| *known == buffer) {
            Some((_, known)) => known.add(access),
            None => used.push((buffer, access)),
        };
        let mut passed = vec![];
        op.walk(WalkOrder::Pre, |inner| {
            let kernel = inner.callee().and_then(|name| self.kernels.get(name));
            if let Some(kernel) = kernel {
                for (argument, access) in inner.operands().into_iter().zip(kernel) {
                    let bytes = bytes_of(argument);
                    let Some(buffer) = base(argument) else { continue };
                    // Of a whole buffer a kernel may write a part.
                    let access = match &access.place {
                        Some(_) if buffer == argument => access.clone(),
                        _ => Access { bytes, place: part_of(argument), ..access.clone() },
                    };
                    note(buffer, access);
                }
                return;
            }
            if VIEW_LIKE.contains(&inner.name()) {
                return;
            }
            let is_plain = [ops::memref::LOAD, ops::memref::STORE, ops::memref::COPY, ops::memref::DIM];
            let effects = if is_plain.contains(&inner.name()) { memory_effects(inner) } else { None };
            for operand in inner.operands().into_iter().filter(|v| v.ty().is_memref()) {
                let Some(buffer) = base(operand) else { continue };
                match &effects {
                    Some(effects) => {
                        let has = |kind| effects.iter().any(|e| e.kind == kind && e.value == Some(operand));
                        let (reads, writes) = (has(EffectKind::Read), has(EffectKind::Write));
                        let ty = operand.ty();
                        let bytes =
                            if inner.is(ops::memref::COPY) { bytes_of(operand) } else { ty.element_size_bytes() };
                        note(buffer, Access { reads, writes, bytes, place: part_of(operand) });
                    }
                    // It goes on under another name.
                    None if !inner.is(ops::memref::DEALLOC) => {
                        note(buffer, Access { reads: true, writes: true, bytes: None, place: None });
                        passed.push(buffer);
                    }
                    None => {}
                }
            }
        });
        self.unknown.extend(passed);
        used.iter().for_each(|(buffer, _)| self.touch(*buffer));
        used
    }

    fn result(&mut self, result: u32, value: Value<'c>, end: u32) {
        let Some(buffer) = base(value) else { return };
        if let Some(held) = self.holds.get(&buffer) {
            let fact = &mut self.graph.values[*held];
            fact.is_result = true;
            let carried = self.carried.get(held).into_iter().flatten().map(|of| of.bytes);
            self.returned.extend(carried.filter(|bytes| *bytes > 0));
            if fact.origin == Origin::ReadOnly && self.by_value.contains_key(&buffer) {
                self.returned.push(fact.bytes);
            }
        }
        if let Some(at) = self.by_value.get(&buffer) {
            let (_, life, is_used) = &mut self.allocs[*at];
            life.result = Some(result);
            life.last = end;
            life.first = if *is_used { life.first } else { end };
            *is_used = true;
        }
    }

    fn into_lives(mut self) -> Lives {
        // Values that are not followed, or that could be made in their place, count nothing.
        for buffer in &self.unknown {
            self.moved.extend(self.holds.get(buffer));
        }
        for value in &self.moved {
            let fact = &mut self.graph.values[*value];
            if fact.origin == Origin::Made {
                fact.bytes = 0;
            }
        }
        let peaks = bounds::peak_in_order(&self.graph);
        let (any_order_bytes, is_any_order_exact) = bounds::peak_in_any_order(&self.graph);
        let copies = bounds::copies(&self.graph);
        self.steps.iter_mut().zip(&peaks).for_each(|(step, bytes)| step.bound_bytes = *bytes);
        let bounds = Bounds {
            peak_bytes: peaks.into_iter().max().unwrap_or(0),
            any_order_bytes,
            is_any_order_exact,
            copies: copies.copies + self.returned.len() as u64,
            copied_bytes: self.returned.iter().fold(copies.bytes, |sum, bytes| sum.saturating_add(*bytes)),
        };
        let used = self.allocs.into_iter().filter(|(_, _, is_used)| *is_used).map(|(_, life, _)| life);
        let buffers = if self.steps.is_empty() { vec![] } else { used.collect() };
        Lives { steps: self.steps, buffers, bounds }
    }
}

/// The allocation, argument or global that a value is a view of; `None` for one that a loop, a branch or a selection gives.
fn base<'c>(mut value: Value<'c>) -> Option<Value<'c>> {
    while let Some(op) = value.defining_op() {
        if op.is(ops::memref::ALLOC) || op.is(ops::memref::GET_GLOBAL) {
            return Some(value);
        }
        if !VIEW_LIKE.contains(&op.name()) {
            return None;
        }
        value = op.operand(0);
    }
    value.ty().is_memref().then_some(value)
}

/// The part of its buffer that a view of static place is.
fn part_of(view: Value) -> Option<Place> {
    let whole = base(view)?.ty().as_memref()?;
    let ty = view.ty().as_memref()?;
    let numbers = ty.shape.iter().chain(&ty.strides).chain(&whole.shape).chain([&ty.offset]);
    if whole.offset != 0 || numbers.into_iter().any(|number| *number < 0) || ty.shape.contains(&0) {
        return None;
    }
    let steps = ty.shape.iter().zip(&ty.strides);
    let last = steps.map(|(size, stride)| (size - 1) * stride).sum::<i64>();
    // Each dimension of the buffer from its position in the offset, as long as the view's dimension of its stride.
    let (mut rest, mut found) = (ty.offset, 0);
    let sides: Rc<[(i64, i64)]> = (whole.shape.iter().zip(&whole.strides))
        .map(|(_, stride)| {
            let from = rest / stride.max(&1);
            rest %= stride.max(&1);
            let own = ty.strides.iter().zip(&ty.shape).find(|(own, size)| *own == stride && **size > 1);
            found += usize::from(own.is_some());
            (from, from + own.map_or(1, |(_, size)| *size))
        })
        .collect();
    let is_box = found == ty.shape.iter().filter(|size| **size > 1).count()
        && sides.iter().zip(&whole.shape).all(|((_, to), size)| to <= size);
    Some(Place { elements: (ty.offset, ty.offset + last + 1), sides: is_box.then_some(sides) })
}

/// Whether two parts have no element in common.
fn are_apart(a: Option<&Place>, b: Option<&Place>) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return false };
    let apart = |(a, b): (&(i64, i64), &(i64, i64))| a.1 <= b.0 || b.1 <= a.0;
    let sides = a.sides.as_ref().zip(b.sides.as_ref());
    apart((&a.elements, &b.elements)) || sides.is_some_and(|(a, b)| a.iter().zip(b.iter()).any(apart))
}

/// The bytes of the elements of a memref.
fn bytes_of(value: Value) -> Option<u64> {
    value.ty().static_size_bytes()
}

/// The bytes that all tiles of a kernel copy, if it is one copy; 0 if that is not known.
fn copied_bytes(kernel: Op) -> u64 {
    let [copy] = kernel.find_all(ops::memref::COPY)[..] else { return 0 };
    let bytes = copy.attr(attributes::COPIED_BYTES).and_then(|bytes| bytes.as_int());
    bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0)
}

/// How a kernel uses each of its arguments: with the part that it writes, if all of its writes are in one.
fn accesses(kernel: Op) -> Vec<Access> {
    let arguments = kernel.body().map(|body| body.args()).unwrap_or_default();
    let mut found = vec![Access::default(); arguments.len()];
    kernel.walk(WalkOrder::Pre, |op| {
        if VIEW_LIKE.contains(&op.name()) {
            return;
        }
        let effects = memory_effects(op);
        for operand in op.operands().into_iter().filter(|v| v.ty().is_memref()) {
            let Some(at) = base(operand).and_then(|base| arguments.iter().position(|argument| *argument == base))
            else {
                continue;
            };
            let has = |kind| match &effects {
                Some(effects) => effects.iter().any(|e| e.kind == kind && e.value == Some(operand)),
                None => true,
            };
            found[at].reads |= has(EffectKind::Read);
            if has(EffectKind::Write) {
                let (bytes, place) = first_view(operand).map_or((None, None), |view| (bytes_of(view), part_of(view)));
                let is_first = !found[at].writes;
                if is_first {
                    (found[at].bytes, found[at].place) = (bytes, place);
                } else if found[at].place != place {
                    (found[at].bytes, found[at].place) = (None, None);
                }
                found[at].writes = true;
            }
        }
    });
    found
}

/// The view of a whole buffer that a value is a view of, or is.
fn first_view<'c>(value: Value<'c>) -> Option<Value<'c>> {
    let mut view = None;
    let mut value = value;
    while let Some(op) = value.defining_op().filter(|op| VIEW_LIKE.contains(&op.name())) {
        view = Some(value);
        value = op.operand(0);
    }
    view
}

fn place_of(op: Op) -> String {
    op.location().position().map(|(file, line, column)| format!("{file}:{line}:{column}")).unwrap_or_default()
}
