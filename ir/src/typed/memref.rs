//! Ops of the dialect `memref`. Slices are read by [`Slice::of`].

use super::{Index, Slice};
use crate::{Location, MemRefType, OpSpec, Type, Value, ops};

/// `memref.alloc` of these dynamic sizes.
pub fn alloc<'c, 'a>(loc: Location<'c>, sizes: &[Value<'c>], ty: Type<'c>) -> OpSpec<'c, 'a> {
    OpSpec::new(ops::memref::ALLOC, loc).operand_segments(&[sizes, &[]]).results(&[ty])
}

/// `memref.alloca` of these dynamic sizes.
pub fn alloca<'c, 'a>(loc: Location<'c>, sizes: &[Value<'c>], ty: Type<'c>) -> OpSpec<'c, 'a> {
    OpSpec::new(ops::memref::ALLOCA, loc).operand_segments(&[sizes, &[]]).results(&[ty])
}

/// `memref.subview`.
pub fn subview<'c, 'a>(loc: Location<'c>, source: Value<'c>, slice: &Slice<'c>, ty: Type<'c>) -> OpSpec<'c, 'a> {
    slice.set(OpSpec::new(ops::memref::SUBVIEW, loc), &[source]).results(&[ty])
}

/// `memref.reinterpret_cast`; the slice has one offset.
pub fn reinterpret_cast<'c, 'a>(
    loc: Location<'c>,
    source: Value<'c>,
    slice: &Slice<'c>,
    ty: Type<'c>,
) -> OpSpec<'c, 'a> {
    slice.set(OpSpec::new(ops::memref::REINTERPRET_CAST, loc), &[source]).results(&[ty])
}

impl<'c> MemRefType<'c> {
    /// The offset, sizes and strides of the type for `memref.reinterpret_cast`, with values for the dynamic ones; `None` if
    /// there are too few.
    pub fn to_slice(
        &self,
        offset: impl IntoIterator<Item = Value<'c>>,
        sizes: impl IntoIterator<Item = Value<'c>>,
        strides: impl IntoIterator<Item = Value<'c>>,
    ) -> Option<Slice<'c>> {
        Some(Slice {
            offsets: Index::mixed(&[self.offset], offset)?,
            sizes: Index::mixed(&self.shape, sizes)?,
            strides: Index::mixed(&self.strides, strides)?,
        })
    }
}
