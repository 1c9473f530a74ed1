//! Causal masks: keys behind the row's own position get a constant in place of their score.
//!
//! Before: `select(key <= row + offset, score, least)` as the last op on the scores.
//! After: blocks of keys that no row of the tile sees are not computed. With `least` of negative infinity their powers are 0;
//! with another constant they are 0 where the row's largest score is above it by [`UNDERFLOW`], and are computed where not:
//! on cooperative matrices; the other strategies compute all keys then.
//!
//! Limits: values that are infinite or no numbers at keys behind the mask do not show; a product with 0 would make them NaN.

use super::super::code::Code;
use super::super::model::TileOp;
use monopour_ir::typed::arith::CmpIPredicate;
use monopour_ir::{Op, Value, bodies, ops};

/// A power of a score that is so far below the maximum is 0: half of the least f32 is `exp(-103.97)`.
pub(super) const UNDERFLOW: f64 = 105.0;

/// A mask of the scores.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mask<'c> {
    /// What is added to a row's position in the tile: the first key that it does not see, less 1 if it sees that one.
    offset: Option<Value<'c>>,
    sees_own: bool,
    /// The score of a key that a row does not see.
    pub(super) least: f64,
}

impl<'c> Mask<'c> {
    /// The mask that the last op on the scores is, of which `key` and `row` are loops.
    pub(super) fn of(last: &TileOp<'c>, key: usize, row: usize) -> Option<Self> {
        let body = last.body?;
        let select = body.terminator()?.operand(0).defining_op().filter(|op| op.is(ops::arith::SELECT))?;
        let compare = select.operand(0).defining_op().filter(|op| op.is(ops::arith::CMPI))?;
        let predicate = CmpIPredicate::of(compare)?;
        let [first, second] = [0, 1].map(|i| Position::of(compare.operand(i)));
        let (first, second) = (first?, second?);
        // As `key .. row`, and whether it holds for keys that are seen.
        let (predicate, key_at, row_at) = match (first.along, second.along) {
            (a, b) if (a, b) == (key, row) => (predicate, first, second),
            (a, b) if (a, b) == (row, key) => (turned(predicate)?, second, first),
            _ => return None,
        };
        use CmpIPredicate as P;
        let (sees_own, is_seen) = match predicate {
            P::Sle | P::Ule => (true, true),
            P::Slt | P::Ult => (false, true),
            P::Sgt | P::Ugt => (true, false),
            P::Sge | P::Uge => (false, false),
            _ => return None,
        };
        let least = bodies::constant(select.operand(if is_seen { 2 } else { 1 }))?;
        let fits = key_at.offset.is_none() && !least.is_nan() && row_at.offset.is_none_or(is_position);
        fits.then_some(Self { offset: row_at.offset, sees_own, least })
    }

    /// The number of keys that the tile's rows see, of which `rows` is the number: at least one.
    pub(super) fn seen(&self, code: &mut Code<'c, '_>, rows: Value<'c>) -> Value<'c> {
        let end = self.offset.map_or(rows, |offset| code.add(rows, offset));
        let end = code.add_const(end, if self.sees_own { 0 } else { -1 });
        let one = code.c(1);
        code.max(end, one)
    }
}

/// A loop's position, and what is added to it.
struct Position<'c> {
    along: usize,
    offset: Option<Value<'c>>,
}

impl<'c> Position<'c> {
    fn of(value: Value<'c>) -> Option<Self> {
        let op = value.defining_op()?;
        match op.name() {
            ops::linalg::INDEX => {
                let along = usize::try_from(op.attr("dim")?.as_int()?).ok()?;
                Some(Self { along, offset: None })
            }
            // No position needs more bits than an index of these kernels has; fewer may drop some.
            ops::arith::INDEX_CAST | ops::arith::INDEX_CASTUI => {
                let is_wide = op.result(0).ty().integer_width().is_none_or(|width| width >= 32);
                Self::of(op.operand(0)).filter(|_| is_wide)
            }
            ops::arith::ADDI => {
                let found = [(0, 1), (1, 0)].into_iter().find_map(|(at, by)| {
                    let position = Self::of(op.operand(at)).filter(|p| p.offset.is_none())?;
                    (!is_in_body(op, op.operand(by))).then_some((position, op.operand(by)))
                });
                let (position, by) = found.filter(|(_, by)| by.ty().is_index())?;
                Some(Self { offset: Some(by), ..position })
            }
            _ => None,
        }
    }
}

/// Whether a value is computed in the block of `op`.
fn is_in_body(op: Op, value: Value) -> bool {
    value.block() == op.block()
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

/// The predicate with its operands exchanged.
fn turned(predicate: CmpIPredicate) -> Option<CmpIPredicate> {
    use CmpIPredicate as P;
    Some(match predicate {
        P::Sle => P::Sge,
        P::Slt => P::Sgt,
        P::Sge => P::Sle,
        P::Sgt => P::Slt,
        P::Ule => P::Uge,
        P::Ult => P::Ugt,
        P::Uge => P::Ule,
        P::Ugt => P::Ult,
        P::Eq | P::Ne => return None,
    })
}
