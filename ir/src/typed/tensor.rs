//! Ops of the dialect `tensor`. Slices are read by [`Slice::of`].

use super::index::{numbers, read, values};
use super::{Index, Slice};
use crate::{Location, OpSpec, Region, Type, Value, ops};

/// `tensor.extract_slice`.
pub fn extract_slice<'c, 'a>(loc: Location<'c>, source: Value<'c>, slice: &Slice<'c>, ty: Type<'c>) -> OpSpec<'c, 'a> {
    slice.set(OpSpec::new(ops::tensor::EXTRACT_SLICE, loc), &[source]).results(&[ty])
}

/// `tensor.insert_slice`.
pub fn insert_slice<'c, 'a>(
    loc: Location<'c>,
    source: Value<'c>,
    dest: Value<'c>,
    slice: &Slice<'c>,
) -> OpSpec<'c, 'a> {
    slice.set(OpSpec::new(ops::tensor::INSERT_SLICE, loc), &[source, dest]).results(&[dest.ty()])
}

/// `tensor.parallel_insert_slice`.
pub fn parallel_insert_slice<'c, 'a>(
    loc: Location<'c>,
    source: Value<'c>,
    dest: Value<'c>,
    slice: &Slice<'c>,
) -> OpSpec<'c, 'a> {
    slice.set(OpSpec::new(ops::tensor::PARALLEL_INSERT_SLICE, loc), &[source, dest])
}

view! {
    /// `tensor.pad`.
    Pad, ops::tensor::PAD
}

impl<'c> Pad<'c> {
    /// The low pads, per dimension; `None` if the op is malformed.
    pub fn low(self) -> Option<Vec<Index<'c>>> {
        read(self.0, "static_low", 1)
    }
    /// The high pads, per dimension; `None` if the op is malformed.
    pub fn high(self) -> Option<Vec<Index<'c>>> {
        read(self.0, "static_high", 2)
    }
}

/// `tensor.pad`; the region yields the value of the pads.
pub fn pad<'c, 'a>(
    loc: Location<'c>,
    source: Value<'c>,
    (low, high): (&[Index<'c>], &[Index<'c>]),
    ty: Type<'c>,
    region: Region<'c>,
) -> OpSpec<'c, 'a> {
    OpSpec::new(ops::tensor::PAD, loc)
        .operand_segments(&[&[source], &values(low), &values(high)])
        .results(&[ty])
        .attr("static_low", numbers(loc.context(), low))
        .attr("static_high", numbers(loc.context(), high))
        .region(region)
}
