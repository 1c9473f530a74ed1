//! Order the dispatches of a function for memory.
//!
//! ```text
//! %p = scf.forall .. %x                     %p = scf.forall .. %x
//! %q = scf.forall .. %y                     %r = scf.forall .. %p
//! %r = scf.forall .. %p             ==>     %q = scf.forall .. %y
//! %s = scf.forall .. %q                     %s = scf.forall .. %q
//! ```
//!
//! [`monopour_analysis::bounds::order_for_memory`] chooses on the values of the function's block; a view reads what it
//! is a view of.
//!
//! Requires: functions on tensors, before bufferization. Ensures: the same ops on the same values. A tensor that an op
//! may overwrite is read by the same ops before it as before, so that no order costs a copy.
//! Limits: functions of one block, in which no op with effects lies between the first and the last op on tensors.

use std::collections::{HashMap, HashSet};

use monopour_analysis::bounds::{Graph, Origin, Read, Step, Value as Fact, order_for_memory};
use monopour_analysis::index::ValueId;
use monopour_contract::attributes;
use monopour_ir::typed::scf::ForAll;
use monopour_ir::{Attr, Block, Op, Rewriter, Value, ops};
use tracing::trace;

use crate::improve::functions;
use crate::options::Options;
use crate::subset_extraction::{Movable, may_move, read_values};

/// Ops whose result is a view of their first operand.
const VIEWS: [&str; 4] =
    [ops::tensor::CAST, ops::tensor::COLLAPSE_SHAPE, ops::tensor::EXPAND_SHAPE, ops::tensor::EXTRACT_SLICE];

/// Orders the dispatches of a module's functions; returns how many functions it changes. Nothing is done but with
/// [`crate::Strategy::Minimal`].
pub fn order_dispatches(root: Op, options: &Options) -> usize {
    if !options.effective().is_minimal() {
        return 0;
    }
    functions(root).into_iter().filter(|function| order(*function)).count()
}

fn order(function: Op) -> bool {
    let [block] = function.regions().first().map(|region| region.blocks()).unwrap_or_default()[..] else {
        return false;
    };
    let ops = block.ops();
    let (first, last) = (ops.iter().position(|op| is_step(*op)), ops.iter().rposition(|op| is_step(*op)));
    let (Some(first), Some(last)) = (first, last) else { return false };
    let moved = &ops[first..=last];
    let steps: Vec<Op> = moved.iter().copied().filter(|op| is_step(*op)).collect();
    if steps.len() < 3 || !moved.iter().all(|op| may_move(*op, Movable::Nested)) {
        return false;
    }
    let (graph, after) = Facts::new(function, block).graph(&steps, &ops[last + 1..]);
    let Some(order) = order_for_memory(&graph, &after) else { return false };
    // The terminator is behind the last step.
    let Some(end) = ops.get(last + 1).copied() else { return false };
    let (mut rw, mut placed) = (Rewriter::new(function.context()), HashSet::new());
    let inside: HashSet<Op> = moved.iter().copied().collect();
    let in_order = order.iter().map(|step| steps[*step]).chain(moved.iter().copied());
    for op in in_order.flat_map(|op| with_operands(op, &inside, &mut placed)).collect::<Vec<_>>() {
        rw.move_before(op, end);
    }
    trace!(target: "bufferize", "{}: {} dispatches in another order", function.location(), steps.len());
    true
}

/// Whether an op reads or makes tensors that take memory.
fn is_step(op: Op) -> bool {
    let skipped = VIEWS.contains(&op.name())
        || [ops::tensor::EMPTY, ops::tensor::DIM, ops::arith::CONSTANT].contains(&op.name())
        || op.is_terminator();
    let has_tensors = || op.operands().iter().chain(&op.results()).any(|value| value.ty().is_tensor());
    !skipped && has_tensors()
}

