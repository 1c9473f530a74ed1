//! The error function of f64, and its complement.
//!
//! Near 0 the series of `erf`; from one half on `erfc(x) = e^(-x^2) F(x) / (1 + 2 x)`, where `F` is between 1 and 1.25 and a
//! polynomial of `1 / (x + 3.5)`.

use crate::double::small_expm1;
use crate::emit::Emit;
use monopour_ir::Value;
use monopour_ir::ops;
use monopour_ir::typed::arith::CmpFPredicate;
use std::f64::consts::FRAC_2_SQRT_PI;

/// Terms of the series up to one half.
const TERMS: u32 = 13;
/// End of the series.
const NEAR: f64 = 0.5;
/// From here on `erfc` is 0.
const FAR: f64 = 28.0;
/// `FACTOR / (x + SHIFT) + OFFSET` is 1 at [`NEAR`] and -1 at [`FAR`].
const SHIFT: f64 = 3.5;
const FACTOR: f64 = 9.163_636_363_636_364;
const OFFSET: f64 = -1.290_909_090_909_091;
/// `(1 + 2 x) e^(x^2) erfc(x)` as a polynomial of this variable; our own Chebyshev fit, relative error 1e-18.
const TAIL: [f64; 22] = [
    1.240_402_893_771_352_5,
    0.107_133_257_649_946_66,
    -0.003_864_796_992_301_861_5,
    -0.040_693_496_090_066_95,
    -0.037_155_382_726_034_77,
    -0.021_846_665_690_558_6,
    -0.009_336_410_008_853_524,
    -0.002_827_500_379_476_074,
    -0.000_492_517_687_150_904,
    1.994_482_911_525_911e-5,
    3.689_203_924_040_037e-5,
    6.629_433_640_201_073e-6,
    -1.514_622_229_194_723_7e-6,
    -7.429_658_707_345_147e-7,
    3.533_478_921_924_977e-8,
    6.701_822_175_959_027e-8,
    1.300_613_888_229_076_7e-9,
    -6.108_720_052_334_831e-9,
    -2.524_790_300_465_691e-10,
    5.526_754_230_985_857e-10,
    1.608_607_682_704_473e-11,
    -3.608_789_900_653_339e-11,
];

/// `erf x` for magnitudes up to [`NEAR`].
fn series<'c>(e: &mut Emit<'c, '_>, x: Value<'c>) -> Value<'c> {
    let mut factorial = 1.0;
    let mut coefficients = vec![];
    for n in 0..TERMS {
        coefficients.push(FRAC_2_SQRT_PI * (-1f64).powi(n as i32) / (factorial * f64::from(2 * n + 1)));
        factorial *= f64::from(n + 1);
    }
    let square = e.mul(x, x);
    let p = e.polynomial(square, &coefficients);
    e.mul(x, p)
}

/// `erfc a` from [`NEAR`] on.
fn tail<'c>(e: &mut Emit<'c, '_>, a: Value<'c>) -> Value<'c> {
    let far = e.c(FAR);
    let x = e.same(ops::arith::MINIMUMF, &[a, far]);
    let shifted = e.plus(x, SHIFT);
    let factor = e.c(FACTOR);
    let quotient = e.div(factor, shifted);
    let u = e.plus(quotient, OFFSET);
    let p = e.polynomial(u, &TAIL);
    // The square of the upper half of the bits is exact, and the remainder small.
    let upper = e.upper_half(x);
    let square = e.mul(upper, upper);
    let minus = e.neg(square);
    let gauss = e.same(ops::math::EXP, &[minus]);
    let (less, more) = (e.sub(upper, x), e.add(upper, x));
    let rest = e.mul(less, more);
    let m = small_expm1(e, rest);
    let gauss = e.same(ops::math::FMA, &[gauss, m, gauss]);
    let product = e.mul(gauss, p);
    let double = e.add(x, x);
    let denominator = e.plus(double, 1.0);
    e.div(product, denominator)
}

pub(crate) fn erf<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let x = operands[0];
    let a = e.abs(x);
    let near = series(e, x);
    let tail = tail(e, a);
    let one = e.c(1.0);
    let far = e.sub(one, tail);
    let far = e.copysign(far, x);
    let is_near = e.compare_c(CmpFPredicate::Olt, a, NEAR);
    e.select(is_near, near, far)
}

pub(crate) fn erfc<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let x = operands[0];
    let a = e.abs(x);
    let one = e.c(1.0);
    let series = series(e, x);
    let near = e.sub(one, series);
    let right = tail(e, a);
    let two = e.c(2.0);
    let left = e.sub(two, right);
    let is_left = e.compare_c(CmpFPredicate::Olt, x, 0.0);
    let far = e.select(is_left, left, right);
    let is_near = e.compare_c(CmpFPredicate::Olt, a, NEAR);
    e.select(is_near, near, far)
}
