//! Checks of softmax, pack and unpack, which have no indexing maps.

use super::{Checks, Extent, Size};
use monopour_ir::typed::arith::CmpIPredicate;
use monopour_ir::typed::linalg::Pack;
use monopour_ir::{DYNAMIC, Diagnostics, Op, Value, ops};

impl<'c> Checks<'c, '_> {
    /// Both tensors of a softmax have the same sizes.
    pub(super) fn softmax(&mut self, op: Op<'c>) -> Result<(), Diagnostics> {
        let rank = op.operand(0).ty().shape().map_or(0, |shape| shape.len());
        (0..rank).try_for_each(|dim| self.same(op, (op.operand(0), dim), (op.operand(1), dim)))
    }

    /// The tiles cover the plain tensor; without padding they are no larger.
    pub(super) fn packed(&mut self, op: Op<'c>) -> Result<(), Diagnostics> {
        let packs = op.is(ops::linalg::PACK);
        let (plain, packed) = if packs { (op.operand(0), op.operand(1)) } else { (op.operand(1), op.operand(0)) };
        let is_open = |value: Value<'c>| value.ty().shape().is_some_and(|shape| shape.contains(&DYNAMIC));
        if !is_open(plain) && !is_open(packed) {
            return Ok(());
        }
        let (loc, rank) = (op.location(), plain.ty().shape().map_or(0, |shape| shape.len()));
        let list = |name: &str| op.attr(name).and_then(|a| a.as_ints()).unwrap_or_default();
        let (inner, order) = (list("inner_dims_pos"), list("outer_dims_perm"));
        let is_padded = Pack::of(op).is_some_and(|pack| pack.padding_position().is_some());
        for dim in 0..rank {
            let is_here = |at: &i64| usize::try_from(*at) == Ok(dim);
            let outer = if order.is_empty() { Some(dim) } else { order.iter().position(is_here) };
            let (Some(outer), tiled) = (outer, inner.iter().position(is_here)) else { continue };
            let Some(tiled) = tiled else {
                self.same(op, (plain, dim), (packed, outer))?;
                continue;
            };
            // Tiles of sizes that are computed are refused (F0014).
            let tile = self.size(loc, packed, rank + tiled)?;
            let (size, count) = (self.size(loc, plain, dim)?, self.size(loc, packed, outer)?);
            let covered = self.arith(loc, ops::arith::MULI, count, tile)?;
            if packs && !is_padded {
                self.equal(loc, size, covered)?;
            } else if !matches!((size, covered), (Size::Known(_), Size::Known(_))) {
                self.require(loc, CmpIPredicate::Ule, size, covered)?;
            }
        }
        Ok(())
    }

    /// Two sizes are equal, unless that is checked before a run.
    fn same(&mut self, op: Op<'c>, one: (Value<'c>, usize), other: (Value<'c>, usize)) -> Result<(), Diagnostics> {
        let loc = op.location();
        let (size, of) = (self.size(loc, one.0, one.1)?, one);
        if self.is_same(Extent { size, of }, other) {
            return Ok(());
        }
        let other = self.size(loc, other.0, other.1)?;
        self.equal(loc, size, other)
    }
}
