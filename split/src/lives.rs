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

use crate::plan::{Report, VIEW_LIKE};

/// How an op uses a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Access {
    reads: bool,
    writes: bool,
    /// Bytes of the part that it uses, if they are known.
    bytes: Option<u64>,
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
    let mut buffers = lives.buffers.iter_mut();
    for placed in &plan.transients {
        let found = buffers.find(|b| b.location == placed.location && b.bytes == Some(placed.size_bytes));
        found.into_iter().for_each(|buffer| buffer.offset = Some(placed.offset_bytes));
    }
}

struct Facts<'c> {
    kernels: HashMap<String, Vec<Access>>,
    /// Kernels that copy one argument into another.
    copying: HashSet<String>,
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
    /// What a value holds of inputs and constants, which only copies put there: bytes, less what may be overwritten.
    carried: HashMap<ValueId, u64>,
}

impl<'c> Facts<'c> {
    fn new(module: &Module<'c>, body: Block<'c>, signature: &Signature) -> Facts<'c> {
        let kernels = module.functions().into_iter().filter(|f| f.attr(attributes::KERNEL).is_some());
        let copying = kernels.clone().filter(|kernel| kernel.attr(attributes::COPY_SITES).is_some());
        let mut facts = Facts {
            copying: copying.filter_map(Op::symbol_name).collect(),
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
        let copies_parts = call.and_then(Op::callee).is_some_and(|name| self.copying.contains(name));
        for (buffer, access) in &used {
            let whole = buffer.ty().static_size_bytes();
            if !is_dispatch && access.reads && access.writes {
                // What it read before it wrote is not known.
                self.write(&mut step, *buffer, None);
                continue;
            }
            if let (true, Some(held)) = (access.reads, self.holds.get(buffer)) {
                let bytes = whole.filter(|_| access.bytes == whole).unwrap_or(0);
                if copies_parts && !access.writes {
                    self.moved.insert(*held);
                }
                step.reads.push(Read { value: *held, bytes });
            }
            if access.writes {
                self.write(&mut step, *buffer, access.bytes);
            }
        }
        // An update reads what it keeps: not twice.
        step.reads.retain(|read| step.updates.iter().all(|update| update.old != read.value));
        self.push(op, name, step);
    }

    /// A new value in a buffer, of which a step writes `covered` bytes; `None`: it may write any.
    fn write(&mut self, step: &mut Step, buffer: Value<'c>, covered: Option<u64>) {
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
            if let Some(bytes) = self.carried.get(&old).copied() {
                // What is written may be over what was copied.
                self.carried.insert(new, bytes.saturating_sub(covered));
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
                self.write(&mut step, to, bytes);
                let is_input = source.is_some_and(|value| self.graph.values[value].origin == Origin::ReadOnly);
                if let (true, Some(bytes), Some(new)) = (is_input, bytes, self.holds.get(&to)) {
                    let carried = self.carried.entry(*new).or_default();
                    *carried = carried.saturating_add(bytes);
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
            Some((_, known)) => {
                // Two parts may be the same.
                let bytes = known.bytes.max(access.bytes);
                *known = Access { reads: known.reads || access.reads, writes: known.writes || access.writes, bytes };
            }
            None => used.push((buffer, access)),
        };
        let mut passed = vec![];
        op.walk(WalkOrder::Pre, |inner| {
            let kernel = inner.callee().and_then(|name| self.kernels.get(name));
            if let Some(kernel) = kernel {
                for (argument, access) in inner.operands().into_iter().zip(kernel) {
                    let bytes = bytes_of(argument);
                    base(argument).into_iter().for_each(|buffer| note(buffer, Access { bytes, ..*access }));
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
                        note(buffer, Access { reads, writes, bytes });
                    }
                    // It goes on under another name.
                    None if !inner.is(ops::memref::DEALLOC) => {
                        note(buffer, Access { reads: true, writes: true, bytes: None });
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
            self.returned.extend(self.carried.get(held).filter(|bytes| **bytes > 0));
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

/// The bytes of the elements of a memref.
fn bytes_of(value: Value) -> Option<u64> {
    value.ty().static_size_bytes()
}

/// How a kernel uses each of its arguments.
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
            found[at].writes |= has(EffectKind::Write);
        }
    });
    found
}

fn place_of(op: Op) -> String {
    op.location().position().map(|(file, line, column)| format!("{file}:{line}:{column}")).unwrap_or_default()
}
