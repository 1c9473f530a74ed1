//! The remainder of a division of floats, exact, without C's `fmod`.
//!
//! In f64, `q b` is exact for `q` below 2^28 and `b` of f32 or less: each step takes 28 bits of the quotient, from the
//! largest that two f32 can have. The remainder of every step is exact.

use crate::Function;
use crate::emit::Emit;
use monopour_ir::Value;
use monopour_ir::ops;
use monopour_ir::typed::arith::CmpFPredicate;

/// The remainder of f32 and narrower types.
pub const REMAINDER: &[Function] = &[Function::new(ops::arith::REMF, &[16, 32], remainder)];

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
