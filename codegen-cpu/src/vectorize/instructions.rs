//! Ops of f32 for which a target has instructions that generic code does not come to.
//!
//! ```text
//! exp(x)                n = rint(x log2 e), p = e^(x - n ln 2), vscalefps(p, n)      // AVX-512
//! x / d, one d for all  q = x (1 / d), (x - q d) (1 / d) + q                         // x86 with fused multiply-adds
//! ```
//!
//! Divisions by constants whose results are rounded have that form on every CPU with fused multiply-adds
//! ([`crate::quantisation`]), before there are vectors; here the divisor is known at run time, and may be of any size.
//! `vscalefps` overflows to infinity and underflows to 0 by itself; a division of 16 lanes takes ten times a multiplication.

use super::emit::{Emit, Width};
use monopour_ir::typed::arith::CmpFPredicate;
use monopour_ir::{Attr, Op, Type, Value, ops};
use monopour_program::CpuTarget;
use std::f64::consts::{LN_2, LOG2_E};

/// Features that `vscalefps` and look-ups need.
const FEATURES: [&str; 3] = ["avx512f", "avx512dq", "avx512vl"];
/// Lanes of a register of AVX-512.
const LANES: i64 = 16;
/// Least and largest argument of `exp`: beyond them the result is 0 or infinite.
const EXP_RANGE: [f64; 2] = [-105.0, 89.0];
/// `(e^r - 1 - r) / r^2` for |r| at most ln 2 / 2: minimax of the relative error of `e^r`, 3e-9.
const EXP: [f64; 5] = [0.499_999_94, 0.166_665_21, 0.041_668_389, 0.008_368_715_6, 0.001_381_460_2];
/// Added to a small number, it leaves the nearest integer in the last bits.
const TO_INTEGER: f64 = 12_582_912.0;
/// 2^-64: divisors below it are multiplied by `SCALE`, 2^64, as their reciprocals may be infinite.
const SMALL: f64 = 1.0 / SCALE;
const SCALE: f64 = 18_446_744_073_709_551_616.0;

/// The forms that a target has.
#[derive(Clone, Copy)]
pub(super) struct Forms {
    /// That of `exp`.
    has_scale: bool,
    /// Lanes of the registers for that of divisions.
    quotients: Option<Width>,
    /// Floats of a register that are put in any order by the numbers in another one.
    pub(super) permuted: Option<Width>,
}

impl Forms {
    pub(super) fn of(cpu: &CpuTarget) -> Self {
        let divides = cpu.has("fma") && cpu.arch == "x86_64";
        let floats = i64::from(cpu.vector_bits) / 32;
        let permuted = has(cpu) || cpu.vector_bits == 256 && cpu.has("avx2");
        Self { has_scale: has(cpu), quotients: divides.then_some(floats), permuted: permuted.then_some(floats) }
    }
}

/// Whether the target has AVX-512's.
pub(super) fn has(cpu: &CpuTarget) -> bool {
    cpu.vector_bits >= 512 && FEATURES.iter().all(|feature| cpu.has(feature))
}

/// The value of an op of the body, on operands that are vectors of `width` lanes, or scalars where all lanes have the same;
/// `None` where it has no form here.
pub(super) fn emit<'c>(e: &mut Emit<'c>, op: Op<'c>, operands: &[Value<'c>], width: Width) -> Option<Value<'c>> {
    let single = op.results().first()?.ty().float_width() == Some(32);
    let wide = e.forms.quotients.is_some_and(|lanes| width == lanes || width == 2 * lanes);
    match (op.name(), operands) {
        _ if !single => None,
        (ops::math::EXP, [x]) if e.forms.has_scale => exp(e, *x),
        (ops::arith::DIVF, [x, d]) if wide && x.ty().is_vector() && !d.ty().is_vector() => Some(divide(e, *x, *d)),
        _ => None,
    }
}

/// `e^x` to 0.9 units in the last place. Few lanes are computed as more of them, so that each has the same bits.
fn exp<'c>(e: &mut Emit<'c>, x: Value<'c>) -> Option<Value<'c>> {
    let lanes = x.ty().as_vector().map_or(1, |v| v.shape[0]);
    if lanes < 4 {
        let all =
            (0..4).map(|lane| if lanes == 1 { x } else { e.lanes(x, lane.min(lanes - 1), 1) }).collect::<Vec<_>>();
        let all = e.op(ops::vector::FROM_ELEMENTS, &all, Type::vector(&[4], x.ty().element()));
        let power = exp(e, all)?;
        return Some(e.lanes(power, 0, lanes));
    }
    if !matches!(lanes, 4 | 8 | 16 | 32) {
        return None;
    }
    // A NaN is the second operand, which the comparison picks.
    let [low, high] = EXP_RANGE.map(|bound| constant(e, bound, lanes));
    let x = greater_or_second(e, low, x, false);
    let x = greater_or_second(e, high, x, true);
    let (log2_e, to_integer) = (constant(e, LOG2_E, lanes), constant(e, TO_INTEGER, lanes));
    let shifted = e.op(ops::math::FMA, &[x, log2_e, to_integer], x.ty());
    let n = e.op(ops::arith::SUBF, &[shifted, to_integer], x.ty());
    let first = f64::from(LN_2 as f32);
    let rest = [first, LN_2 - first].into_iter().fold(x, |rest, part| {
        let part = constant(e, -part, lanes);
        e.op(ops::math::FMA, &[n, part, rest], x.ty())
    });
    let last = constant(e, EXP[4], lanes);
    let power = EXP[..4].iter().rev().chain(&[1.0, 1.0]).fold(last, |sum, term| {
        let term = constant(e, *term, lanes);
        e.op(ops::math::FMA, &[sum, rest, term], x.ty())
    });
    Some(scale(e, power, n, lanes))
}

