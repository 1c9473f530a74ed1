//! Put parts that lie apart together in the order in which they are made.
//!
//! ```text
//! %a = linalg.exp ins(%x) outs(%d)                   %a = linalg.exp ins(%x) outs(%d)
//! %b = linalg.tanh ins(%a) outs(%e)                  %b = linalg.tanh ins(%a) outs(%e)
//! %r = tensor.insert_slice %b into %t[0] [4]    ==>  %r = tensor.insert_slice %a into %t[4] [4]
//! %s = tensor.insert_slice %a into %r[4] [4]         %s = tensor.insert_slice %b into %r[0] [4]
//! ```
//!
//! On the left side the place of `%a` is in a tensor that depends on `%a`; on the right side each is made where it goes
//! (`eliminate_empty_tensors.rs`). So are what U-Nets keep for their way up, which is behind what they make there.
//!
//! Requires: functions on tensors, before bufferization. Ensures: the same values.
//! Limits: insertions of one block of which nothing else reads the results between them; places without steps that are known, and
//! apart, along one dimension.

use monopour_ir::typed::{Index, Slice};
use monopour_ir::{InsertionPoint, Op, Rewriter, Value, WalkOrder, ops};
use std::collections::HashMap;

/// Rewrites a function.
pub(crate) fn run(function: Op) {
    let mut rw = Rewriter::new(function.context());
    let mut places: HashMap<Op, usize> =
        function.nested(WalkOrder::Pre).into_iter().enumerate().map(|(place, op)| (op, place)).collect();
    for last in function.find_all(ops::tensor::INSERT_SLICE).into_iter().filter(|op| next(*op).is_none()) {
        let steps = chain(last);
        if steps.len() < 2 || !are_apart(&steps) {
            continue;
        }
        let mut sorted = steps.clone();
        // What no op of the block makes is there first.
        sorted.sort_by_key(|step| maker(*step).map(|op| places[&op]));
        if sorted != steps {
            // Insertions may make parts of other tensors.
            let place = places[&last];
            places.extend(put_together(&mut rw, &sorted, &steps).into_iter().map(|op| (op, place)));
        }
    }
}

/// The insertion that alone reads the result of one as its destination.
fn next(insertion: Op<'_>) -> Option<Op<'_>> {
    let used = insertion.result(0).only_use()?;
    let goes_on = used.op.is(ops::tensor::INSERT_SLICE) && used.index == 1 && used.op.block() == insertion.block();
    goes_on.then_some(used.op)
}

/// The insertions that end with `last`, the first one first.
fn chain(last: Op<'_>) -> Vec<Op<'_>> {
    let mut steps = vec![last];
    while let Some(before) = steps[steps.len() - 1].operand(1).defining_op() {
        if !before.is(ops::tensor::INSERT_SLICE) || next(before) != steps.last().copied() {
            break;
        }
        steps.push(before);
    }
    steps.reverse();
    steps
}

/// Whether there is a dimension along which no two places overlap.
fn are_apart(steps: &[Op]) -> bool {
    let Some(slices) = steps.iter().map(|step| Slice::of(*step)).collect::<Option<Vec<_>>>() else { return false };
    let range = |slice: &Slice, dim: usize| {
        let is_dense = slice.strides[dim] == Index::Static(1);
        Some((slice.offsets[dim].constant()?, slice.sizes[dim].constant().filter(|_| is_dense)?))
    };
    (0..slices[0].sizes.len()).any(|dim| {
        let Some(mut ranges) = slices.iter().map(|slice| range(slice, dim)).collect::<Option<Vec<_>>>() else {
            return false;
        };
        ranges.sort_unstable();
        ranges.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0)
    })
}

/// The op in the insertion's block that makes what is inserted, behind reshapes and casts.
fn maker(insertion: Op<'_>) -> Option<Op<'_>> {
    let views = [ops::tensor::COLLAPSE_SHAPE, ops::tensor::EXPAND_SHAPE, ops::tensor::CAST];
    let mut value: Value = insertion.operand(0);
    loop {
        let op = value.defining_op().filter(|op| op.block() == insertion.block())?;
        if !views.contains(&op.name()) {
            return Some(op);
        }
        value = op.operand(0);
    }
}

/// Makes the insertions again in another order, in place of the last one, and returns them.
fn put_together<'c>(rw: &mut Rewriter<'c>, sorted: &[Op<'c>], steps: &[Op<'c>]) -> Vec<Op<'c>> {
    let last = steps[steps.len() - 1];
    rw.set_point(InsertionPoint::Before(last));
    let (mut whole, mut made) = (steps[0].operand(1), vec![]);
    for step in sorted {
        let copy = rw.clone_op(*step, |value| value);
        rw.insert(copy);
        rw.set_operand(copy, 1, whole);
        whole = copy.result(0);
        made.push(copy);
    }
    rw.replace_op(last, &[whole]);
    steps[..steps.len() - 1].iter().rev().for_each(|step| rw.erase(*step));
    made
}
