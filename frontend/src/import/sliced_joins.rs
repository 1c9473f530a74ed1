//! Slices of what was put together, as slices of the part that they lie in.
//!
//! Before / after, of the embedding of a time step, which is computed as sines and cosines and read as cosines and sines:
//!
//! ```text
//! %j = [%sin, %cos]                                  %r = [%cos, %sin]
//! %a = extract_slice %j[128] [128]
//! %b = extract_slice %j[0] [128]
//! %r = [%a, %b]
//! ```
//!
//! `[..]` are insertions into a `tensor.empty`, one behind the other along a dimension (`tensor.concat`). Without slices of it, the
//! first of two joins is gone, and each part is computed where the second one has it.
//!
//! Limits: places along the dimension of the join that are known; slices without steps that lie in one part.

use crate::joins::Join;
use monopour_ir::typed::{Index, Slice, tensor};
use monopour_ir::{Diagnostics, InsertionPoint, Module, Op, Rewriter, Value, WalkOrder, ops};

/// Rewrites all slices of `module`, in order, so that one of a slice finds the part, too.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(super) fn run(module: &Module) -> Result<(), Diagnostics> {
    let mut rw = Rewriter::new(module.context());
    for op in module.op().nested(WalkOrder::Pre).into_iter().filter(|op| op.is(ops::tensor::EXTRACT_SLICE)) {
        let last = op.operand(0).defining_op().filter(|last| last.is(ops::tensor::INSERT_SLICE));
        let Some(join) = last.and_then(Join::of) else { continue };
        let Some(Part { value, place, slice }) = Part::of(&join, op) else { continue };
        let is_whole = slice == Slice::new(vec![Index::Static(0); place.sizes.len()], place.sizes.clone());
        let value = if is_whole && value.ty() == op.result(0).ty() {
            value
        } else {
            rw.set_point(InsertionPoint::Before(op));
            rw.create(tensor::extract_slice(op.location(), value, &slice, op.result(0).ty()))?.result(0)
        };
        rw.replace_op(op, &[value]);
        if join.value().is_unused() {
            join.erase(&mut rw);
        }
    }
    Ok(())
}

/// A part of a join, its place there, and a slice of it.
struct Part<'c> {
    value: Value<'c>,
    place: Slice<'c>,
    slice: Slice<'c>,
}

impl<'c> Part<'c> {
    /// Where a slice of a join lies in one part.
    fn of(join: &Join<'c>, op: Op<'c>) -> Option<Self> {
        let mut slice = Slice::of(op).filter(|slice| slice.strides.iter().all(|stride| *stride == Index::Static(1)))?;
        let range = |slice: &Slice<'c>| {
            let from = slice.offsets[join.axis].constant()?;
            Some(from..from + slice.sizes[join.axis].constant()?)
        };
        let wanted = range(&slice).filter(|wanted| !wanted.is_empty())?;
        let lies_in =
            |place: &Slice<'c>| range(place).is_some_and(|part| part.start <= wanted.start && wanted.end <= part.end);
        let (value, place) = join.parts.iter().find(|(_, place)| lies_in(place)).cloned()?;
        slice.offsets[join.axis] = Index::Static(wanted.start - range(&place)?.start);
        Some(Self { value, place, slice })
    }
}
