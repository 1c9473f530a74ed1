//! Give each use of a reshaped `tensor.empty` its own new tensor.
//!
//! ```text
//! %e = tensor.empty() : tensor<1x8xf32>           %e = tensor.empty() : tensor<1x8xf32>
//! %c = tensor.collapse_shape %e [[0, 1]]          %c = tensor.collapse_shape %e [[0, 1]]
//! %a = tensor.insert_slice %x into %c[0] [4]      %a = tensor.insert_slice %x into %c[0] [4]
//! %b = tensor.insert_slice %y into %c[0] [4] ==>  %f = tensor.empty() : tensor<1x8xf32>
//!                                                 %d = tensor.collapse_shape %f [[0, 1]]
//!                                                 %b = tensor.insert_slice %y into %d[0] [4]
//! ```
//!
//! Both sides mean the same: the contents are undefined. The left side, which is what common subexpression elimination leaves of
//! two concatenations, is one buffer to the analysis, in which not both can be put together. `tensor.empty` itself is a new tensor
//! for each use already.

use monopour_ir::{InsertionPoint, Op, Rewriter, Value, WalkOrder, ops};

/// Rewrites a function.
pub(crate) fn run(function: Op) {
    let mut rw = Rewriter::new(function.context());
    // Of several reshapes in a row the last one first: its copies are uses of the one before.
    for op in function.nested(WalkOrder::Pre).into_iter().rev() {
        let is_shared = match op.name() {
            ops::tensor::EMPTY => op.result(0).uses().iter().any(|used| is_reshape(used.op)),
            _ => is_reshape(op) && is_new(op),
        };
        if is_shared {
            duplicate(op, &mut rw);
        }
    }
}

fn is_reshape(op: Op) -> bool {
    op.is(ops::tensor::COLLAPSE_SHAPE) || op.is(ops::tensor::EXPAND_SHAPE)
}

/// Whether a reshape, or the first of several in a row, is one of a `tensor.empty`.
fn is_new(reshape: Op) -> bool {
    let mut source = Some(reshape);
    while let Some(op) = source.filter(|op| is_reshape(*op)) {
        source = op.operand(0).defining_op();
    }
    source.is_some_and(|op| op.is(ops::tensor::EMPTY))
}

/// Copies an op for each use of its result but the first.
fn duplicate<'c>(op: Op<'c>, rw: &mut Rewriter<'c>) {
    for used in op.result(0).uses().into_iter().skip(1).filter(|used| !used.op.is(ops::tensor::DIM)) {
        rw.set_point(InsertionPoint::Before(op));
        let copy = rw.clone_op(op, |value: Value<'c>| value);
        rw.insert(copy);
        rw.set_operand(used.op, used.index, copy.result(0));
    }
}
