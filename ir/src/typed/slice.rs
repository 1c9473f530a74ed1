//! Offsets, sizes and strides: upstream's `OffsetSizeAndStrideOpInterface`.

use super::index::{Index, numbers, read, values};
use crate::{Op, OpSpec, Value, ops};

/// The offsets, sizes and strides of a slice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice<'c> {
    /// Offsets per dimension of the sliced operand; of `memref.reinterpret_cast` one.
    pub offsets: Vec<Index<'c>>,
    /// Sizes per dimension.
    pub sizes: Vec<Index<'c>>,
    /// Strides per dimension.
    pub strides: Vec<Index<'c>>,
}

impl<'c> Slice<'c> {
    /// A slice of unit strides.
    pub fn new(offsets: Vec<Index<'c>>, sizes: Vec<Index<'c>>) -> Self {
        let strides = vec![Index::Static(1); offsets.len()];
        Self { offsets, sizes, strides }
    }
    /// A static slice of unit strides.
    pub fn fixed(offsets: &[i64], sizes: &[i64]) -> Self {
        let list = |numbers: &[i64]| numbers.iter().copied().map(Index::Static).collect();
        Self::new(list(offsets), list(sizes))
    }
    /// The slice of an op of the interface; `None` for another op.
    pub fn of(op: Op<'c>) -> Option<Self> {
        let first = 1 + match op.name() {
            ops::tensor::EXTRACT_SLICE | ops::memref::SUBVIEW | ops::memref::REINTERPRET_CAST => 0,
            ops::tensor::INSERT_SLICE | ops::tensor::PARALLEL_INSERT_SLICE => 1,
            _ => return None,
        };
        Some(Self {
            offsets: read(op, "static_offsets", first)?,
            sizes: read(op, "static_sizes", first + 1)?,
            strides: read(op, "static_strides", first + 2)?,
        })
    }
    /// The dynamic offsets, sizes and strides, in the order of the op's operands.
    pub fn values(&self) -> impl Iterator<Item = Value<'c>> {
        self.offsets.iter().chain(&self.sizes).chain(&self.strides).filter_map(|index| index.value())
    }
    /// The op's operands, `sliced` first, one per segment, and its attributes.
    pub(super) fn set<'a>(&self, spec: OpSpec<'c, 'a>, sliced: &[Value<'c>]) -> OpSpec<'c, 'a> {
        let cx = spec.location().context();
        let dynamic = [values(&self.offsets), values(&self.sizes), values(&self.strides)];
        let segments: Vec<&[Value]> = sliced.chunks(1).chain(dynamic.iter().map(Vec::as_slice)).collect();
        spec.operand_segments(&segments)
            .attr("static_offsets", numbers(cx, &self.offsets))
            .attr("static_sizes", numbers(cx, &self.sizes))
            .attr("static_strides", numbers(cx, &self.strides))
    }
}
