//! Tensors that are put together of parts, one behind the other along a dimension: `tensor.concat` as insertions.

use crate::linalg;
use monopour_ir::typed::{Index, Slice};
use monopour_ir::{DYNAMIC, Op, Rewriter, Type, Use, Value, ops};

/// A tensor that is put together.
pub(crate) struct Join<'c> {
    /// Its insertions, in order.
    pub steps: Vec<Op<'c>>,
    /// Its parts with their places.
    pub parts: Vec<(Value<'c>, Slice<'c>)>,
    /// The dimension, of a known size.
    pub axis: usize,
}

impl<'c> Join<'c> {
    /// The insertions that end with `last`, if they fill a `tensor.empty`, or a reshape of one, from its first element to its
    /// last. Sizes along the other dimensions may be dynamic: those of the `tensor.empty`.
    pub(crate) fn of(last: Op<'c>) -> Option<Self> {
        let mut steps = vec![last];
        while let Some(before) = steps[steps.len() - 1].operand(1).defining_op() {
            let goes_on = before.is(ops::tensor::INSERT_SLICE) && before.block() == last.block();
            if !goes_on {
                break;
            }
            if before.result(0).uses().len() != 1 {
                return None;
            }
            steps.push(before);
        }
        steps.reverse();
        let ty = last.result(0).ty();
        let whole = sizes_of_empty(steps[0].operand(1))?;
        let slices: Vec<Slice> = steps.iter().map(|step| Slice::of(*step)).collect::<Option<_>>()?;
        let axis = (0..whole.len()).find(|d| slices[0].sizes[*d] != whole[*d])?;
        if steps.len() < 2 {
            return None;
        }
        let mut next = 0;
        for (step, slice) in steps.iter().zip(&slices) {
            let size = slice.sizes[axis].constant()?;
            let (mut sizes, mut shape) = (whole.clone(), ty.shape()?);
            (sizes[axis], shape[axis]) = (Index::Static(size), size);
            let mut offsets = vec![Index::Static(0); whole.len()];
            offsets[axis] = Index::Static(next);
            if *slice != Slice::new(offsets, sizes) || step.operand(0).ty().shape()? != shape {
                return None;
            }
            next += size;
        }
        let parts = steps.iter().map(|step| step.operand(0)).zip(slices).collect();
        (whole[axis] == Index::Static(next)).then_some(Self { steps, parts, axis })
    }

    pub(crate) fn last(&self) -> Op<'c> {
        self.steps[self.steps.len() - 1]
    }

    pub(crate) fn value(&self) -> Value<'c> {
        self.last().result(0)
    }

    /// Whether a size is not known.
    pub(crate) fn is_dynamic(&self) -> bool {
        self.value().ty().shape().is_none_or(|shape| shape.contains(&DYNAMIC))
    }

    /// Erases the insertions, of which no one reads the last.
    pub(crate) fn erase(&self, rw: &mut Rewriter<'c>) {
        self.steps.iter().rev().for_each(|step| rw.erase(*step));
    }
}

/// Whether all that reads a value, or a reshape of it, is pointwise, or one of `others`.
pub(crate) fn is_read_by_elements<'c>(value: Value<'c>, others: &dyn Fn(Op<'c>) -> bool) -> bool {
    let uses = value.uses();
    let reads = |used: &Use<'c>| {
        linalg::reads_elementwise(used.op, used.index)
            || others(used.op)
            || is_reshape(used.op) && is_read_by_elements(used.op.result(0), others)
    };
    !uses.is_empty() && uses.iter().all(reads)
}

pub(crate) fn is_reshape(op: Op) -> bool {
    op.is(ops::tensor::EXPAND_SHAPE) || op.is(ops::tensor::COLLAPSE_SHAPE)
}

/// The sizes of a `tensor.empty`, or of a reshape of one; if they are not known, of one that adds or drops dimensions of one
/// element.
fn sizes_of_empty(value: Value<'_>) -> Option<Vec<Index<'_>>> {
    let (shape, mut op) = (value.ty().shape()?, value.defining_op()?);
    let several = |ty: Type| Some(ty.shape()?.into_iter().filter(|size| *size != 1).collect::<Vec<_>>());
    let is_known = !shape.contains(&DYNAMIC);
    while is_reshape(op) {
        op = op.operand(0).defining_op()?;
    }
    let fits = op.is(ops::tensor::EMPTY) && (is_known || several(op.result(0).ty()) == several(value.ty()));
    let dynamic = if is_known { vec![] } else { op.operands() };
    Index::mixed(&shape, dynamic).filter(|_| fits)
}
