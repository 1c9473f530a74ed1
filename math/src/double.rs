//! Functions of f64: powers, logarithms and their relatives; the table of all.
//!
//! Series on reduced intervals, long enough for f64; `docs/numerics.md` states the errors.

use crate::emit::Emit;
use crate::{Function, arcs, error_function, functions};
use monopour_ir::Value;
use monopour_ir::ops;
use monopour_ir::typed::arith::CmpFPredicate;
use std::f64::consts::{FRAC_2_PI, LN_2, LOG2_E, LOG10_E, SQRT_2};

/// Functions of f64.
pub const DOUBLE: &[Function] = &[
    Function::of_double(ops::math::EXP, exp),
    Function::of_double(ops::math::EXP2, exp2),
    Function::of_double(ops::math::EXPM1, expm1),
    Function::of_double(ops::math::LOG, log),
    Function::of_double(ops::math::LOG2, log2),
    Function::of_double(ops::math::LOG10, log10),
    Function::of_double(ops::math::LOG1P, log1p),
    Function::of_double(ops::math::TANH, tanh),
    Function::of_double(ops::math::SINH, sinh),
    Function::of_double(ops::math::COSH, cosh),
    Function::of_double(ops::math::POWF, functions::powf),
    Function::of_double(ops::math::CBRT, functions::cbrt),
    Function::of_double(ops::math::ASINH, functions::asinh),
    Function::of_double(ops::math::ACOSH, functions::acosh),
    Function::of_double(ops::math::ATANH, functions::atanh),
    Function::of_double(ops::math::SIN, sin),
    Function::of_double(ops::math::COS, cos),
    Function::of_double(ops::math::TAN, tan),
    Function::of_double(ops::math::ATAN, arcs::atan),
    Function::of_double(ops::math::ATAN2, arcs::atan2),
    Function::of_double(ops::math::ASIN, arcs::asin),
    Function::of_double(ops::math::ACOS, arcs::acos),
    Function::of_double(ops::math::ERF, error_function::erf),
    Function::of_double(ops::math::ERFC, error_function::erfc),
];

/// `ln 2` in two parts: an exponent times the first is exact.
const LN_2_PARTS: [f64; 2] = [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10];
/// `pi / 2` in three parts: a quadrant number below 2^20 times each of the first two is exact.
const HALF_PI_PARTS: [f64; 3] = [1.570_796_326_734_125_6, 6.077_100_506_303_966e-11, 2.022_266_248_795_951e-21];

/// `1 / first!, 1 / (first + step)!, ..` with alternating signs where `sign` is -1.
fn factorials(first: u32, step: u32, count: u32, sign: f64) -> Vec<f64> {
    let inverse = |n: u32| (1..=n).map(f64::from).product::<f64>().recip();
    (0..count).map(|i| inverse(first + i * step) * sign.powi(i as i32)).collect()
}

/// `e^r - 1` for `|r|` up to 0.7.
pub(crate) fn small_expm1<'c>(e: &mut Emit<'c, '_>, r: Value<'c>) -> Value<'c> {
    let p = e.polynomial(r, &factorials(2, 1, 16, 1.0));
    let square = e.mul(r, r);
    e.same(ops::math::FMA, &[square, p, r])
}

fn exp<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let (low, high) = (e.c(-746.0), e.c(710.0));
    let x = e.same(ops::arith::MAXIMUMF, &[operands[0], low]);
    let x = e.same(ops::arith::MINIMUMF, &[x, high]);
    let turns = e.scale(x, LOG2_E);
    let n = e.same(ops::math::ROUNDEVEN, &[turns]);
    let mut r = x;
    for part in LN_2_PARTS {
        let factor = e.c(-part);
        let less = e.same(ops::math::FMA, &[n, factor, r]);
        r = e.settled(less, n);
    }
    let m = small_expm1(e, r);
    let power = e.plus(m, 1.0);
    scale_by_power(e, power, n)
}

