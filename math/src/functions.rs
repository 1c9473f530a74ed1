//! Powers, roots, logarithms and hyperbolic functions of f32 (some of f64 too), by way of `exp`, `expm1`, `log`, `log1p` and `log2`.

use crate::Function;
use crate::emit::Emit;
use monopour_ir::Value;
use monopour_ir::ops;
use monopour_ir::typed::arith::CmpFPredicate;
use std::f64::consts::{LN_2, LOG10_E};

/// Functions of f32, but for the circular ones.
pub const SINGLE: &[Function] = &[
    Function::of_single(ops::math::LOG, log),
    Function::of_single(ops::math::LOG2, log2),
    Function::of_single(ops::math::EXP2, exp2),
    Function::of_single(ops::math::POWF, powf),
    Function::of_single(ops::math::LOG10, log10),
    Function::of_single(ops::math::CBRT, cbrt),
    Function::of_single(ops::math::SINH, sinh),
    Function::of_single(ops::math::ASINH, asinh),
    Function::of_single(ops::math::ACOSH, acosh),
    Function::of_single(ops::math::ATANH, atanh),
    Function::of_single(ops::math::ATAN2, crate::arcs::atan2_single),
];

/// From here on `x^2 + 1 = x^2` in f32 and f64, and `x^2` may overflow.
const LARGE: f64 = 1e9;

/// `2^x = 2^n e^((x - n) ln 2)`: the fraction is exact, so that the error does not grow with the result.
fn exp2<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    // Beyond these the result is infinite or zero; NaN passes.
    let (low, high) = (e.c(-160.0), e.c(160.0));
    let x = e.same(ops::arith::MAXIMUMF, &[operands[0], low]);
    let x = e.same(ops::arith::MINIMUMF, &[x, high]);
    let n = e.same(ops::math::ROUNDEVEN, &[x]);
    let fraction = e.sub(x, n);
    let fraction = e.scale(fraction, LN_2);
    let power = e.same(ops::math::EXP, &[fraction]);
    // Two factors, because 2^160 has no exponent field; a NaN would have no integer, so it is dropped from the exponent.
    let n = e.same(ops::arith::MAXNUMF, &[n, low]);
    let half = e.scale(n, 0.5);
    let first = e.same(ops::math::FLOOR, &[half]);
    let second = e.sub(n, first);
    let (first, second) = (e.power_of_two(first), e.power_of_two(second));
    let scaled = e.mul(power, first);
    e.mul(scaled, second)
}

/// `|x|^y = 2^(y log2 |x|)`, then the signs and special values of IEEE 754's pow.
pub(crate) fn powf<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let (x, y) = (operands[0], operands[1]);
    let a = e.abs(x);
    let log = e.same(ops::math::LOG2, &[a]);
    let exponent = e.mul(y, log);
    let magnitude = e.same(ops::math::EXP2, &[exponent]);
    let one = e.c(1.0);
    // 1^inf: the logarithm is 0, and 0 times infinity is NaN.
    let unit = e.compare(CmpFPredicate::Oeq, a, one);
    let magnitude = e.select(unit, one, magnitude);
    let whole = e.same(ops::math::TRUNC, &[y]);
    let half = e.scale(y, 0.5);
    let whole_half = e.same(ops::math::TRUNC, &[half]);
    let integral = e.compare(CmpFPredicate::Oeq, whole, y);
    let uneven = e.compare(CmpFPredicate::Une, whole_half, half);
    let odd = e.and(integral, uneven);
    let negative = e.sign_bit(x);
    let flips = e.and(odd, negative);
    let minus = e.neg(magnitude);
    let signed = e.select(flips, minus, magnitude);
    // A negative finite base has no real power of a fraction.
    let fractional = e.compare(CmpFPredicate::Une, whole, y);
    let below_zero = e.compare_c(CmpFPredicate::Olt, x, 0.0);
    let finite = e.compare_c(CmpFPredicate::Olt, a, f64::INFINITY);
    let outside = e.and(fractional, below_zero);
    let outside = e.and(outside, finite);
    let nan = e.c(f64::NAN);
    let value = e.select(outside, nan, signed);
    // x^0 and 1^y are 1, whatever the other is.
    let no_exponent = e.compare_c(CmpFPredicate::Oeq, y, 0.0);
    let base_one = e.compare(CmpFPredicate::Oeq, x, one);
    let is_one = e.or(no_exponent, base_one);
    e.select(is_one, one, value)
}

