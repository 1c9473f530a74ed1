//! Inverse circular functions of f64, and `atan2` of f32, all by way of the angle of a ratio.

use crate::emit::Emit;
use monopour_ir::Value;
use monopour_ir::ops;
use monopour_ir::typed::arith::CmpFPredicate;
use std::f64::consts::{FRAC_PI_2, PI};

/// Terms of the series of `atan` up to tan(pi / 16), whose square is below 0.04.
const TERMS: u32 = 13;

/// `atan a` for `a` of 0 and above, infinity included.
fn angle<'c>(e: &mut Emit<'c, '_>, a: Value<'c>) -> Value<'c> {
    let one = e.c(1.0);
    let steep = e.compare(CmpFPredicate::Ogt, a, one);
    let inverse = e.div(one, a);
    let ratio = e.select(steep, inverse, a);
    // The tangent of half the angle, twice: 1 becomes tan(pi / 16).
    let half = half_angle(e, ratio);
    let quarter = half_angle(e, half);
    let square = e.mul(quarter, quarter);
    let coefficients: Vec<f64> = (1..TERMS).map(|n| (-1f64).powi(n as i32) / f64::from(2 * n + 1)).collect();
    let p = e.polynomial(square, &coefficients);
    let cube = e.mul(square, quarter);
    let series = e.same(ops::math::FMA, &[cube, p, quarter]);
    let flat = e.scale(series, 4.0);
    let right = e.c(FRAC_PI_2);
    let rest = e.sub(right, flat);
    e.select(steep, rest, flat)
}

/// `tan(v / 2)` of `tan v`.
fn half_angle<'c>(e: &mut Emit<'c, '_>, tangent: Value<'c>) -> Value<'c> {
    let square = e.mul(tangent, tangent);
    let above = e.plus(square, 1.0);
    let root = e.same(ops::math::SQRT, &[above]);
    let denominator = e.plus(root, 1.0);
    e.div(tangent, denominator)
}

pub(crate) fn atan<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let a = e.abs(operands[0]);
    let value = angle(e, a);
    e.copysign(value, operands[0])
}

pub(crate) fn atan2<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    turned(e, operands, angle)
}

/// Of f32: upstream's knows neither the sign of a zero nor two infinities.
pub(crate) fn atan2_single<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    turned(e, operands, |e, ratio| e.same(ops::math::ATAN, &[ratio]))
}

/// `atan2` by the angle of a ratio of 0 and above.
fn turned<'c>(
    e: &mut Emit<'c, '_>,
    operands: &[Value<'c>],
    angle: fn(&mut Emit<'c, '_>, Value<'c>) -> Value<'c>,
) -> Value<'c> {
    let (y, x) = (operands[0], operands[1]);
    let (b, a) = (e.abs(y), e.abs(x));
    let (zero, one) = (e.c(0.0), e.c(1.0));
    let ratio = e.div(b, a);
    // 0 / 0 and infinity / infinity have no ratio: the angle is 0 and pi / 4.
    let equal = e.compare(CmpFPredicate::Oeq, a, b);
    let empty = e.compare(CmpFPredicate::Oeq, b, zero);
    let diagonal = e.select(empty, zero, one);
    let ratio = e.select(equal, diagonal, ratio);
    let right = angle(e, ratio);
    let half_turn = e.c(PI);
    let left = e.sub(half_turn, right);
    let is_left = e.sign_bit(x);
    let value = e.select(is_left, left, right);
    e.copysign(value, y)
}

/// `sqrt(1 - x^2)`, without cancellation near 1; NaN beyond.
fn cofunction<'c>(e: &mut Emit<'c, '_>, x: Value<'c>) -> Value<'c> {
    let one = e.c(1.0);
    let (below, above) = (e.sub(one, x), e.add(one, x));
    let square = e.mul(below, above);
    e.same(ops::math::SQRT, &[square])
}

pub(crate) fn asin<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let cosine = cofunction(e, operands[0]);
    e.same(ops::math::ATAN2, &[operands[0], cosine])
}

pub(crate) fn acos<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let sine = cofunction(e, operands[0]);
    e.same(ops::math::ATAN2, &[sine, operands[0]])
}
