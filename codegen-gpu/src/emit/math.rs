//! `math`: functions of the shading languages, and expansions of others.

use super::arith::{float32, is_nan};
use super::module::{Ex, Kernel, Lowered, Shape};
use super::short_float::ShortFloat;
use super::{special, types};
use crate::error;
use monopour_ir::ops;
use monopour_ir::{Diagnostics, Op};
use monopour_program::GpuFeature;
use naga::{BinaryOperator as B, Literal, MathFunction as M, UnaryOperator as U};

pub(super) fn emit<'c>(kernel: &mut Kernel<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    let result = types::shape(kernel, op, op.result(0).ty())?;
    let mut operands: Vec<Lowered> = (0..op.num_operands()).map(|i| kernel.operand(op, i)).collect();
    // Predicates have bool results; their shape is that of the operand.
    let mut shape = types::shape(kernel, op, op.operand(0).ty()).unwrap_or(result);
    let is_half = shape.scalar == naga::Scalar::F16 && !is_exact(op.name());
    if is_half {
        // The functions of 16 bits are allowed errors of many units in the last place; those of 32 bits, rounded, are not off by two.
        shape.scalar = naga::Scalar::F32;
        for (i, operand) in operands.iter_mut().enumerate() {
            if op.operand(i).ty().is_float() || op.operand(i).ty().is_vector() {
                *operand = kernel.map(*operand, |k, a| k.convert(a, naga::ScalarKind::Float, 4));
            }
        }
    }
    let lowered = if let Some(f) = written_out(op.name(), shape) {
        kernel.map(operands[0], |k, a| f(k, a, shape))
    } else if let Some(fun) = builtin(op.name()) {
        // naga accepts these in f64, but SPIR-V's functions end at 32 bits.
        if shape.scalar == naga::Scalar::F64 && !has_64_bits(fun) {
            return Err(error::unsupported_type(
                op,
                op.result(0).ty(),
                "shading languages have this function up to 32 bits",
            ));
        }
        apply(kernel, &operands, |k, args| k.math(fun, args))
    } else if let Some(lowered) = several_operands(kernel, op, &operands, shape) {
        lowered
    } else {
        return Err(error::unsupported_op(op));
    };
    let lowered = if shape.scalar == naga::Scalar::F32 && special::is_corrected(op.name()) {
        let last = operands.len() - 1;
        apply(kernel, &[&operands[..], &[lowered]].concat(), |k, args| {
            special::corrected(k, op.name(), (args[0], args[last]), args[last + 1], shape)
        })
    } else {
        lowered
    };
    let narrows = is_half && result.scalar == naga::Scalar::F16;
    let lowered = if narrows { kernel.map(lowered, |k, a| k.convert(a, naga::ScalarKind::Float, 2)) } else { lowered };
    let lowered = match ShortFloat::of(kernel, op.result(0).ty()).filter(|_| !is_exact(op.name())) {
        Some(short) => kernel.map(lowered, |k, a| short.round(k, a, result.lanes)),
        None => lowered,
    };
    kernel.set(op.result(0), lowered);
    Ok(())
}

/// Functions without rounding error.
fn is_exact(name: &str) -> bool {
    matches!(name, ops::math::ABSF | ops::math::CEIL | ops::math::FLOOR | ops::math::TRUNC | ops::math::ROUNDEVEN)
}

fn apply<'c>(
    kernel: &mut Kernel<'c>,
    operands: &[Lowered],
    mut f: impl FnMut(&mut Kernel<'c>, &[Ex]) -> Ex,
) -> Lowered {
    let plane = |p: usize| -> Vec<Ex> {
        operands
            .iter()
            .map(|o| match o {
                Lowered::One(e) => *e,
                Lowered::Planes(e) => e[p],
            })
            .collect()
    };
    match operands[0] {
        Lowered::One(_) => Lowered::One(f(kernel, &plane(0))),
        Lowered::Planes(_) => Lowered::Planes([f(kernel, &plane(0)), f(kernel, &plane(1))]),
    }
}

