//! The buffers of what fusion makes, beside those that a device binds.
//!
//! Elementwise fusion knows no bound: a sum of forty tensors becomes one op of forty inputs, which a device of 32 storage buffers cannot
//! run. [`crowded`] finds the values at which to stop; [`epilogue_fits`] whether a product and what finishes it are one dispatch;
//! [`rows_fit`] whether ops along rows are.
//!
//! Limits: an op of the program that reads more by itself stays as it is, for the code generator's diagnostic.

use crate::linalg;
use monopour_ir::{Module, Op, Value, WalkOrder, ops};
use std::collections::{HashMap, HashSet};

/// Values, each with its only reader, that the reader must not compute: with them it would bind more than `most_buffers`.
pub(crate) fn crowded<'c>(module: &'c Module<'c>, most_buffers: usize) -> Vec<(Value<'c>, Op<'c>)> {
    let mut reads: HashMap<Op, HashSet<Value>> = HashMap::new();
    let mut found = vec![];
    for op in linalg::structured_ops(module.op()) {
        let inputs: HashSet<Value> = tensors(op).into_iter().collect();
        let mut all = inputs.clone();
        // In the order of the operands: the same program, the same dispatches.
        for value in tensors(op) {
            let Some(producer) = value.defining_op().filter(|p| is_fused(*p, op)) else { continue };
            let mut joined = all.clone();
            joined.remove(&value);
            joined.extend(reads.get(&producer).into_iter().flatten());
            if buffers(op, &joined) <= most_buffers {
                all = joined;
            } else if joined.len() > all.len() {
                found.push((value, op));
            }
        }
        reads.insert(op, all);
    }
    found
}

/// Whether a product and the pointwise op that finishes it bind at most `most_buffers`.
pub(crate) fn epilogue_fits(op: Op, most_buffers: usize) -> bool {
    buffers(op, &tensors(op).into_iter().collect()) <= most_buffers
}

/// Whether ops along rows, as one dispatch, bind at most `most_buffers`: the tensors that they read of others, and their results that
/// others read. A destination counts where nothing outside reads its result, unless it is a constant or has no values: it is read.
pub(crate) fn rows_fit(members: &HashSet<Op>, most_buffers: usize) -> bool {
    let is_within = |value: &Value| value.defining_op().is_some_and(|def| members.contains(&def));
    let is_written = |value: &Value| value.uses().iter().any(|u| !members.contains(&u.op));
    let has_values =
        |value: &Value| value.defining_op().is_none_or(|def| !def.is(ops::linalg::FILL) && !def.is(ops::tensor::EMPTY));
    let (mut read, mut written) = (HashSet::new(), 0);
    for op in members {
        let destinations = op.operands().split_off(linalg::num_inputs(*op));
        let initial = destinations.into_iter().zip(op.results());
        let initial =
            initial.filter(|(value, result)| !is_written(result) && has_values(value)).map(|(value, _)| value);
        let inside = op.nested(WalkOrder::Pre).into_iter().filter(|inner| inner != op).flat_map(Op::operands);
        let captured = inside.filter(|v| v.ty().is_tensor());
        read.extend(tensors(*op).into_iter().chain(initial).chain(captured).filter(|v| !is_within(v)));
        written += op.results().iter().filter(|v| is_written(v)).count();
    }
    read.len() + written <= most_buffers
}

/// The inputs that are tensors.
fn tensors<'c>(op: Op<'c>) -> Vec<Value<'c>> {
    let inputs = op.operands().into_iter().take(linalg::num_inputs(op));
    inputs.filter(|v| v.ty().shape().is_some()).collect()
}

/// Whether fusion takes a producer into its reader, which is the only one: once or as several operands, of which some may be
/// destinations that nothing reads.
fn is_fused(producer: Op, reader: Op) -> bool {
    let is_pointwise = || linalg::parallel_loops(producer).is_some_and(|loops| loops.iter().all(|parallel| *parallel));
    let is_only = || producer.results().iter().flat_map(|v| v.uses()).all(|u| u.op == reader);
    producer.is(ops::linalg::GENERIC) && producer.num_results() == 1 && is_only() && is_pointwise()
}

/// Buffers of a dispatch of `op` that reads these: one of the results of products among them it may finish, in whose place it binds the
/// product's factors.
fn buffers(op: Op, reads: &HashSet<Value>) -> usize {
    let reduces =
        |p: &Op| linalg::parallel_loops(*p).is_some_and(|loops| loops.contains(&false)) || p.is(ops::linalg::MATMUL);
    let finishes =
        |v: &Value| v.defining_op().filter(|p| linalg::is_structured(*p) && reduces(p)).map(linalg::num_inputs);
    // The result overwrites the product.
    let factors = reads.iter().filter_map(finishes).max().map_or(0, |factors| factors.saturating_sub(1));
    reads.len() + op.num_results() + factors
}
