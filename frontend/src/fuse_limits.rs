//! The buffers of what fusion makes, beside those that a device binds.
//!
//! Elementwise fusion knows no bound: a sum of forty tensors becomes one op of forty inputs, which a device of 32 storage buffers cannot
//! run. [`crowded`] finds the values at which to stop; [`epilogue_fits`] whether a product and what finishes it are one dispatch.
//!
//! Limits: an op of the program that reads more by itself stays as it is, for the code generator's diagnostic; chains of rows are not
//! counted.

use crate::linalg;
use monopour_ir::{Module, Op, Value, ops};
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
