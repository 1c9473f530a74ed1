//! Ops of the dialect `vector`: upstream's `VectorTransferOpInterface`.

use crate::{AffineMap, Attr, Location, Op, OpSpec, Type, Value, ops};
use std::ops::Range;

/// `vector.transfer_read` or `vector.transfer_write`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer<'c> {
    op: Op<'c>,
    base: usize,
}

impl<'c> Transfer<'c> {
    /// The view of a transfer; `None` for another op.
    pub fn of(op: Op<'c>) -> Option<Self> {
        match op.name() {
            ops::vector::TRANSFER_READ => Some(Self { op, base: 0 }),
            ops::vector::TRANSFER_WRITE => Some(Self { op, base: 1 }),
            _ => None,
        }
    }
    /// The tensor or memref.
    pub fn base(self) -> Value<'c> {
        self.op.operand(self.base)
    }
    /// The positions of the indices among the operands.
    pub fn index_positions(self) -> Range<usize> {
        self.op.operand_segment(self.base + 1)
    }
    /// The indices, one per dimension of the base.
    pub fn indices(self) -> Vec<Value<'c>> {
        self.op.segment_operands(self.base + 1)
    }
    /// The position of the mask among the operands.
    pub fn mask_position(self) -> Option<usize> {
        self.op.operand_segment(3).next()
    }
    /// The map from dimensions of the base to those of the vector.
    pub fn permutation_map(self) -> Option<AffineMap<'c>> {
        self.op.attr("permutation_map")?.as_affine_map()
    }
    /// Per dimension of a vector of this rank, whether its accesses are in bounds.
    pub fn in_bounds(self, rank: usize) -> Vec<bool> {
        let given = self.op.attr("in_bounds").and_then(|a| a.as_array()).unwrap_or_default();
        (0..rank).map(|d| given.get(d).and_then(Attr::as_bool) == Some(true)).collect()
    }
}

/// The place of a transfer that is in bounds.
#[derive(Clone, Copy, Debug)]
pub struct Place<'c, 'v> {
    /// The tensor or memref.
    pub base: Value<'c>,
    /// The indices, one per dimension of the base.
    pub indices: &'v [Value<'c>],
    /// The map from dimensions of the base to those of the vector.
    pub permutation_map: AffineMap<'c>,
}

impl<'c> Place<'c, '_> {
    fn set<'a>(&self, spec: OpSpec<'c, 'a>, rank: usize) -> OpSpec<'c, 'a> {
        let cx = spec.location().context();
        spec.attr("permutation_map", self.permutation_map.to_attr())
            .attr("in_bounds", Attr::array(cx, &vec![Attr::bool(cx, true); rank]))
    }
}

/// `vector.transfer_read` of a vector type, in bounds, without a mask.
pub fn transfer_read<'c, 'a>(
    loc: Location<'c>,
    place: &Place<'c, '_>,
    padding: Value<'c>,
    ty: Type<'c>,
) -> OpSpec<'c, 'a> {
    let spec = OpSpec::new(ops::vector::TRANSFER_READ, loc)
        .operand_segments(&[&[place.base], place.indices, &[padding], &[]])
        .results(&[ty]);
    place.set(spec, ty.shape().map_or(0, |s| s.len()))
}

/// `vector.transfer_write` into a tensor, in bounds, without a mask.
pub fn transfer_write<'c, 'a>(loc: Location<'c>, vector: Value<'c>, place: &Place<'c, '_>) -> OpSpec<'c, 'a> {
    let spec = OpSpec::new(ops::vector::TRANSFER_WRITE, loc)
        .operand_segments(&[&[vector], &[place.base], place.indices, &[]])
        .results(&[place.base.ty()]);
    place.set(spec, vector.ty().shape().map_or(0, |s| s.len()))
}
