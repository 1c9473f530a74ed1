//! The tensor that is expanded, computed in, and collapsed again: the collapse sees its buffer.
//!
//! ```text
//! %p = tensor.expand_shape %s [[0, 1]] output_shape [3, %n]    memref<3x?xf32, strided<[?, 1]>>
//! %a = linalg.exp ins(%x) outs(%p)                             the same
//! %r = tensor.collapse_shape %a [[0, 1]]                       the buffer of %s
//! ```
//!
//! The type of the expanded buffer does not say that its rows follow each other: their distance is a size of the run.
//! Requires: operations in place have no copies between them. Limits: loops and branches are not looked through.

use monopour_ir::{Op, Value, interfaces, ops};

/// The tensor whose buffer a collapse sees, whatever the strides of the expanded one.
pub(crate) fn collapsed_again(collapse: Op) -> Option<Value> {
    let mut value = collapse.operand(0);
    loop {
        let op = value.defining_op()?;
        if op.is(ops::tensor::EXPAND_SHAPE) {
            return expanded_as(op, collapse);
        }
        value = destination(op, value.result_index()?)?;
    }
}

/// What an expansion, of tensors or of buffers, expands just as `collapse` collapses it.
pub(crate) fn expanded_as<'c>(expand: Op<'c>, collapse: Op<'c>) -> Option<Value<'c>> {
    let source = expand.operand(0);
    let is_inverse = expand.attr("reassociation") == collapse.attr("reassociation")
        && source.ty().shape() == collapse.result(0).ty().shape();
    is_inverse.then_some(source)
}

/// The operand in whose buffer a result is.
fn destination<'c>(op: Op<'c>, result: usize) -> Option<Value<'c>> {
    if op.is(ops::scf::FORALL) {
        return Some(op.operand(op.num_operands() - op.num_results() + result));
    }
    let inits = interfaces::dps_inits(op).into_iter().filter(|i| op.operand(*i).ty().is_tensor());
    inits.map(|i| op.operand(i)).nth(result)
}

/// Whether a buffer that is expanded back to the source of `collapse` can be collapsed: its strides, or where it comes from, say so.
pub(crate) fn can_be_collapsed(collapse: Op) -> bool {
    has_known_rows(collapse) || collapsed_again(collapse).is_some()
}

/// Whether in each group the sizes behind the first one, but for those of 1, are static.
fn has_known_rows(collapse: Op) -> bool {
    let shape = collapse.operand(0).ty().shape().unwrap_or_default();
    let groups = collapse.attr("reassociation").and_then(|a| a.as_array()).unwrap_or_default();
    groups.iter().filter_map(|group| group.as_ints()).all(|group| {
        let sizes = group.iter().filter_map(|d| shape.get(usize::try_from(*d).ok()?));
        sizes.skip_while(|size| **size == 1).skip(1).all(|size| *size >= 0)
    })
}
