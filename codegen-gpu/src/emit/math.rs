//! `math`: functions that the shading languages have, and a few written out where they have none.

use super::arith::{float32, is_nan};
use super::module::{Ex, Kernel, Lowered, Shape};
use super::types;
use crate::error;
use monopour_ir::{Diagnostics, Op};
use naga::{BinaryOperator as B, MathFunction as M, UnaryOperator as U};

pub(super) fn emit(kernel: &mut Kernel, op: Op) -> Result<(), Diagnostics> {
    let shape = types::shape(kernel, op, op.result(0).ty())?;
    let operands: Vec<Lowered> = (0..op.num_operands()).map(|i| kernel.operand(op, i)).collect();
    let lowered = if let Some(fun) = builtin(op.name()) {
        // naga lets these pass, but SPIR-V's functions end at 32 bits.
        if shape.scalar == naga::Scalar::F64 && !has_64_bits(fun) {
            return Err(error::unsupported_type(
                op,
                op.result(0).ty(),
                "shading languages have this function up to 32 bits",
            ));
        }
        apply(kernel, &operands, |k, args| k.math(fun, args))
    } else if let Some(f) = written_out(op.name()).filter(|_| shape.scalar == naga::Scalar::F32) {
        kernel.map(operands[0], |k, a| f(k, a, shape))
    } else {
        return Err(error::unsupported_op(op));
    };
    kernel.set(op.result(0), lowered);
    Ok(())
}

fn apply(kernel: &mut Kernel, operands: &[Lowered], mut f: impl FnMut(&mut Kernel, &[Ex]) -> Ex) -> Lowered {
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
        "math.absf" | "math.absi" => M::Abs,
        "math.acos" => M::Acos,
        "math.acosh" => M::Acosh,
        "math.asin" => M::Asin,
        "math.asinh" => M::Asinh,
        "math.atan" => M::Atan,
        "math.atan2" => M::Atan2,
        "math.atanh" => M::Atanh,
        "math.ceil" => M::Ceil,
        "math.cos" => M::Cos,
        "math.cosh" => M::Cosh,
        "math.exp" => M::Exp,
        "math.exp2" => M::Exp2,
        "math.floor" => M::Floor,
        "math.fma" => M::Fma,
        "math.log" => M::Log,
        "math.log2" => M::Log2,
        "math.powf" => M::Pow,
        "math.roundeven" => M::Round,
        "math.rsqrt" => M::InverseSqrt,
        "math.sin" => M::Sin,
        "math.sinh" => M::Sinh,
        "math.sqrt" => M::Sqrt,
        "math.tan" => M::Tan,
        "math.tanh" => M::Tanh,
        "math.trunc" => M::Trunc,
        "math.ctpop" => M::CountOneBits,
        "math.ctlz" => M::CountLeadingZeros,
        "math.cttz" => M::CountTrailingZeros,
        _ => return None,
    })
}

fn has_64_bits(fun: M) -> bool {
    matches!(fun, M::Abs | M::Ceil | M::Floor | M::Fma | M::InverseSqrt | M::Round | M::Sqrt | M::Trunc)
}

/// Functions of one f32 that no shading language has.
fn written_out(name: &str) -> Option<fn(&mut Kernel, Ex, Shape) -> Ex> {
    Some(match name {
        "math.erf" => erf,
        "math.log1p" => log1p,
        "math.expm1" => expm1,
        "math.log10" => log10,
        "math.round" => round_half_away,
        "math.isnan" => is_nan,
        _ => return None,
    })
}

fn number(k: &mut Kernel, value: f32, shape: Shape) -> Ex {
    let e = float32(k, value);
    k.splat(e, shape.lanes)
}

/// Abramowitz and Stegun 7.1.26: absolute error at most 1.5e-7; near 0 the first terms of the series, for the relative error.
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

/// Kahan: the rounding error of `1 + x` cancels in the quotient.
fn log1p(k: &mut Kernel, x: Ex, shape: Shape) -> Ex {
    let one = number(k, 1.0, shape);
    let u = k.binary(B::Add, one, x);
    let log = k.math(M::Log, &[u]);
    let difference = k.binary(B::Subtract, u, one);
    let product = k.binary(B::Multiply, log, x);
    let quotient = k.binary(B::Divide, product, difference);
    let half = number(k, 0.5, shape);
    let magnitude = k.math(M::Abs, &[x]);
    let small = k.binary(B::Less, magnitude, half);
    let exact = k.binary(B::Equal, u, one);
    let result = k.select(small, quotient, log);
    k.select(exact, x, result)
}

/// Kahan, as in [`log1p`].
fn expm1(k: &mut Kernel, x: Ex, shape: Shape) -> Ex {
    let one = number(k, 1.0, shape);
    let u = k.math(M::Exp, &[x]);
    let difference = k.binary(B::Subtract, u, one);
    let log = k.math(M::Log, &[u]);
    let product = k.binary(B::Multiply, difference, x);
    let quotient = k.binary(B::Divide, product, log);
    let half = number(k, 0.5, shape);
    let magnitude = k.math(M::Abs, &[x]);
    let small = k.binary(B::Less, magnitude, half);
    let exact = k.binary(B::Equal, u, one);
    let result = k.select(small, quotient, difference);
    k.select(exact, x, result)
}

fn log10(k: &mut Kernel, x: Ex, shape: Shape) -> Ex {
    let log2 = k.math(M::Log2, &[x]);
    let factor = number(k, std::f32::consts::LOG10_2, shape);
    k.binary(B::Multiply, log2, factor)
}

fn round_half_away(k: &mut Kernel, x: Ex, shape: Shape) -> Ex {
    let truncated = k.math(M::Trunc, &[x]);
    let rest = k.binary(B::Subtract, x, truncated);
    let rest = k.math(M::Abs, &[rest]);
    let half = number(k, 0.5, shape);
    let up = k.binary(B::GreaterEqual, rest, half);
    let sign = k.math(M::Sign, &[x]);
    let moved = k.binary(B::Add, truncated, sign);
    k.select(up, moved, truncated)
}
