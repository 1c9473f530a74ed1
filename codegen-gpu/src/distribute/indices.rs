//! Lowers affine index arithmetic to `arith`.
//!
//! Before: `affine.apply affine_map<(d0) -> (d0 * 16)>(%i)`.
//! After: `arith.muli %i, %c16`.
//! Ensures: no affine op remains.

use super::code::Code;
use crate::error;
use monopour_ir::ops;
use monopour_ir::{AffineExpr, AffineExprKind, Diagnostics, Op, Rewriter, Value, WalkOrder};

/// Lowers every `affine.apply`, `affine.min` and `affine.max`.
pub(super) fn lower_affine<'c>(rw: &mut Rewriter<'c>, func: Op<'c>) -> Result<(), Diagnostics> {
    for op in func.nested(WalkOrder::Pre) {
        if op.dialect() == "affine" {
            let mut code = Code::before(rw, op);
            let value = lower(&mut code, op)?;
            code.rw.replace_op(op, &[value]);
        }
    }
    Ok(())
}

fn lower<'c>(code: &mut Code<'c, '_>, op: Op<'c>) -> Result<Value<'c>, Diagnostics> {
    if !matches!(op.name(), ops::affine::APPLY | ops::affine::MIN | ops::affine::MAX) {
        return Err(error::not_a_tile(op, "only affine.apply, affine.min and affine.max are index arithmetic"));
    }
    let map = op.attr("map").and_then(|a| a.as_affine_map()).ok_or_else(|| error::not_a_tile(op, "it has no map"))?;
    let operands = op.operands();
    let (dims, symbols) = operands.split_at(map.num_dims());
    let mut results =
        map.results().into_iter().map(|e| expression(code, e, dims, symbols)).collect::<Vec<_>>().into_iter();
    let first = results.next().ok_or_else(|| error::not_a_tile(op, "its map has no result"))?;
    Ok(results.fold(first, |a, b| if op.is(ops::affine::MAX) { code.max(a, b) } else { code.min(a, b) }))
}

/// Evaluates an affine expression. Quotients and remainders are those of affine maps, also for negative values.
pub(super) fn expression<'c>(
    code: &mut Code<'c, '_>,
    e: AffineExpr<'c>,
    dims: &[Value<'c>],
    symbols: &[Value<'c>],
) -> Value<'c> {
    let mut both =
        |l: AffineExpr<'c>, r: AffineExpr<'c>| (expression(code, l, dims, symbols), expression(code, r, dims, symbols));
    match e.kind() {
        AffineExprKind::Dim(p) => dims[p],
        AffineExprKind::Symbol(p) => symbols[p],
        AffineExprKind::Constant(v) => code.c(v),
        AffineExprKind::Add(l, r) => {
            let (l, r) = both(l, r);
            code.add(l, r)
        }
        AffineExprKind::Mul(l, r) => {
            let (l, r) = both(l, r);
            code.mul(l, r)
        }
        AffineExprKind::Mod(l, r) => {
            let (l, r) = both(l, r);
            floor_mod(code, l, r)
        }
        AffineExprKind::FloorDiv(l, r) => {
            let (l, r) = both(l, r);
            code.op1(ops::arith::FLOORDIVSI, &[l, r], code.index)
        }
        AffineExprKind::CeilDiv(l, r) => {
            let (l, r) = both(l, r);
            code.op1(ops::arith::CEILDIVSI, &[l, r], code.index)
        }
    }
}

/// The affine remainder is never negative, that of `arith` has the dividend's sign.
fn floor_mod<'c>(code: &mut Code<'c, '_>, a: Value<'c>, b: Value<'c>) -> Value<'c> {
    let quotient = code.op1(ops::arith::FLOORDIVSI, &[a, b], code.index);
    let product = code.mul(quotient, b);
    code.op1(ops::arith::SUBI, &[a, product], code.index)
}

/// Moves all constants to the start of a kernel, so that they dominate all later code.
pub(super) fn hoist_constants<'c>(rw: &mut Rewriter<'c>, func: Op<'c>) {
    let Some(first) = func.body().and_then(|b| b.first_op()) else { return };
    for op in func.find_all(ops::arith::CONSTANT) {
        if op != first {
            rw.move_before(op, first);
        }
    }
}