/// The logarithm `name` of `x`, in whose base 2 has the logarithm `two`. Upstream's polynomial takes a denormal for 2^-126.
fn logarithm<'c>(e: &mut Emit<'c, '_>, name: &str, x: Value<'c>, two: f64) -> Value<'c> {
    // Negative numbers are below, too, and stay negative.
    let denormal = e.compare_c(CmpFPredicate::Olt, x, f64::from(f32::MIN_POSITIVE));
    let larger = e.scale(x, 2f64.powi(23));
    let argument = e.select(denormal, larger, x);
    let log = e.normal(name, argument);
    let shifted = e.plus(log, -23.0 * two);
    e.select(denormal, shifted, log)
}

fn log<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    logarithm(e, ops::math::LOG, operands[0], LN_2)
}

fn log2<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    logarithm(e, ops::math::LOG2, operands[0], 1.0)
}

fn log10<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let log = e.same(ops::math::LOG, operands);
    e.scale(log, LOG10_E)
}

/// A power of a third, corrected by one Newton step.
pub(crate) fn cbrt<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let x = operands[0];
    let a = e.abs(x);
    let log = e.same(ops::math::LOG2, &[a]);
    let third = e.scale(log, 1.0 / 3.0);
    let guess = e.same(ops::math::EXP2, &[third]);
    let square = e.mul(guess, guess);
    let quotient = e.div(a, square);
    let error = e.sub(guess, quotient);
    let step = e.scale(error, 1.0 / 3.0);
    let root = e.sub(guess, step);
    let signed = e.copysign(root, x);
    // Zero, infinity and NaN are their own roots.
    let (positive, finite) =
        (e.compare_c(CmpFPredicate::Ogt, a, 0.0), e.compare_c(CmpFPredicate::Olt, a, f64::INFINITY));
    let ordinary = e.and(positive, finite);
    e.select(ordinary, signed, x)
}

fn sinh<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    hyperbolic_sine(e, operands[0], 20.0)
}

/// `(m + m / (m + 1)) / 2` of `m = e^|x| - 1`; from `far` on `e^|x| / 2`.
pub(crate) fn hyperbolic_sine<'c>(e: &mut Emit<'c, '_>, x: Value<'c>, far: f64) -> Value<'c> {
    let a = e.abs(x);
    let m = e.same(ops::math::EXPM1, &[a]);
    let above = e.plus(m, 1.0);
    let quotient = e.div(m, above);
    let sum = e.add(m, quotient);
    let small = e.scale(sum, 0.5);
    let large = half_exp(e, a);
    let is_small = e.compare_c(CmpFPredicate::Olt, a, far);
    let value = e.select(is_small, small, large);
    e.copysign(value, x)
}

/// `e^a / 2`, which near the end of the range is finite where `e^a` is not.
pub(crate) fn half_exp<'c>(e: &mut Emit<'c, '_>, a: Value<'c>) -> Value<'c> {
    let half = e.scale(a, 0.5);
    let root = e.same(ops::math::EXP, &[half]);
    let half_root = e.scale(root, 0.5);
    e.mul(half_root, root)
}

/// `ln(a) + ln 2`, the inverse hyperbolic sine and cosine of a large number.
fn log_of_double<'c>(e: &mut Emit<'c, '_>, a: Value<'c>) -> Value<'c> {
    let log = e.same(ops::math::LOG, &[a]);
    e.plus(log, LN_2)
}

pub(crate) fn asinh<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let x = operands[0];
    let a = e.abs(x);
    let square = e.mul(a, a);
    let above = e.plus(square, 1.0);
    let root = e.same(ops::math::SQRT, &[above]);
    let denominator = e.plus(root, 1.0);
    let quotient = e.div(square, denominator);
    let argument = e.add(a, quotient);
    let small = e.same(ops::math::LOG1P, &[argument]);
    let large = log_of_double(e, a);
    let is_large = e.compare_c(CmpFPredicate::Ogt, a, LARGE);
    let value = e.select(is_large, large, small);
    e.copysign(value, x)
}

pub(crate) fn acosh<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let x = operands[0];
    let t = e.plus(x, -1.0);
    let above = e.plus(t, 2.0);
    let product = e.mul(t, above);
    let root = e.same(ops::math::SQRT, &[product]);
    let argument = e.add(t, root);
    let small = e.same(ops::math::LOG1P, &[argument]);
    let large = log_of_double(e, x);
    let is_large = e.compare_c(CmpFPredicate::Ogt, x, LARGE);
    let value = e.select(is_large, large, small);
    // Below -1 the product is positive again.
    let (outside, nan) = (e.compare_c(CmpFPredicate::Olt, x, 1.0), e.c(f64::NAN));
    e.select(outside, nan, value)
}

pub(crate) fn atanh<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let x = operands[0];
    let a = e.abs(x);
    let one = e.c(1.0);
    let below = e.sub(one, a);
    let double = e.add(a, a);
    let argument = e.div(double, below);
    let log = e.same(ops::math::LOG1P, &[argument]);
    let value = e.scale(log, 0.5);
    e.copysign(value, x)
}
