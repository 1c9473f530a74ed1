//! Circular functions of f32, reduced in f64.
//!
//! Coefficients are our own minimax fits of the relative error on the reduced interval.

use crate::Function;
use crate::emit::Emit;
use monopour_ir::Value;
use monopour_ir::ops;
use monopour_ir::typed::arith::CmpFPredicate;

/// Circular functions of f32.
pub const CIRCULAR: &[Function] = &[
    Function::of_single(ops::math::SIN, sin),
    Function::of_single(ops::math::COS, cos),
    Function::of_single(ops::math::TAN, tan),
    Function::of_single(ops::math::ATAN, atan),
];

/// `pi / 2` in three parts: a quadrant number below 2^20 times each of the first two is exact in f64.
const HALF_PI: [f64; 3] = [1.570_796_326_734_125_6, 6.077_100_506_303_966e-11, 2.022_266_248_795_951e-21];
/// `sin(r) = r + r^3 P(r^2)` up to pi / 4, relative error 4e-9.
const SIN: [f64; 3] = [-0.166_666_546_022_787_16, 0.008_332_160_291_970_113, -0.000_195_152_181_232_820_6];
/// `cos(r) = 1 - r^2 / 2 + r^4 P(r^2)` up to pi / 4, relative error 1.2e-10.
const COS: [f64; 3] = [0.041_666_645_670_134_5, -0.001_388_731_561_567_095_6, 2.443_308_260_814_097_5e-5];
/// `atan(z) = z + z^3 P(z^2)` up to tan(pi / 8), relative error 7e-10.
const ATAN: [f64; 5] = [
    -0.333_333_151_719_995_45,
    0.199_984_704_152_517_48,
    -0.142_435_111_748_875_27,
    0.105_936_404_997_591_05,
    -0.060_777_606_949_510_06,
];
/// Below this, `sin(x) = x` to the last bit.
const TINY: f64 = 1.0 / 4096.0;

/// The argument minus a multiple of pi / 2, in f32, and its quadrant (0, 1, 2 or 3, in f64).
fn reduce<'c>(e: &mut Emit<'c, '_>, x: Value<'c>) -> (Value<'c>, Value<'c>) {
    let wide = e.extend(x);
    let turns = e.scale(wide, std::f64::consts::FRAC_2_PI);
    let k = e.same(ops::math::ROUNDEVEN, &[turns]);
    let mut r = wide;
    for part in HALF_PI {
        let step = e.scale(k, part);
        r = e.sub(r, step);
    }
    let quarter = e.scale(k, 0.25);
    let whole = e.same(ops::math::FLOOR, &[quarter]);
    let base = e.scale(whole, 4.0);
    let single = e.truncate(r);
    (within_one(e, single), e.sub(k, base))
}

/// A reduced argument; of a huge one, which has no accuracy left, at most 1, so that its sine and cosine are too.
pub(crate) fn within_one<'c>(e: &mut Emit<'c, '_>, r: Value<'c>) -> Value<'c> {
    let (one, minus_one) = (e.c(1.0), e.c(-1.0));
    let capped = e.same(ops::arith::MINIMUMF, &[r, one]);
    e.same(ops::arith::MAXIMUMF, &[capped, minus_one])
}

fn sin_polynomial<'c>(e: &mut Emit<'c, '_>, r: Value<'c>) -> Value<'c> {
    let square = e.mul(r, r);
    let p = e.polynomial(square, &SIN);
    let cube = e.mul(square, r);
    e.same(ops::math::FMA, &[cube, p, r])
}

fn cos_polynomial<'c>(e: &mut Emit<'c, '_>, r: Value<'c>) -> Value<'c> {
    let square = e.mul(r, r);
    let p = e.polynomial(square, &COS);
    let fourth = e.mul(square, square);
    let half = e.scale(square, -0.5);
    let head = e.plus(half, 1.0);
    e.same(ops::math::FMA, &[fourth, p, head])
}

/// The value of the quadrant.
pub(crate) fn by_quadrant<'c>(e: &mut Emit<'c, '_>, quadrant: Value<'c>, values: [Value<'c>; 4]) -> Value<'c> {
    let mut result = values[0];
    for (i, value) in values.into_iter().enumerate().skip(1) {
        let here = e.compare_c(CmpFPredicate::Oeq, quadrant, i as f64);
        result = e.select(here, value, result);
    }
    result
}

fn sin<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let x = operands[0];
    let (r, quadrant) = reduce(e, x);
    let (s, c) = (sin_polynomial(e, r), cos_polynomial(e, r));
    let (minus_s, minus_c) = (e.neg(s), e.neg(c));
    let value = by_quadrant(e, quadrant, [s, c, minus_s, minus_c]);
    let a = e.abs(x);
    let tiny = e.compare_c(CmpFPredicate::Olt, a, TINY);
    e.select(tiny, x, value)
}

fn cos<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let (r, quadrant) = reduce(e, operands[0]);
    let (s, c) = (sin_polynomial(e, r), cos_polynomial(e, r));
    let (minus_s, minus_c) = (e.neg(s), e.neg(c));
    by_quadrant(e, quadrant, [c, minus_s, minus_c, s])
}

fn tan<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let s = e.same(ops::math::SIN, operands);
    let c = e.same(ops::math::COS, operands);
    e.div(s, c)
}

fn atan<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let x = operands[0];
    let a = e.abs(x);
    // tan(3 pi / 8) and tan(pi / 8) bound the three ranges.
    let large = e.compare_c(CmpFPredicate::Ogt, a, 2.414_213_562_373_095);
    let middle = e.compare_c(CmpFPredicate::Ogt, a, 0.414_213_562_373_095);
    let minus_one = e.c(-1.0);
    let inverse = e.div(minus_one, a);
    let (below, above) = (e.plus(a, -1.0), e.plus(a, 1.0));
    let ratio = e.div(below, above);
    let small_or_middle = e.select(middle, ratio, a);
    let z = e.select(large, inverse, small_or_middle);
    let (zero, quarter, half) = (e.c(0.0), e.c(std::f64::consts::FRAC_PI_4), e.c(std::f64::consts::FRAC_PI_2));
    let offset = e.select(middle, quarter, zero);
    let offset = e.select(large, half, offset);
    let square = e.mul(z, z);
    let p = e.polynomial(square, &ATAN);
    let cube = e.mul(square, z);
    let value = e.same(ops::math::FMA, &[cube, p, z]);
    let sum = e.add(offset, value);
    e.copysign(sum, x)
}