fn builtin(name: &str) -> Option<M> {
    Some(match name {
        ops::math::ABSF => M::Abs,
        ops::math::ACOS => M::Acos,
        ops::math::ACOSH => M::Acosh,
        ops::math::ASIN => M::Asin,
        ops::math::ASINH => M::Asinh,
        ops::math::ATAN => M::Atan,
        ops::math::ATAN2 => M::Atan2,
        ops::math::ATANH => M::Atanh,
        ops::math::CEIL => M::Ceil,
        ops::math::COS => M::Cos,
        ops::math::COSH => M::Cosh,
        ops::math::EXP => M::Exp,
        ops::math::EXP2 => M::Exp2,
        ops::math::FLOOR => M::Floor,
        ops::math::FMA => M::Fma,
        ops::math::ROUNDEVEN => M::Round,
        ops::math::RSQRT => M::InverseSqrt,
        ops::math::SIN => M::Sin,
        ops::math::SINH => M::Sinh,
        ops::math::SQRT => M::Sqrt,
        ops::math::TAN => M::Tan,
        ops::math::TANH => M::Tanh,
        ops::math::TRUNC => M::Trunc,
        _ => return None,
    })
}

fn has_64_bits(fun: M) -> bool {
    matches!(fun, M::Abs | M::Ceil | M::Floor | M::Fma | M::InverseSqrt | M::Round | M::Sqrt | M::Trunc)
}

/// Functions of one f32 or f64 that no shading language has, or that drivers compute inaccurately.
fn written_out(name: &str, shape: Shape) -> Option<fn(&mut Kernel, Ex, Shape) -> Ex> {
    Some(match name {
        ops::math::ROUND if shape.scalar.width > 2 => round_half_away,
        // In f64 llvmpipe loses the sign of a zero on CPUs without AVX-512, and rounds some ties to odd.
        ops::math::ROUNDEVEN if shape.scalar.width == 8 => round_even_double,
        ops::math::TRUNC if shape.scalar.width == 8 => truncate_double,
        ops::math::ISNAN if shape.scalar.width > 2 => is_nan,
        ops::math::ISINF if shape.scalar.width > 2 => is_infinite,
        ops::math::ISFINITE if shape.scalar.width > 2 => is_finite,
        _ if shape.scalar != naga::Scalar::F32 => return None,
        ops::math::ERF => erf,
        ops::math::LOG => natural_logarithm,
        ops::math::LOG2 => log2,
        ops::math::LOG1P => log1p,
        ops::math::EXPM1 => expm1,
        ops::math::LOG10 => log10,
        ops::math::ERFC => erfc,
        ops::math::CBRT => cbrt,
        ops::math::ASIN => asin,
        ops::math::ACOS => acos,
        _ => return None,
    })
}

/// Functions of several floats: all of f32, and those of f64 without rounding error.
fn several_operands<'c>(kernel: &mut Kernel<'c>, op: Op<'c>, operands: &[Lowered], shape: Shape) -> Option<Lowered> {
    if shape.scalar.kind != naga::ScalarKind::Float || shape.scalar.width < 4 {
        return None;
    }
    match op.name() {
        ops::math::POWF if shape.scalar == naga::Scalar::F32 => Some(match whole_exponent(op) {
            Some(exponent) => kernel.map(operands[0], |k, x| repeated_product(k, x, exponent)),
            None => kernel.zip(operands[0], operands[1], |k, x, y| powf(k, x, y, shape)),
        }),
        ops::math::COPYSIGN => Some(kernel.zip(operands[0], operands[1], |k, x, y| copysign(k, x, y, shape))),
        ops::math::CLAMPF => Some(apply(kernel, operands, |k, args| {
            let low = k.math(M::Max, &[args[0], args[1]]);
            k.math(M::Min, &[low, args[2]])
        })),
        _ => None,
    }
}

/// A constant exponent of 1 to 4.
fn whole_exponent(op: Op) -> Option<u32> {
    let constant = op.operand(1).defining_op().filter(|d| d.is(ops::arith::CONSTANT))?.attr("value")?;
    let value = constant.splat_value().unwrap_or(constant).as_float()?;
    [1, 2, 3, 4].into_iter().find(|e| f64::from(*e) == value)
}

fn repeated_product(k: &mut Kernel, x: Ex, exponent: u32) -> Ex {
    (1..exponent).fold(x, |product, _| k.binary(B::Multiply, product, x))
}

