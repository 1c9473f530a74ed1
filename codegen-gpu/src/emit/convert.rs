//! Conversions between numbers, lane by lane.

use super::arith::unsigned_operand;
use super::module::{Ex, Kernel, Lowered, Shape};
use super::short_float::ShortFloat;
use super::{narrow, types};
use crate::error;
use monopour_ir::ops;
use monopour_ir::{Diagnostics, Op};
use naga::{BinaryOperator as B, Literal, ScalarKind, UnaryOperator as U};

/// Conversions of `arith` between number types.
pub(super) fn emit<'c>(kernel: &mut Kernel<'c>, op: Op<'c>, to: Shape) -> Result<Lowered, Diagnostics> {
    let from = types::shape(kernel, op, op.operand(0).ty())?;
    let unsigned = matches!(op.name(), ops::arith::EXTUI | ops::arith::UITOFP | ops::arith::INDEX_CASTUI);
    let a = if unsigned { unsigned_operand(kernel, op, 0, from.lanes) } else { kernel.operand(op, 0) };
    let (kind, width) = (to.scalar.kind, to.scalar.width);
    let bool_operand = from.scalar.kind == ScalarKind::Bool;
    match op.name() {
        ops::arith::EXTSI | ops::arith::SITOFP if bool_operand => Ok(kernel.map(a, |k, a| {
            let number = k.convert(a, kind, width);
            k.unary(U::Negate, number)
        })),
        ops::arith::EXTUI | ops::arith::UITOFP | ops::arith::INDEX_CASTUI if !bool_operand => {
            Ok(kernel.map(a, |k, a| {
                let unsigned = k.bitcast(a, ScalarKind::Uint);
                if kind == ScalarKind::Float {
                    k.convert(unsigned, kind, width)
                } else {
                    widen_unsigned(k, unsigned, width)
                }
            }))
        }
        ops::arith::TRUNCI | ops::arith::INDEX_CAST | ops::arith::INDEX_CASTUI if kind == ScalarKind::Bool => {
            Ok(kernel.map(a, |k, a| low_bit(k, a, from)))
        }
        ops::arith::FPTOUI => Ok(kernel.map(a, |k, a| {
            let unsigned = k.convert(a, ScalarKind::Uint, width);
            k.bitcast(unsigned, ScalarKind::Sint)
        })),
        ops::arith::BITCAST => bitcast(kernel, op, a, from, to),
        ops::arith::EXTF | ops::arith::TRUNCF | ops::arith::INDEX_CAST | ops::arith::EXTSI | ops::arith::TRUNCI
            if from.scalar == to.scalar =>
        {
            Ok(a)
        }
        ops::arith::EXTSI | ops::arith::INDEX_CAST if to.scalar.width == 8 && from.scalar.kind == ScalarKind::Sint => {
            Ok(kernel.map(a, |k, a| widen_signed(k, a, from.lanes)))
        }
        ops::arith::EXTF
        | ops::arith::TRUNCF
        | ops::arith::SITOFP
        | ops::arith::UITOFP
        | ops::arith::FPTOSI
        | ops::arith::EXTSI
        | ops::arith::EXTUI
        | ops::arith::TRUNCI
        | ops::arith::INDEX_CAST
        | ops::arith::INDEX_CASTUI => Ok(kernel.map(a, |k, a| k.convert(a, kind, width))),
        _ => Err(error::unsupported_op(op)),
    }
}

/// The same bits as a number of another type.
fn bitcast<'c>(
    kernel: &mut Kernel<'c>,
    op: Op<'c>,
    a: Lowered,
    from: Shape,
    to: Shape,
) -> Result<Lowered, Diagnostics> {
    let kind = to.scalar.kind;
    let short = |index: Option<usize>| {
        ShortFloat::of(kernel, index.map_or_else(|| op.result(0).ty(), |index| op.operand(index).ty()))
    };
    if let (Some(short), ScalarKind::Sint) = (short(Some(0)), kind) {
        Ok(kernel.map(a, |k, a| {
            let word = short.to_word(k, a, from.lanes);
            let word = k.bitcast(word, ScalarKind::Sint);
            narrow::sign_extend(k, word, 16, from.lanes)
        }))
    } else if let (Some(short), ScalarKind::Sint) = (short(None), from.scalar.kind) {
        Ok(kernel.map(a, |k, a| {
            let word = k.bitcast(a, ScalarKind::Uint);
            short.of_word(k, word, from.lanes)
        }))
    } else if from.scalar.width != to.scalar.width {
        half_bits(kernel, op, a, from, to)
    } else {
        Ok(kernel.map(a, |k, a| if from.scalar.kind == kind { a } else { k.bitcast(a, kind) }))
    }
}

/// f16 to i16 and back; the integer lies in a register of 32 bits.
fn half_bits<'c>(
    kernel: &mut Kernel<'c>,
    op: Op<'c>,
    a: Lowered,
    from: Shape,
    to: Shape,
) -> Result<Lowered, Diagnostics> {
    match (a, from.scalar.width, to.scalar.width) {
        (Lowered::One(a), 4, 2) if from.lanes == 1 => {
            let word = kernel.bitcast(a, ScalarKind::Uint);
            Ok(Lowered::One(narrow::half_from_word(kernel, word)))
        }
        (Lowered::One(a), 2, 4) if from.lanes == 1 => {
            let word = narrow::half_to_word(kernel, a);
            Ok(Lowered::One(kernel.bitcast(word, ScalarKind::Sint)))
        }
        _ => Err(error::unsupported_op(op)),
    }
}

fn widen_unsigned(k: &mut Kernel, a: Ex, width: u8) -> Ex {
    let wide = k.convert(a, ScalarKind::Uint, width);
    k.bitcast(wide, ScalarKind::Sint)
}

/// Sign-extends 32 bits to 64, from its word and its sign: Mesa 22.3 folds every comparison of a converted number with a
/// constant.
pub(super) fn widen_signed(k: &mut Kernel, a: Ex, lanes: u32) -> Ex {
    let [last, word] = [31, 32].map(|amount| {
        let amount = k.u32(amount);
        k.splat(amount, lanes)
    });
    let sign = k.binary(B::ShiftRight, a, last);
    let [low, high] = [a, sign].map(|half| {
        let half = k.bitcast(half, ScalarKind::Uint);
        k.convert(half, ScalarKind::Uint, 8)
    });
    let high = k.binary(B::ShiftLeft, high, word);
    let both = k.binary(B::InclusiveOr, high, low);
    k.bitcast(both, ScalarKind::Sint)
}

fn low_bit(k: &mut Kernel, a: Ex, shape: Shape) -> Ex {
    let wide = shape.scalar.width == 8;
    let (one, zero) =
        if wide { (k.literal(Literal::I64(1)), k.literal(Literal::I64(0))) } else { (k.i32(1), k.i32(0)) };
    let (one, zero) = (k.splat(one, shape.lanes), k.splat(zero, shape.lanes));
    let bit = k.binary(B::And, a, one);
    k.binary(B::NotEqual, bit, zero)
}
