//! Integers of 2 to 31 bits: sign-extended i32 in registers, wrapped after ops that may leave their range.

use super::module::{Ex, Kernel, Shape};
use super::short_float::ShortFloat;
use monopour_ir::{Op, Type, Value, ops};
use naga::{BinaryOperator as B, Expression, MathFunction as M, Scalar, ScalarKind};

/// Bits of an integer type that is narrower than its register.
pub(super) fn bits(ty: Type) -> Option<u32> {
    ty.element().integer_width().filter(|w| (2..32).contains(w))
}

/// Whether a value of a narrow type is known not to be negative, so that both extensions leave it: it is masked, shifted down
/// or a constant.
pub(super) fn is_positive(value: Value) -> bool {
    let (Some(bits), Some(op)) = (bits(value.ty()), value.defining_op()) else { return false };
    let constant = |i: usize| known(op.operand(i));
    match op.name() {
        ops::arith::ANDI => (0..2).any(|i| constant(i).is_some_and(|mask| (0..1 << (bits - 1)).contains(&mask))),
        ops::arith::SHRUI => constant(1).is_some_and(|by| (1..i64::from(bits)).contains(&by)),
        _ => known(value).is_some_and(|number| number >= 0),
    }
}

/// Whether all that reads a value of a narrow type takes its bits alone: a mask, or an operand without a sign.
pub(super) fn takes_bits(value: Value) -> bool {
    let Some(bits) = bits(value.ty()) else { return false };
    let takes = |op: Op, at: usize| match op.name() {
        ops::arith::ANDI => known(op.operand(1 - at)).is_some_and(|mask| (0..1 << bits).contains(&mask)),
        ops::arith::SHRUI => at == 0,
        ops::arith::UITOFP | ops::arith::EXTUI => true,
        _ => false,
    };
    value.uses().into_iter().all(|u| takes(u.op, u.index))
}

/// The number that all lanes are.
fn known(value: Value) -> Option<i64> {
    let op = value.defining_op()?;
    match op.name() {
        ops::vector::BROADCAST => known(op.operand(0)),
        _ => value.constant_int(),
    }
}

/// The lowest `bits` bits as a signed number.
pub(super) fn sign_extend(k: &mut Kernel, a: Ex, bits: u32, lanes: u32) -> Ex {
    let amount = k.u32(32 - bits);
    let amount = k.splat(amount, lanes);
    let high = k.binary(B::ShiftLeft, a, amount);
    k.binary(B::ShiftRight, high, amount)
}

/// The lowest `bits` bits as an unsigned number.
pub(super) fn zero_extend(k: &mut Kernel, a: Ex, bits: u32, lanes: u32) -> Ex {
    let mask = k.i32((1i32 << bits) - 1);
    let mask = k.splat(mask, lanes);
    k.binary(B::And, a, mask)
}

/// Whether the lowest bit of an u32 is set.
pub(super) fn bit(k: &mut Kernel, a: Ex, lanes: u32) -> Ex {
    let (one, zero) = (k.u32(1), k.u32(0));
    let (one, zero) = (k.splat(one, lanes), k.splat(zero, lanes));
    let bit = k.binary(B::And, a, one);
    k.binary(B::NotEqual, bit, zero)
}

/// A scalar of at most 32 bits from the low bits of a word.
pub(super) fn from_word<'c>(k: &mut Kernel<'c>, ty: Type<'c>, scalar: Scalar, word: Ex) -> Ex {
    if let Some(short) = ShortFloat::of(k, ty) {
        return short.of_word(k, word, 1);
    }
    match (scalar.kind, scalar.width) {
        (ScalarKind::Bool, _) => bit(k, word, 1),
        (ScalarKind::Float, 2) => half_from_word(k, word),
        (kind, _) => {
            let value = k.bitcast(word, kind);
            bits(ty).map_or(value, |bits| sign_extend(k, value, bits, 1))
        }
    }
}

/// The f16 in the low bits of a word; NaNs stay NaNs.
pub(super) fn half_from_word(k: &mut Kernel, word: Ex) -> Ex {
    let pair = k.math(M::Unpack2x16float, &[word]);
    let wide = k.add(Expression::AccessIndex { base: pair, index: 0 });
    k.convert(wide, ScalarKind::Float, 2)
}

/// The bits of an f16 in the low bits of a word.
pub(super) fn half_to_word(k: &mut Kernel, half: Ex) -> Ex {
    let wide = k.convert(half, ScalarKind::Float, 4);
    let zero = k.f32(0.0);
    let ty = k.plane_type(Shape { scalar: Scalar::F32, lanes: 2 });
    let pair = k.add(Expression::Compose { ty, components: vec![wide, zero] });
    k.math(M::Pack2x16float, &[pair])
}