/// The languages' `pow` is undefined for negative bases; this one follows C, but for NaN and where the result is 1 (`special.rs`).
fn powf(k: &mut Kernel, x: Ex, y: Ex, shape: Shape) -> Ex {
    let (zero, half) = (number(k, 0.0, shape), number(k, 0.5, shape));
    let magnitude = k.math(M::Abs, &[x]);
    let log = log2(k, magnitude, shape);
    let exponent = k.binary(B::Multiply, y, log);
    let power = k.math(M::Exp2, &[exponent]);
    // Drivers that see a `pow` in this take every power of 0 for 0.
    let (no_bits, least) = (k.u32(0), number(k, f32::INFINITY, shape));
    let (no_bits, bits) = (k.splat(no_bits, shape.lanes), magnitude_bits(k, x, shape));
    let is_zero = k.binary(B::Equal, bits, no_bits);
    let inverts = k.binary(B::Less, y, zero);
    let of_zero = k.select(inverts, least, zero);
    let power = k.select(is_zero, of_zero, power);
    let truncated = k.math(M::Trunc, &[y]);
    let is_whole = k.binary(B::Equal, truncated, y);
    let halved = k.binary(B::Multiply, y, half);
    let floor = k.math(M::Floor, &[halved]);
    let is_even = k.binary(B::Equal, floor, halved);
    let minus = k.unary(U::Negate, power);
    let signed = k.select(is_even, power, minus);
    let undefined = number(k, f32::NAN, shape);
    let endless = is_infinite(k, x, shape);
    let has_fractions = k.binary(B::InclusiveOr, endless, is_zero);
    let of_fraction = k.select(has_fractions, power, undefined);
    let of_negative = k.select(is_whole, signed, of_fraction);
    let is_negative = has_sign(k, x, shape);
    k.select(is_negative, of_negative, power)
}

/// Whether the sign bit of an f32 is set: that of a zero, too.
fn has_sign(k: &mut Kernel, x: Ex, shape: Shape) -> Ex {
    let (bits, zero) = (k.bitcast(x, naga::ScalarKind::Sint), k.i32(0));
    let zero = k.splat(zero, shape.lanes);
    k.binary(B::Less, bits, zero)
}

fn masked(k: &mut Kernel, x: Ex, mask: u32, shape: Shape) -> Ex {
    let bits = k.bitcast(x, naga::ScalarKind::Uint);
    let mask = k.u32(mask);
    let mask = k.splat(mask, shape.lanes);
    k.binary(B::And, bits, mask)
}

/// The bits without the sign, as an unsigned number.
pub(super) fn magnitude_bits(k: &mut Kernel, x: Ex, shape: Shape) -> Ex {
    if shape.scalar.width == 4 { masked(k, x, 0x7fff_ffff, shape) } else { masked_double(k, x, u64::MAX >> 1, shape) }
}

fn masked_double(k: &mut Kernel, x: Ex, mask: u64, shape: Shape) -> Ex {
    k.features.insert(GpuFeature::Int64);
    let bits = k.bitcast(x, naga::ScalarKind::Uint);
    let mask = k.literal(Literal::U64(mask));
    let mask = k.splat(mask, shape.lanes);
    k.binary(B::And, bits, mask)
}

pub(super) fn copysign(k: &mut Kernel, x: Ex, y: Ex, shape: Shape) -> Ex {
    if shape.scalar.width == 8 {
        let (magnitude, sign) = (magnitude_bits(k, x, shape), masked_double(k, y, 1 << 63, shape));
        let bits = k.binary(B::InclusiveOr, magnitude, sign);
        return k.bitcast(bits, naga::ScalarKind::Float);
    }
    let (magnitude, sign) = (masked(k, x, 0x7fff_ffff, shape), masked(k, y, 0x8000_0000, shape));
    let bits = k.binary(B::InclusiveOr, magnitude, sign);
    k.bitcast(bits, naga::ScalarKind::Float)
}

/// The magnitude's bits compared with those of infinity.
fn compare_with_infinity(k: &mut Kernel, x: Ex, operator: B, shape: Shape) -> Ex {
    let magnitude = magnitude_bits(k, x, shape);
    let wide = shape.scalar.width == 8;
    let infinity = if wide { k.literal(Literal::U64(f64::INFINITY.to_bits())) } else { k.u32(f32::INFINITY.to_bits()) };
    let infinity = k.splat(infinity, shape.lanes);
    k.binary(operator, magnitude, infinity)
}

pub(super) fn is_infinite(k: &mut Kernel, x: Ex, shape: Shape) -> Ex {
    compare_with_infinity(k, x, B::Equal, shape)
}

fn is_finite(k: &mut Kernel, x: Ex, shape: Shape) -> Ex {
    compare_with_infinity(k, x, B::Less, shape)
}

fn erfc(k: &mut Kernel, x: Ex, shape: Shape) -> Ex {
    let one = number(k, 1.0, shape);
    let erf = erf(k, x, shape);
    k.binary(B::Subtract, one, erf)
}