fn constant<'c>(e: &mut Emit<'c>, value: f64, lanes: Width) -> Value<'c> {
    let ty = Type::f32(e.cx);
    e.constant(Attr::float(ty, value), ty, lanes)
}

/// The greater (or, if `less`, the lesser) of two values; the second if either is NaN.
fn greater_or_second<'c>(e: &mut Emit<'c>, a: Value<'c>, b: Value<'c>, less: bool) -> Value<'c> {
    let picks = e.compare(if less { CmpFPredicate::Olt } else { CmpFPredicate::Ogt }, a, b);
    e.op(ops::arith::SELECT, &[picks, a, b], a.ty())
}

/// `value 2^power`, a register at a time.
fn scale<'c>(e: &mut Emit<'c>, value: Value<'c>, power: Value<'c>, lanes: Width) -> Value<'c> {
    if lanes > LANES {
        let parts = [0, LANES].map(|from| {
            let (value, power) = (e.lanes(value, from, LANES), e.lanes(power, from, LANES));
            scale(e, value, power, LANES)
        });
        return e.shuffle(parts[0], parts[1], &(0..lanes).collect::<Vec<_>>());
    }
    let (mask, rounding) = (Type::integer(e.cx, lanes.max(8) as u32), Type::integer(e.cx, 32));
    let all = e.constant(Attr::int(mask, -1), mask, 1);
    let name = format!("llvm.x86.avx512.mask.scalef.ps.{}", 32 * lanes);
    if lanes < LANES {
        return e.intrinsic(&name, &[value, power, value, all], value.ty());
    }
    // 4: as the control register says.
    let current = e.constant(Attr::int(rounding, 4), rounding, 1);
    e.intrinsic(&name, &[value, power, value, all, current], value.ty())
}

/// `x / d`: a product with the reciprocal, corrected by its remainder. Rounded as a division, but for numerators below 1e-30,
/// whose remainders underflow (1 unit in the last place).
fn divide<'c>(e: &mut Emit<'c>, x: Value<'c>, d: Value<'c>) -> Value<'c> {
    let (ty, scalar) = (x.ty(), d.ty());
    let lanes = ty.as_vector().expect("invariant: the numerator is a vector").shape[0];
    let [small, zero, one, scale] = [SMALL, 0.0, 1.0, SCALE].map(|value| constant(e, value, 1));
    let size = e.op(ops::math::ABSF, &[d], scalar);
    let is_small = e.compare(CmpFPredicate::Olt, size, small);
    let factor = e.op(ops::arith::SELECT, &[is_small, scale, one], scalar);
    // The divisor is positive: else the correction of a zero would lose its sign.
    let is_negative = e.compare(CmpFPredicate::Olt, d, zero);
    let negated = e.op(ops::arith::NEGF, &[factor], scalar);
    let factor = e.op(ops::arith::SELECT, &[is_negative, negated, factor], scalar);
    let d = e.op(ops::arith::MULF, &[d, factor], scalar);
    let reciprocal = e.op(ops::arith::DIVF, &[one, d], scalar);
    let [factor, d, reciprocal] = [factor, d, reciprocal].map(|v| e.splat(v, lanes));
    let x = e.op(ops::arith::MULF, &[x, factor], ty);
    let quotient = e.op(ops::arith::MULF, &[x, reciprocal], ty);
    let excess = e.op(ops::arith::NEGF, &[x], ty);
    let excess = e.op(ops::math::FMA, &[quotient, d, excess], ty);
    let less = e.op(ops::arith::NEGF, &[excess], ty);
    let corrected = e.op(ops::math::FMA, &[less, reciprocal, quotient], ty);
    // Of an infinite quotient, or one by infinity, there is no remainder.
    let is_number = e.compare(CmpFPredicate::Ord, corrected, corrected);
    e.op(ops::arith::SELECT, &[is_number, corrected, quotient], ty)
}