/// An op behind those in `inside` that it needs and that are not placed yet.
fn with_operands<'c>(op: Op<'c>, inside: &HashSet<Op<'c>>, placed: &mut HashSet<Op<'c>>) -> Vec<Op<'c>> {
    let (mut found, mut stack) = (vec![], vec![(op, false)]);
    while let Some((op, is_ready)) = stack.pop() {
        if is_ready {
            if placed.insert(op) {
                found.push(op);
            }
        } else if !placed.contains(&op) {
            stack.push((op, true));
            let needed = read_values(op).into_iter().rev().filter_map(Value::defining_op);
            stack.extend(needed.filter(|needed| inside.contains(needed)).map(|needed| (needed, false)));
        }
    }
    found
}

/// The tensor that a value is a view of.
fn base(mut value: Value) -> Value {
    while let Some(op) = value.defining_op().filter(|op| VIEWS.contains(&op.name())) {
        value = op.operand(0);
    }
    value
}

/// The operands whose tensors an op may overwrite.
fn overwritten<'c>(op: Op<'c>) -> Vec<Value<'c>> {
    match ForAll::of(op) {
        Some(forall) => forall.outputs(),
        // A source of an insertion is not, but may be the result's part.
        None => op.operands().into_iter().filter(|value| value.ty().is_tensor()).collect(),
    }
}

struct Facts<'c> {
    graph: Graph,
    ids: HashMap<Value<'c>, ValueId>,
}

impl<'c> Facts<'c> {
    fn new(function: Op<'c>, block: Block<'c>) -> Self {
        let mut facts = Self { graph: Graph::default(), ids: HashMap::new() };
        let given = function.attr("arg_attrs").and_then(|attrs| attrs.as_array()).unwrap_or_default();
        for (number, argument) in block.args().into_iter().enumerate().filter(|(_, a)| a.ty().is_tensor()) {
            let donated = given.get(number).is_some_and(|attrs: &Attr| attrs.get(attributes::DONATE).is_some());
            facts.add(argument, if donated { Origin::Donated } else { Origin::ReadOnly });
        }
        facts
    }

    fn add(&mut self, value: Value<'c>, origin: Origin) -> ValueId {
        let bytes = value.ty().static_size_bytes().unwrap_or(0);
        let id = self.graph.values.push(Fact { bytes, origin, is_result: false });
        self.ids.insert(value, id);
        id
    }

    /// The graph of the steps, and the steps that each must come behind. What `rest`, the ops behind them, use is a
    /// result.
    fn graph(mut self, steps: &[Op<'c>], rest: &[Op<'c>]) -> (Graph, Vec<Vec<usize>>) {
        let mut after = vec![vec![]; steps.len()];
        // By value: the steps that read it, and the last that may have overwritten it.
        let mut readers: HashMap<ValueId, Vec<usize>> = HashMap::new();
        let mut writers: HashMap<ValueId, usize> = HashMap::new();
        for (number, op) in steps.iter().enumerate() {
            let mut step = Step::default();
            for value in read_values(*op).into_iter().filter(|value| value.ty().is_tensor()) {
                let Some(&value) = self.ids.get(&base(value)) else { continue };
                if step.reads.iter().all(|read| read.value != value) {
                    step.reads.push(Read { value, bytes: 0 });
                    after[number].extend(writers.get(&value));
                }
            }
            for value in overwritten(*op) {
                let Some(&value) = self.ids.get(&base(value)) else { continue };
                // Those behind it come behind what it comes behind.
                after[number].extend(readers.remove(&value).into_iter().flatten());
                writers.insert(value, number);
            }
            step.reads.iter().for_each(|read| readers.entry(read.value).or_default().push(number));
            let made = op.results().into_iter().filter(|result| result.ty().is_tensor());
            step.makes = made.map(|result| self.add(result, Origin::Made)).collect();
            self.graph.steps.push(step);
        }
        for value in rest.iter().flat_map(|op| read_values(*op)) {
            if let Some(id) = self.ids.get(&base(value)) {
                self.graph.values[*id].is_result = true;
            }
        }
        (self.graph, after)
    }
}
