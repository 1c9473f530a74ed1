//! Elementwise ops over the same loops as one op of several results.
//!
//! Before / after:
//!
//! ```text
//! %y = generic ins(%m, %b) { addf }           %r:2 = generic ins(%m, %b) { addf; maximumf of the sum; yield both }
//! %z = generic ins(%y) { maximumf }
//! ```
//!
//! Requires: generics whose loops have the same extents, and which read one another's results by the loops alone.
//! Ensures: an operand that several of them read by one map is one operand.

use crate::linalg;
use monopour_ir::typed::linalg::{Operands, generic};
use monopour_ir::{AffineMap, Block, Diagnostics, InsertionPoint, Op, OpSpec, Region, Rewriter, Value, ops};
use std::collections::HashMap;

/// Replaces the ops, in program order, by one at `point`; returns it. Its results are theirs, in order.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(crate) fn join<'c>(
    ops: &[Op<'c>],
    point: InsertionPoint<'c>,
    rw: &mut Rewriter<'c>,
) -> Result<Op<'c>, Diagnostics> {
    let last = *ops.last().expect("invariant: there are several");
    let loc = last.location();
    let parts = Parts::of(ops);
    let outputs: Vec<Value> = ops.iter().flat_map(|op| op.operands().split_off(linalg::num_inputs(*op))).collect();
    let inputs: Vec<Value> = parts.inputs.iter().map(|(value, _)| *value).collect();
    let maps: Vec<AffineMap> = parts.inputs.iter().map(|(_, map)| *map).chain(parts.result_maps.clone()).collect();
    let arguments: Vec<_> = inputs.iter().chain(&outputs).map(|v| (v.ty().element(), loc)).collect();
    let block = Block::new(&arguments);
    let region = Region::new();
    region.append(block);
    rw.set_point(InsertionPoint::End(block));
    let mut computed: HashMap<Value, Value> = HashMap::new();
    let mut yielded = vec![];
    for (op, own) in ops.iter().zip(&parts.own) {
        let body = op.body().expect("invariant: a generic has a body");
        let mut map: HashMap<Value, Value> = HashMap::new();
        for (i, source) in own.iter().enumerate() {
            map.insert(body.arg(i), source.map_or_else(|| computed[&op.operand(i)], |input| block.arg(input)));
        }
        for i in 0..op.num_results() {
            map.insert(body.arg(own.len() + i), block.arg(inputs.len() + yielded.len() + i));
        }
        let results = copy_body(body, &mut map, rw);
        computed.extend(op.results().into_iter().zip(results.iter().copied()));
        yielded.extend(results);
    }
    rw.create(OpSpec::new(ops::linalg::YIELD, loc).operands(&yielded))?;
    let iterators = last.attr("iterator_types").expect("invariant: a generic has iterators");
    rw.set_point(point);
    let joined = rw.create(generic(loc, Operands { inputs: &inputs, outputs: &outputs }, &maps, iterators, region))?;
    let mut results = joined.results().into_iter();
    let replacements: Vec<Vec<Value>> =
        ops.iter().map(|op| results.by_ref().take(op.num_results()).collect()).collect();
    // From the last: an op that still reads another's result is gone before that one.
    for (op, values) in ops.iter().zip(replacements).rev() {
        rw.replace_op(*op, &values);
    }
    Ok(joined)
}

/// Copies the ops of a body; returns what it yields.
pub(crate) fn copy_body<'c>(
    body: Block<'c>,
    map: &mut HashMap<Value<'c>, Value<'c>>,
    rw: &mut Rewriter<'c>,
) -> Vec<Value<'c>> {
    let mut yielded = vec![];
    for inner in body.ops() {
        if inner.is(ops::linalg::YIELD) {
            yielded = inner.operands().into_iter().map(|v| map.get(&v).copied().unwrap_or(v)).collect();
            continue;
        }
        let copy = rw.clone_op(inner, |v| map.get(&v).copied().unwrap_or(v));
        rw.insert(copy);
        map.extend(inner.results().into_iter().zip(copy.results()));
    }
    yielded
}

/// The inputs of the new op, and where each of the old ones finds its own.
struct Parts<'c> {
    /// Distinct values and maps.
    inputs: Vec<(Value<'c>, AffineMap<'c>)>,
    /// Per op and input: the position in `inputs`; `None` where another op computes it.
    own: Vec<Vec<Option<usize>>>,
    result_maps: Vec<AffineMap<'c>>,
}

impl<'c> Parts<'c> {
    fn of(ops: &[Op<'c>]) -> Self {
        let mut parts = Self { inputs: vec![], own: vec![], result_maps: vec![] };
        for op in ops {
            let mut maps = linalg::indexing_maps(*op).expect("invariant: a generic has maps");
            let count = linalg::num_inputs(*op);
            parts.result_maps.extend(maps.split_off(count));
            let own = op.operands().into_iter().zip(maps).map(|(value, map)| {
                let computed = value.defining_op().is_some_and(|def| ops.contains(&def));
                (!computed).then(|| parts.input(value, map))
            });
            let own: Vec<Option<usize>> = own.collect();
            parts.own.push(own);
        }
        parts
    }

    fn input(&mut self, value: Value<'c>, map: AffineMap<'c>) -> usize {
        let known = self.inputs.iter().position(|input| *input == (value, map));
        known.unwrap_or_else(|| {
            self.inputs.push((value, map));
            self.inputs.len() - 1
        })
    }
}
