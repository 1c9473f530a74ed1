//! Rounding to integral values, for CPUs without an instruction for it (SSE2).
//!
//! Adding and subtracting 2^23 (2^52 in f64) rounds a smaller number to even; larger ones are integral already.
//! NaN, infinities and the sign of zero come out as IEEE 754 says.

use crate::Function;
use crate::emit::Emit;
use monopour_ir::Value;
use monopour_ir::ops;
use monopour_ir::typed::arith::CmpFPredicate;

/// f32 and f64.
const WIDE: &[u32] = &[32, 64];
/// Every type.
const ALL: &[u32] = &[16, 32, 64];

/// Half away from zero, which x86 has no instruction for.
pub const ROUND: &[Function] = &[Function::new(ops::math::ROUND, WIDE, round)];
/// The other modes, for CPUs without the instructions.
pub const ROUNDING: &[Function] = &[
    Function::new(ops::math::ROUNDEVEN, ALL, round_even),
    Function::new(ops::math::TRUNC, ALL, trunc),
    Function::new(ops::math::FLOOR, ALL, floor),
    Function::new(ops::math::CEIL, ALL, ceil),
];

/// The magnitude of `x` rounded to even, and whether `x` is small enough to have a fraction.
fn magnitude<'c>(e: &mut Emit<'c, '_>, x: Value<'c>) -> (Value<'c>, Value<'c>) {
    let integral = if x.ty().element().float_width() == Some(64) { 2f64.powi(52) } else { 2f64.powi(23) };
    let a = e.abs(x);
    let has_fraction = e.compare_c(CmpFPredicate::Olt, a, integral);
    let sum = e.plus(a, integral);
    (e.plus(sum, -integral), has_fraction)
}

/// `rounded` with the sign of `x` where `x` has a fraction, else `x`.
fn finish<'c>(e: &mut Emit<'c, '_>, x: Value<'c>, rounded: Value<'c>, has_fraction: Value<'c>) -> Value<'c> {
    let signed = e.copysign(rounded, x);
    e.select(has_fraction, signed, x)
}

fn round_even<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let x = operands[0];
    let (even, has_fraction) = magnitude(e, x);
    finish(e, x, even, has_fraction)
}

fn trunc<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let x = operands[0];
    let (even, has_fraction) = magnitude(e, x);
    let a = e.abs(x);
    let above = e.compare(CmpFPredicate::Ogt, even, a);
    let less = e.plus(even, -1.0);
    let down = e.select(above, less, even);
    finish(e, x, down, has_fraction)
}

fn floor<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let x = operands[0];
    let even = round_even(e, operands);
    let above = e.compare(CmpFPredicate::Ogt, even, x);
    let less = e.plus(even, -1.0);
    let down = e.select(above, less, even);
    // A zero takes the sign of `x`: 0.7 rounds down to 0, and -0 stays -0.
    let zero = e.compare_c(CmpFPredicate::Oeq, down, 0.0);
    let signed = e.copysign(down, x);
    e.select(zero, signed, down)
}

fn ceil<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let x = operands[0];
    let even = round_even(e, operands);
    let below = e.compare(CmpFPredicate::Olt, even, x);
    let more = e.plus(even, 1.0);
    let up = e.select(below, more, even);
    // -0.5 rounds up to -0.
    let zero = e.compare_c(CmpFPredicate::Oeq, up, 0.0);
    let signed = e.copysign(up, x);
    e.select(zero, signed, up)
}

/// Half away from zero.
fn round<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let a = e.abs(operands[0]);
    let whole = e.same(ops::math::TRUNC, &[a]);
    let fraction = e.sub(a, whole);
    let up = e.compare_c(CmpFPredicate::Oge, fraction, 0.5);
    let more = e.plus(whole, 1.0);
    let rounded = e.select(up, more, whole);
    e.copysign(rounded, operands[0])
}
