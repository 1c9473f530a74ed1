//! Causal masks: keys behind the row's own position get a constant in place of their score.
//!
//! Before: `select(key <= row + offset, score, least)` as the last op on the scores.
//! After: blocks of keys that no row of the tile sees are not computed. With `least` of negative infinity their powers are 0;
//! with another constant they are 0 where the row's largest score is above it by [`UNDERFLOW`], and are computed where not:
//! on cooperative matrices; the other strategies compute all keys then.
//!
//! Limits: values that are infinite or no numbers at keys behind the mask do not show; a product with 0 would make them NaN,
//! as would the sum of such a score with a mask that is added.

use super::super::code::Code;
use super::super::model::TileOp;
use monopour_ir::causal::CausalMask;
use monopour_ir::{Value, ops};

pub(super) use monopour_ir::causal::UNDERFLOW;

/// A mask of the scores.
#[derive(Clone, Debug)]
pub(super) struct Mask<'c> {
    /// What is added to a row's position in the tile: the first key that it does not see, less 1 if it sees that one.
    offsets: Vec<Value<'c>>,
    constant: i64,
    sees_own: bool,
    /// The score of a key that a row does not see.
    pub(super) least: f64,
}

impl<'c> Mask<'c> {
    /// The mask that the last op on the scores is, of which `key` and `row` are loops.
    pub(super) fn of(last: &TileOp<'c>, key: usize, row: usize) -> Option<Self> {
        let CausalMask { offsets, constant, magnitude, sees_own, width, least, .. } =
            CausalMask::of(last.body?, key, row)?;
        // No position needs more bits than an index of these kernels has; fewer may drop some.
        let is_wide = width.is_none_or(|width| width >= 32);
        let fits = is_wide && constant == magnitude && offsets.iter().all(|offset| is_position(*offset));
        fits.then_some(Self { offsets, constant, sees_own, least })
    }

    /// The number of keys that the tile's rows see, of which `rows` is the number: at least one.
    pub(super) fn seen(&self, code: &mut Code<'c, '_>, rows: Value<'c>) -> Value<'c> {
        let end = self.offsets.iter().fold(rows, |end, offset| code.add(end, *offset));
        let end = code.add_const(end, self.constant - i64::from(!self.sees_own));
        let one = code.c(1);
        code.max(end, one)
    }
}

/// Whether a value is no negative number: it is computed from places of tiles and constants.
fn is_position(value: Value) -> bool {
    if let Some(constant) = value.constant_int() {
        return constant >= 0;
    }
    let Some(op) = value.defining_op() else { return false };
    match op.name() {
        ops::gpu::BLOCK_ID => true,
        ops::arith::ADDI | ops::arith::MULI | ops::arith::MINSI | ops::arith::MAXSI => {
            op.operands().into_iter().all(is_position)
        }
        ops::arith::DIVUI | ops::arith::REMUI => is_position(op.operand(0)),
        _ => false,
    }
}
