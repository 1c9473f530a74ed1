//! Operand segments: the operand groups of ops with `AttrSizedOperandSegments`.
//!
//! The attribute is a literal here alone: `tidy` finds it elsewhere. The segments of an op that is known by name are those of its
//! view in [`typed`](crate::typed).

use crate::{Attr, Context, Diagnostics, Op, OpSpec, Rewriter, Type, Value};
use std::ops::Range;

/// The property of an op that has operand segments.
const OPERAND_SEGMENT_SIZES: &str = "operandSegmentSizes";

/// `array<i32: ..>` of segment sizes.
fn sizes_attr<'c>(cx: Context<'c>, sizes: impl Iterator<Item = usize>) -> Attr<'c> {
    let sizes: Vec<i32> = sizes.map(|size| i32::try_from(size).unwrap_or(i32::MAX)).collect();
    Attr::dense_i32(cx, &sizes)
}

/// Segment sizes; a negative one, which verified IR does not have, as 0.
fn sizes_of(attr: Attr) -> Option<Vec<usize>> {
    Some(attr.as_ints()?.into_iter().map(|size| usize::try_from(size).unwrap_or(0)).collect())
}

impl<'c> Op<'c> {
    /// The number of operands of each segment; `None` for an op without segments.
    pub fn operand_segments(self) -> Option<Vec<usize>> {
        sizes_of(self.attr(OPERAND_SEGMENT_SIZES)?)
    }
    /// The positions of a segment's operands; empty for a segment that the op does not have.
    pub fn operand_segment(self, index: usize) -> Range<usize> {
        let sizes = self.operand_segments().unwrap_or_default();
        let start = sizes.iter().take(index).sum::<usize>().min(self.num_operands());
        start..(start + sizes.get(index).copied().unwrap_or(0)).min(self.num_operands())
    }
    /// A segment's operands.
    pub(crate) fn segment_operands(self, index: usize) -> Vec<Value<'c>> {
        self.operand_segment(index).map(|i| self.operand(i)).collect()
    }
}

impl<'c, 'a> OpSpec<'c, 'a> {
    /// Appends operands in segments; an op has all its operands from one call.
    pub fn operand_segments(self, segments: &[&[Value<'c>]]) -> Self {
        let sizes = sizes_attr(self.location().context(), segments.iter().map(|s| s.len()));
        let spec = self.attr(OPERAND_SEGMENT_SIZES, sizes);
        segments.iter().fold(spec, |spec, operands| spec.operands(operands))
    }
    /// Sets all attributes of `op`, except its operand segments if this op has segments of its own.
    pub fn attrs_of(mut self, op: Op<'c>) -> Self
    where
        'c: 'a,
    {
        let has_segments = self.has_attr(OPERAND_SEGMENT_SIZES);
        for (name, value) in op.attr_dictionary().entries().unwrap_or_default() {
            if !(has_segments && name == OPERAND_SEGMENT_SIZES) {
                self = self.attr(name, value);
            }
        }
        self
    }
}

impl<'c> Rewriter<'c> {
    /// Sets the number of operands of each segment.
    pub fn set_operand_segments(&mut self, op: Op<'c>, sizes: &[usize]) {
        let sizes = sizes_attr(op.context(), sizes.iter().copied());
        self.set_attr(op, OPERAND_SEGMENT_SIZES, sizes);
    }

    /// As [`Rewriter::recreate`], with more operands than the op has: those join its last segment.
    ///
    /// # Errors
    /// As [`Rewriter::recreate`].
    pub fn recreate_extended(
        &mut self,
        op: Op<'c>,
        operands: &[Value<'c>],
        results: &[Type<'c>],
    ) -> Result<Op<'c>, Diagnostics> {
        let more = operands.len().saturating_sub(op.num_operands());
        self.recreate_with(op, operands, results, |name, value| {
            let Some(mut sizes) = sizes_of(value).filter(|_| name == OPERAND_SEGMENT_SIZES) else { return value };
            if let Some(last) = sizes.last_mut() {
                *last += more;
            }
            sizes_attr(op.context(), sizes.into_iter())
        })
    }
}