/// `x 2^n` in two steps, because 2^1024 and 2^-1074 have no exponent field.
fn scale_by_power<'c>(e: &mut Emit<'c, '_>, x: Value<'c>, n: Value<'c>) -> Value<'c> {
    // A NaN has no exponent to scale by; `maxnumf` would do, but GPUs may keep the NaN.
    let least = e.c(-1100.0);
    let above = e.compare(CmpFPredicate::Ogt, n, least);
    let n = e.select(above, n, least);
    let half = e.scale(n, 0.5);
    let first = e.same(ops::math::FLOOR, &[half]);
    let second = e.sub(n, first);
    let (first, second) = (e.double_power_of_two(first), e.double_power_of_two(second));
    let scaled = e.mul(x, first);
    e.mul(scaled, second)
}

fn exp2<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let (low, high) = (e.c(-1100.0), e.c(1100.0));
    let x = e.same(ops::arith::MAXIMUMF, &[operands[0], low]);
    let x = e.same(ops::arith::MINIMUMF, &[x, high]);
    let n = e.same(ops::math::ROUNDEVEN, &[x]);
    let fraction = e.sub(x, n);
    let r = e.scale(fraction, LN_2);
    let m = small_expm1(e, r);
    let power = e.plus(m, 1.0);
    scale_by_power(e, power, n)
}

fn expm1<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let x = operands[0];
    let near = small_expm1(e, x);
    let power = e.same(ops::math::EXP, &[x]);
    let far = e.plus(power, -1.0);
    let a = e.abs(x);
    let small = e.compare_c(CmpFPredicate::Olt, a, 0.7);
    let value = e.select(small, near, far);
    // The series would lose the sign of zero.
    let tiny = e.compare_c(CmpFPredicate::Olt, a, 1e-17);
    e.select(tiny, x, value)
}

/// `m` in `[sqrt(1/2), sqrt 2)` and the integral `n` with `x = m 2^n`, for positive finite `x`.
fn split<'c>(e: &mut Emit<'c, '_>, x: Value<'c>) -> (Value<'c>, Value<'c>) {
    let denormal = e.compare_c(CmpFPredicate::Olt, x, f64::MIN_POSITIVE);
    let larger = e.scale(x, 2f64.powi(54));
    let x = e.select(denormal, larger, x);
    let (exponent, mantissa) = e.split_double(x);
    let above = e.compare_c(CmpFPredicate::Oge, mantissa, SQRT_2);
    let half = e.scale(mantissa, 0.5);
    let m = e.select(above, half, mantissa);
    let next = e.plus(exponent, 1.0);
    let n = e.select(above, next, exponent);
    let lower = e.plus(n, -54.0);
    (m, e.select(denormal, lower, n))
}

/// `ln m` for `m` in `[sqrt(1/2), sqrt 2]`, given `f = m - 1`.
fn small_log<'c>(e: &mut Emit<'c, '_>, f: Value<'c>) -> Value<'c> {
    let below = e.plus(f, 2.0);
    let s = e.div(f, below);
    let square = e.mul(s, s);
    // 2 atanh s = 2 s + s^3 (2/3 + 2/5 s^2 + ..), and 2 s = f - s f.
    let coefficients: Vec<f64> = (1..14).map(|i| 2.0 / f64::from(2 * i + 1)).collect();
    let p = e.polynomial(square, &coefficients);
    let tail = e.mul(square, p);
    let rest = e.sub(f, tail);
    let product = e.mul(s, rest);
    e.sub(f, product)
}

/// Special values of logarithms: zero, infinity, NaN, negative numbers.
fn special_log<'c>(e: &mut Emit<'c, '_>, x: Value<'c>, value: Value<'c>) -> Value<'c> {
    let infinite = e.compare_c(CmpFPredicate::Oeq, x, f64::INFINITY);
    let value = e.select(infinite, x, value);
    let zero = e.compare_c(CmpFPredicate::Oeq, x, 0.0);
    let lowest = e.c(f64::NEG_INFINITY);
    let value = e.select(zero, lowest, value);
    let regular = e.compare_c(CmpFPredicate::Oge, x, 0.0);
    let nan = e.c(f64::NAN);
    e.select(regular, value, nan)
}

fn log<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let x = operands[0];
    let (m, n) = split(e, x);
    let f = e.plus(m, -1.0);
    let small = small_log(e, f);
    let low = e.scale(n, LN_2_PARTS[1]);
    let sum = e.add(small, low);
    let high = e.c(LN_2_PARTS[0]);
    let value = e.same(ops::math::FMA, &[n, high, sum]);
    special_log(e, x, value)
}