/// The root of the magnitude by logarithm, then one step of Newton's method; 0 has no logarithm.
fn cbrt(k: &mut Kernel, x: Ex, shape: Shape) -> Ex {
    let third = number(k, 1.0 / 3.0, shape);
    let magnitude = k.math(M::Abs, &[x]);
    let log = log2(k, magnitude, shape);
    let exponent = k.binary(B::Multiply, log, third);
    let guess = k.math(M::Exp2, &[exponent]);
    let square = k.binary(B::Multiply, guess, guess);
    let quotient = k.binary(B::Divide, magnitude, square);
    let error = k.binary(B::Subtract, quotient, guess);
    let correction = k.binary(B::Multiply, error, third);
    let root = k.binary(B::Add, guess, correction);
    let zero = number(k, 0.0, shape);
    let is_zero = k.binary(B::Equal, x, zero);
    let root = k.select(is_zero, zero, root);
    copysign(k, root, x, shape)
}

pub(super) fn number(k: &mut Kernel, value: f32, shape: Shape) -> Ex {
    let wide = shape.scalar.width == 8;
    let e = if wide { k.literal(Literal::F64(f64::from(value))) } else { float32(k, value) };
    k.splat(e, shape.lanes)
}

/// Abramowitz and Stegun 7.1.26: absolute error at most 1.5e-7; near 0 the first terms of the series, for the relative
/// error.
fn erf(k: &mut Kernel, x: Ex, shape: Shape) -> Ex {
    let one = number(k, 1.0, shape);
    let magnitude = k.math(M::Abs, &[x]);
    let p = number(k, 0.327_591_1, shape);
    let t = k.binary(B::Multiply, p, magnitude);
    let t = k.binary(B::Add, one, t);
    let t = k.binary(B::Divide, one, t);
    let poly = horner(k, t, &[1.061_405_4, -1.453_152, 1.421_413_8, -0.284_496_72, 0.254_829_6], shape);
    let poly = k.binary(B::Multiply, poly, t);
    let square = k.binary(B::Multiply, x, x);
    let negated = k.unary(U::Negate, square);
    let gauss = k.math(M::Exp, &[negated]);
    let tail = k.binary(B::Multiply, poly, gauss);
    let large = k.binary(B::Subtract, one, tail);
    let minus = k.unary(U::Negate, large);
    let zero = number(k, 0.0, shape);
    let negative = k.binary(B::Less, x, zero);
    let large = k.select(negative, minus, large);
    let series = horner(k, square, &[0.112_837_92, -0.376_126_4, std::f32::consts::FRAC_2_SQRT_PI], shape);
    let small = k.binary(B::Multiply, series, x);
    let bound = number(k, 0.05, shape);
    let is_small = k.binary(B::Less, magnitude, bound);
    k.select(is_small, small, large)
}

/// Coefficients from the highest power down.
fn horner(k: &mut Kernel, x: Ex, coefficients: &[f32], shape: Shape) -> Ex {
    let mut sum = number(k, coefficients[0], shape);
    for c in &coefficients[1..] {
        let c = number(k, *c, shape);
        sum = k.binary(B::Multiply, sum, x);
        sum = k.binary(B::Add, sum, c);
    }
    sum
}

/// Near 0 the series of `2 artanh(x / (2 + x))`: drivers' logarithms have an absolute error around 1.
fn log1p(k: &mut Kernel, x: Ex, shape: Shape) -> Ex {
    let (one, two) = (number(k, 1.0, shape), number(k, 2.0, shape));
    let denominator = k.binary(B::Add, x, two);
    let z = k.binary(B::Divide, x, denominator);
    let square = k.binary(B::Multiply, z, z);
    let coefficients = [13.0f32, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0].map(|odd| 2.0 / odd);
    let series = horner(k, square, &coefficients, shape);
    let near = k.binary(B::Multiply, series, z);
    let u = k.binary(B::Add, one, x);
    let far = k.math(M::Log, &[u]);
    near_zero(k, x, near, far, shape)
}

/// Near 0 the Taylor series, elsewhere the difference.
fn expm1(k: &mut Kernel, x: Ex, shape: Shape) -> Ex {
    let factorials = [362_880.0f32, 40_320.0, 5_040.0, 720.0, 120.0, 24.0, 6.0, 2.0, 1.0];
    let series = horner(k, x, &factorials.map(|f| 1.0 / f), shape);
    let near = k.binary(B::Multiply, series, x);
    let one = number(k, 1.0, shape);
    let exp = k.math(M::Exp, &[x]);
    let far = k.binary(B::Subtract, exp, one);
    near_zero(k, x, near, far, shape)
}

