//! The remainder of a division of floats, exact, without C's `fmod`.
//!
//! In f64, `q b` is exact for `q` below 2^28 and `b` of f32 or less: each step takes 28 bits of the quotient, from the
//! largest that two f32 can have. The remainder of every step is exact.
//! Of f64 a step takes 51 bits, and a fused multiplication makes its remainder exact.

use crate::Function;
use crate::emit::Emit;
use monopour_ir::Value;
use monopour_ir::ops;
use monopour_ir::typed::arith::CmpFPredicate;

/// The remainder of floats of up to 32 bits.
pub const REMAINDER: &[Function] = &[Function::new(ops::arith::REMF, &[16, 32], remainder)];

/// The remainder of f64, for compilers whose `math.fma` rounds once.
pub const DOUBLE_REMAINDER: &[Function] = &[Function::new(ops::arith::REMF, &[64], double_remainder)];

/// Bits of the quotient per step in f64.
const DOUBLE_BITS: i32 = 51;
/// Steps: a quotient of two f64 is below 2^2098.
const DOUBLE_STEPS: i32 = 42;
/// The largest power of two by which a divisor is multiplied at once.
const MAX_SCALE: i32 = 1000;

/// Bits of the quotient per step.
const BITS: i32 = 28;
/// Steps: a quotient of two f32 is below 2^278.
const STEPS: i32 = 10;

fn remainder<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let (x, y) = (operands[0], operands[1]);
    let (a, b) = (e.abs(x), e.abs(y));
    let (mut rest, divisor) = (e.extend(a), e.extend(b));
    for step in (0..STEPS).rev() {
        let scaled = e.scale(divisor, 2f64.powi(BITS * step));
        let quotient = e.div(rest, scaled);
        let whole = e.same(ops::math::TRUNC, &[quotient]);
        let product = e.mul(whole, scaled);
        let less = e.sub(rest, product);
        // A quotient that was rounded up to a whole number is one too large.
        let below = e.compare_c(CmpFPredicate::Olt, less, 0.0);
        let back = e.add(less, scaled);
        rest = e.select(below, back, less);
    }
    let value = e.truncate(rest);
    let signed = e.copysign(value, x);
    // Infinite divisors, too.
    let small = e.compare(CmpFPredicate::Olt, a, b);
    e.select(small, x, signed)
}

fn double_remainder<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let (x, y) = (operands[0], operands[1]);
    let (a, b) = (e.abs(x), e.abs(y));
    let mut rest = a;
    for step in (0..DOUBLE_STEPS).rev() {
        let (mut scaled, mut power) = (b, DOUBLE_BITS * step);
        while power > 0 {
            scaled = e.scale(scaled, 2f64.powi(power.min(MAX_SCALE)));
            power -= MAX_SCALE;
        }
        let quotient = e.div(rest, scaled);
        let whole = e.same(ops::math::TRUNC, &[quotient]);
        let minus = e.neg(whole);
        let less = e.same(ops::math::FMA, &[minus, scaled, rest]);
        // A quotient that was rounded up to a whole number is one too large.
        let below = e.compare_c(CmpFPredicate::Olt, less, 0.0);
        let back = e.add(less, scaled);
        let less = e.select(below, back, less);
        // A divisor that is too large takes nothing, an infinite one neither.
        let fits = e.compare(CmpFPredicate::Ole, scaled, rest);
        rest = e.select(fits, less, rest);
    }
    // No number has a remainder by zero or NaN; that of infinity is NaN above.
    let is_divisor = e.compare_c(CmpFPredicate::Ogt, b, 0.0);
    let nan = e.constant(f64::NAN, x.ty());
    let rest = e.select(is_divisor, rest, nan);
    e.copysign(rest, x)
}