fn log2<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let x = operands[0];
    let (m, n) = split(e, x);
    let f = e.plus(m, -1.0);
    let small = small_log(e, f);
    let factor = e.c(LOG2_E);
    let value = e.same(ops::math::FMA, &[small, factor, n]);
    special_log(e, x, value)
}

fn log10<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let log = e.same(ops::math::LOG, operands);
    e.scale(log, LOG10_E)
}

fn log1p<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let x = operands[0];
    let near = small_log(e, x);
    let above = e.plus(x, 1.0);
    let log = e.same(ops::math::LOG, &[above]);
    let a = e.abs(x);
    let small = e.compare_c(CmpFPredicate::Olt, a, 0.25);
    let value = e.select(small, near, log);
    let tiny = e.compare_c(CmpFPredicate::Olt, a, 1e-17);
    e.select(tiny, x, value)
}

fn tanh<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let x = operands[0];
    let a = e.abs(x);
    let most = e.c(20.0);
    let capped = e.same(ops::arith::MINIMUMF, &[a, most]);
    let double = e.add(capped, capped);
    let m = e.same(ops::math::EXPM1, &[double]);
    let above = e.plus(m, 2.0);
    let value = e.div(m, above);
    e.copysign(value, x)
}

fn sinh<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    functions::hyperbolic_sine(e, operands[0], 40.0)
}

fn cosh<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let a = e.abs(operands[0]);
    let power = e.same(ops::math::EXP, &[a]);
    let half = e.scale(power, 0.5);
    let one_half = e.c(0.5);
    let rest = e.div(one_half, power);
    let small = e.add(half, rest);
    let large = functions::half_exp(e, a);
    let is_small = e.compare_c(CmpFPredicate::Olt, a, 40.0);
    e.select(is_small, small, large)
}

/// The argument minus a multiple of pi / 2, and its quadrant (0, 1, 2 or 3).
fn reduce<'c>(e: &mut Emit<'c, '_>, x: Value<'c>) -> (Value<'c>, Value<'c>) {
    let turns = e.scale(x, FRAC_2_PI);
    let k = e.same(ops::math::ROUNDEVEN, &[turns]);
    let mut r = x;
    for part in HALF_PI_PARTS {
        let factor = e.c(-part);
        let less = e.same(ops::math::FMA, &[k, factor, r]);
        r = e.settled(less, k);
    }
    let quarter = e.scale(k, 0.25);
    let whole = e.same(ops::math::FLOOR, &[quarter]);
    let base = e.scale(whole, 4.0);
    (crate::trigonometry::within_one(e, r), e.sub(k, base))
}

fn both<'c>(e: &mut Emit<'c, '_>, r: Value<'c>) -> (Value<'c>, Value<'c>) {
    let square = e.mul(r, r);
    let p = e.polynomial(square, &factorials(3, 2, 8, -1.0));
    let cube = e.mul(square, r);
    let minus = e.neg(cube);
    let s = e.same(ops::math::FMA, &[minus, p, r]);
    let q = e.polynomial(square, &factorials(4, 2, 8, -1.0));
    let fourth = e.mul(square, square);
    let half = e.scale(square, -0.5);
    let head = e.plus(half, 1.0);
    let c = e.same(ops::math::FMA, &[fourth, q, head]);
    (s, c)
}

fn sin<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let x = operands[0];
    let (r, quadrant) = reduce(e, x);
    let (s, c) = both(e, r);
    let (minus_s, minus_c) = (e.neg(s), e.neg(c));
    let value = crate::trigonometry::by_quadrant(e, quadrant, [s, c, minus_s, minus_c]);
    let a = e.abs(x);
    let tiny = e.compare_c(CmpFPredicate::Olt, a, 1e-9);
    e.select(tiny, x, value)
}

fn cos<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let (r, quadrant) = reduce(e, operands[0]);
    let (s, c) = both(e, r);
    let (minus_s, minus_c) = (e.neg(s), e.neg(c));
    crate::trigonometry::by_quadrant(e, quadrant, [c, minus_s, minus_c, s])
}

fn tan<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let s = e.same(ops::math::SIN, operands);
    let c = e.same(ops::math::COS, operands);
    e.div(s, c)
}