/// `near` for magnitudes below one half, else `far`.
fn near_zero(k: &mut Kernel, x: Ex, near: Ex, far: Ex, shape: Shape) -> Ex {
    let half = number(k, 0.5, shape);
    let magnitude = k.math(M::Abs, &[x]);
    let is_near = k.binary(B::Less, magnitude, half);
    k.select(is_near, near, far)
}

/// `sqrt(1 - x^2)`, without cancellation near 1.
fn cofunction(k: &mut Kernel, x: Ex, shape: Shape) -> Ex {
    let one = number(k, 1.0, shape);
    let (below, above) = (k.binary(B::Subtract, one, x), k.binary(B::Add, one, x));
    let square = k.binary(B::Multiply, below, above);
    k.math(M::Sqrt, &[square])
}

/// Mesa's own has an absolute error of 3e-4.
fn asin(k: &mut Kernel, x: Ex, shape: Shape) -> Ex {
    let cosine = cofunction(k, x, shape);
    k.math(M::Atan2, &[x, cosine])
}

fn acos(k: &mut Kernel, x: Ex, shape: Shape) -> Ex {
    let sine = cofunction(k, x, shape);
    k.math(M::Atan2, &[sine, x])
}

fn natural_logarithm(k: &mut Kernel, x: Ex, shape: Shape) -> Ex {
    logarithm(k, x, (M::Log, std::f32::consts::LN_2), shape)
}

fn log2(k: &mut Kernel, x: Ex, shape: Shape) -> Ex {
    logarithm(k, x, (M::Log2, 1.0), shape)
}

fn log10(k: &mut Kernel, x: Ex, shape: Shape) -> Ex {
    let log2 = log2(k, x, shape);
    let factor = number(k, std::f32::consts::LOG10_2, shape);
    k.binary(B::Multiply, log2, factor)
}

/// The driver's logarithm, and that of 2 in the same base. Drivers flush denormals, or take their exponent for that of normal
/// numbers: these are whole multiples of 2^-149, by their bits, and so is 0.
fn logarithm(k: &mut Kernel, x: Ex, (fun, of_two): (M, f32), shape: Shape) -> Ex {
    let (bits, least) = (k.bitcast(x, naga::ScalarKind::Uint), k.u32(f32::MIN_POSITIVE.to_bits()));
    let least = k.splat(least, shape.lanes);
    let is_small = k.binary(B::Less, bits, least);
    let steps = k.bitcast(x, naga::ScalarKind::Sint);
    let steps = k.convert(steps, naga::ScalarKind::Float, 4);
    let scaled = k.select(is_small, steps, x);
    let log = k.math(fun, &[scaled]);
    let scale = number(k, 149.0 * of_two, shape);
    let of_small = k.binary(B::Subtract, log, scale);
    k.select(is_small, of_small, log)
}

/// Half to even: a tie moves if what is below it is odd.
fn round_even_double(k: &mut Kernel, x: Ex, shape: Shape) -> Ex {
    let truncated = k.math(M::Trunc, &[x]);
    let rest = k.binary(B::Subtract, x, truncated);
    let rest = k.math(M::Abs, &[rest]);
    let half = number(k, 0.5, shape);
    let sign = k.math(M::Sign, &[x]);
    let moved = k.binary(B::Add, truncated, sign);
    let halved = k.binary(B::Multiply, truncated, half);
    let whole = k.math(M::Trunc, &[halved]);
    let is_odd = k.binary(B::NotEqual, halved, whole);
    let of_tie = k.select(is_odd, moved, truncated);
    let is_above = k.binary(B::Greater, rest, half);
    let of_rest = k.select(is_above, moved, truncated);
    let is_tie = k.binary(B::Equal, rest, half);
    let rounded = k.select(is_tie, of_tie, of_rest);
    copysign(k, rounded, x, shape)
}

fn truncate_double(k: &mut Kernel, x: Ex, shape: Shape) -> Ex {
    let truncated = k.math(M::Trunc, &[x]);
    copysign(k, truncated, x, shape)
}

fn round_half_away(k: &mut Kernel, x: Ex, shape: Shape) -> Ex {
    let truncated = k.math(M::Trunc, &[x]);
    let rest = k.binary(B::Subtract, x, truncated);
    let rest = k.math(M::Abs, &[rest]);
    let half = number(k, 0.5, shape);
    let up = k.binary(B::GreaterEqual, rest, half);
    let sign = k.math(M::Sign, &[x]);
    let moved = k.binary(B::Add, truncated, sign);
    let rounded = k.select(up, moved, truncated);
    // As for truncation itself: see `written_out`.
    if shape.scalar.width == 8 { copysign(k, rounded, x, shape) } else { rounded }
}
