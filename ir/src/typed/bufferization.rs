//! Ops of the dialect `bufferization`.

use crate::{Location, OpSpec, Type, Value, ops};
use std::ops::Range;

view! {
    /// `bufferization.alloc_tensor`.
    AllocTensor, ops::bufferization::ALLOC_TENSOR
}

impl<'c> AllocTensor<'c> {
    /// The dynamic sizes.
    pub fn dynamic_sizes(self) -> Vec<Value<'c>> {
        self.0.segment_operands(0)
    }
    /// The position of the copied tensor among the operands.
    pub fn copy_position(self) -> Option<usize> {
        self.0.operand_segment(1).next()
    }
}

/// `bufferization.alloc_tensor` of these dynamic sizes, or as a copy.
pub fn alloc_tensor<'c, 'a>(
    loc: Location<'c>,
    sizes: &[Value<'c>],
    copy: Option<Value<'c>>,
    ty: Type<'c>,
) -> OpSpec<'c, 'a> {
    OpSpec::new(ops::bufferization::ALLOC_TENSOR, loc).operand_segments(&[sizes, copy.as_slice(), &[]]).results(&[ty])
}

view! {
    /// `bufferization.dealloc`.
    Dealloc, ops::bufferization::DEALLOC
}

impl<'c> Dealloc<'c> {
    /// The positions of the memrefs that are freed.
    pub fn memref_positions(self) -> Range<usize> {
        self.0.operand_segment(0)
    }
    /// The positions of the conditions, one per memref.
    pub fn condition_positions(self) -> Range<usize> {
        self.0.operand_segment(1)
    }
    /// The positions of the retained memrefs.
    pub fn retained_positions(self) -> Range<usize> {
        self.0.operand_segment(2)
    }
}

/// `bufferization.dealloc`; one `i1` per retained memref.
pub fn dealloc<'c, 'a>(
    loc: Location<'c>,
    memrefs: &[Value<'c>],
    conditions: &[Value<'c>],
    retained: &[Value<'c>],
) -> OpSpec<'c, 'a> {
    let bit = Type::integer(loc.context(), 1);
    OpSpec::new(ops::bufferization::DEALLOC, loc)
        .operand_segments(&[memrefs, conditions, retained])
        .results(&vec![bit; retained.len()])
}
