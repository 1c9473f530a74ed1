//! Scalar semantics of arith and math: floats as f64, integers exact and wrapping at their width.

use crate::host_tensor::{Dtype, decode_float, encode_float, wrap};
use monopour_ir::ops;
use monopour_ir::typed::arith::{CmpFPredicate, CmpIPredicate};
use monopour_ir::{Op, Type};

/// A scalar value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Scalar {
    /// Of a float type.
    Float(f64),
    /// Of an integer type or index, wrapped to its width.
    Int(i64),
}

impl Scalar {
    pub(super) fn float(self) -> f64 {
        match self {
            Scalar::Float(v) => v,
            Scalar::Int(v) => v as f64,
        }
    }
    pub(super) fn int(self) -> i64 {
        match self {
            Scalar::Int(v) => v,
            Scalar::Float(v) => v as i64,
        }
    }
}

/// An op of arith or math with its semantics resolved.
#[derive(Clone, Copy)]
pub(super) enum ScalarOp {
    Float1(fn(f64) -> f64),
    Float2(fn(f64, f64) -> f64),
    Float3(fn(f64, f64, f64) -> f64),
    /// Takes the operands as signed and the width; `None` is undefined behaviour.
    Int2(fn(i64, i64, u32) -> Option<i64>, u32),
    Int1(fn(i64, u32) -> i64, u32),
    FloatTest(fn(f64) -> bool),
    CompareFloat(CmpFPredicate),
    CompareInt(CmpIPredicate, u32),
    Select,
    PowInt,
    /// From an element type to another.
    Convert(Conversion, Dtype, Dtype),
}

#[derive(Clone, Copy)]
pub(super) enum Conversion {
    Float,
    SignedToFloat,
    UnsignedToFloat,
    FloatToSigned,
    FloatToUnsigned,
    SignExtend,
    ZeroExtend,
    Bits,
}

/// The element type of a type, if it is one of ours.
pub(super) fn dtype_of(ty: Type) -> Option<Dtype> {
    let element = ty.element();
    if element.is_index() {
        return Some(Dtype::Index);
    }
    if let Some(bits) = element.integer_width() {
        let dtype = if element.to_string().starts_with('u') { Dtype::Unsigned(bits) } else { Dtype::Int(bits) };
        return (1..=64).contains(&bits).then_some(dtype);
    }
    match element.to_string().as_str() {
        "f16" => Some(Dtype::F16),
        "bf16" => Some(Dtype::Bf16),
        "f32" => Some(Dtype::F32),
        "f64" => Some(Dtype::F64),
        _ => None,
    }
}

impl ScalarOp {
    /// The semantics of a result of an op, or `None` for one that is not of arith or math or is not covered.
    pub(super) fn of(op: Op, result: usize) -> Option<Self> {
        let name = op.name();
        if !matches!(op.dialect(), "arith" | "math") || result >= op.num_results() || op.num_operands() == 0 {
            return None;
        }
        if op.is(ops::math::SINCOS) {
            return Some(ScalarOp::Float1(if result == 0 { f64::sin } else { f64::cos }));
        }
        let from = dtype_of(op.operand(0).ty())?;
        if op.is(ops::arith::ADDUI_EXTENDED) {
            let width = from.int_width()?;
            let sum: fn(i64, i64, u32) -> Option<i64> = |a, b, _| Some(a.wrapping_add(b));
            let overflow: fn(i64, i64, u32) -> Option<i64> =
                |a, b, w| Some(i64::from(unsigned(a.wrapping_add(b), w) < unsigned(a, w)));
            return Some(ScalarOp::Int2(if result == 0 { sum } else { overflow }, width));
        }
        let to = dtype_of(op.result(0).ty())?;
        float_op(name).or_else(|| int_op(name, from.int_width()?)).or_else(|| other_op(op, name, from, to))
    }

    /// Applies the op; `None` is undefined behaviour of the program.
    pub(super) fn apply(self, a: Scalar, b: Scalar, c: Scalar) -> Option<Scalar> {
        Some(match self {
            ScalarOp::Float1(f) => Scalar::Float(f(a.float())),
            ScalarOp::Float2(f) => Scalar::Float(f(a.float(), b.float())),
            ScalarOp::Float3(f) => Scalar::Float(f(a.float(), b.float(), c.float())),
            ScalarOp::Int2(f, width) => Scalar::Int(wrap(f(signed(a, width), signed(b, width), width)?, width)),
            ScalarOp::Int1(f, width) => Scalar::Int(wrap(f(signed(a, width), width), width)),
            ScalarOp::FloatTest(f) => Scalar::Int(i64::from(f(a.float()))),
            ScalarOp::CompareFloat(p) => Scalar::Int(i64::from(compare_float(p, a.float(), b.float()))),
            ScalarOp::CompareInt(p, width) => Scalar::Int(i64::from(p.holds(signed(a, width), signed(b, width)))),
            ScalarOp::Select => {
                if a.int() & 1 == 1 {
                    b
                } else {
                    c
                }
            }
            ScalarOp::PowInt => Scalar::Float(a.float().powi(i32::try_from(b.int()).ok()?)),
            ScalarOp::Convert(how, from, to) => convert(how, from, to, a),
        })
    }
}

/// The result in a kernel of a division that arith leaves undefined: by 1.
pub(super) fn divided_by_one(op: Op, dividend: Scalar) -> Option<Scalar> {
    match op.name() {
        ops::arith::DIVSI
        | ops::arith::FLOORDIVSI
        | ops::arith::CEILDIVSI
        | ops::arith::DIVUI
        | ops::arith::CEILDIVUI => Some(dividend),
        ops::arith::REMSI | ops::arith::REMUI => Some(Scalar::Int(0)),
        _ => None,
    }
}

/// Signed reading: an `i1` that is set counts as -1.
fn signed(v: Scalar, width: u32) -> i64 {
    if width == 1 { -(v.int() & 1) } else { v.int() }
}

fn unsigned(v: i64, width: u32) -> u64 {
    if width >= 64 { v as u64 } else { v as u64 & ((1 << width) - 1) }
}

fn float_op(name: &str) -> Option<ScalarOp> {
    use ScalarOp::{Float1, Float2, Float3, FloatTest, PowInt};
    Some(match name {
        ops::arith::ADDF => Float2(|a, b| a + b),
        ops::arith::SUBF => Float2(|a, b| a - b),
        ops::arith::MULF => Float2(|a, b| a * b),
        ops::arith::DIVF => Float2(|a, b| a / b),
        ops::arith::REMF => Float2(|a, b| a % b),
        ops::arith::NEGF => Float1(|a| -a),
        ops::arith::MAXIMUMF => Float2(maximum),
        ops::arith::MINIMUMF => Float2(|a, b| -maximum(-a, -b)),
        ops::arith::MAXNUMF => Float2(f64::max),
        ops::arith::MINNUMF => Float2(f64::min),
        ops::math::ABSF => Float1(f64::abs),
        ops::math::SQRT => Float1(f64::sqrt),
        ops::math::RSQRT => Float1(|a| 1.0 / a.sqrt()),
        ops::math::CBRT => Float1(f64::cbrt),
        ops::math::EXP => Float1(f64::exp),
        ops::math::EXP2 => Float1(f64::exp2),
        ops::math::EXPM1 => Float1(f64::exp_m1),
        ops::math::LOG => Float1(f64::ln),
        ops::math::LOG2 => Float1(f64::log2),
        ops::math::LOG10 => Float1(f64::log10),
        ops::math::LOG1P => Float1(f64::ln_1p),
        ops::math::TANH => Float1(f64::tanh),
        ops::math::SINH => Float1(f64::sinh),
        ops::math::COSH => Float1(f64::cosh),
        ops::math::SIN => Float1(f64::sin),
        ops::math::COS => Float1(f64::cos),
        ops::math::TAN => Float1(f64::tan),
        ops::math::ASIN => Float1(f64::asin),
        ops::math::ACOS => Float1(f64::acos),
        ops::math::ATAN => Float1(f64::atan),
        ops::math::ASINH => Float1(f64::asinh),
        ops::math::ACOSH => Float1(f64::acosh),
        ops::math::ATANH => Float1(f64::atanh),
        ops::math::ATAN2 => Float2(f64::atan2),
        ops::math::ERF => Float1(erf),
        ops::math::ERFC => Float1(|a| 1.0 - erf(a)),
        ops::math::FLOOR => Float1(f64::floor),
        ops::math::CEIL => Float1(f64::ceil),
        ops::math::TRUNC => Float1(f64::trunc),
        ops::math::ROUND => Float1(f64::round),
        ops::math::ROUNDEVEN => Float1(f64::round_ties_even),
        ops::math::POWF => Float2(f64::powf),
        ops::math::COPYSIGN => Float2(f64::copysign),
        ops::math::FMA => Float3(f64::mul_add),
        ops::math::CLAMPF => Float3(|v, low, high| -maximum(-maximum(v, low), -high)),
        ops::math::FPOWI => PowInt,
        ops::math::ISNAN => FloatTest(f64::is_nan),
        ops::math::ISINF => FloatTest(f64::is_infinite),
        ops::math::ISFINITE => FloatTest(f64::is_finite),
        _ => return None,
    })
}

fn int_op(name: &str, width: u32) -> Option<ScalarOp> {
    use ScalarOp::{Int1, Int2};
    Some(match name {
        ops::arith::ADDI => Int2(|a, b, _| Some(a.wrapping_add(b)), width),
        ops::arith::SUBI => Int2(|a, b, _| Some(a.wrapping_sub(b)), width),
        ops::arith::MULI => Int2(|a, b, _| Some(a.wrapping_mul(b)), width),
        ops::arith::DIVSI => Int2(|a, b, w| divides(a, b, w).then(|| a / b), width),
        ops::arith::REMSI => Int2(|a, b, w| divides(a, b, w).then(|| a % b), width),
        ops::arith::FLOORDIVSI => Int2(|a, b, w| divides(a, b, w).then(|| floor_div(a, b)), width),
        ops::arith::CEILDIVSI => Int2(|a, b, w| divides(a, b, w).then(|| ceil_div(a, b)), width),
        ops::arith::DIVUI => Int2(|a, b, w| unsigned(a, w).checked_div(unsigned(b, w)).map(|v| v as i64), width),
        ops::arith::REMUI => Int2(|a, b, w| unsigned(a, w).checked_rem(unsigned(b, w)).map(|v| v as i64), width),
        ops::arith::CEILDIVUI => {
            Int2(|a, b, w| (b != 0).then(|| unsigned(a, w).div_ceil(unsigned(b, w)) as i64), width)
        }
        ops::arith::ANDI => Int2(|a, b, _| Some(a & b), width),
        ops::arith::ORI => Int2(|a, b, _| Some(a | b), width),
        ops::arith::XORI => Int2(|a, b, _| Some(a ^ b), width),
        ops::arith::SHLI => Int2(|a, b, w| Some(a.wrapping_shl(shift(b, w)?)), width),
        ops::arith::SHRSI => Int2(|a, b, w| Some(a >> shift(b, w)?), width),
        ops::arith::SHRUI => Int2(|a, b, w| Some((unsigned(a, w) >> shift(b, w)?) as i64), width),
        ops::arith::MAXSI => Int2(|a, b, _| Some(a.max(b)), width),
        ops::arith::MINSI => Int2(|a, b, _| Some(a.min(b)), width),
        ops::arith::MAXUI => Int2(|a, b, w| Some(unsigned(a, w).max(unsigned(b, w)) as i64), width),
        ops::arith::MINUI => Int2(|a, b, w| Some(unsigned(a, w).min(unsigned(b, w)) as i64), width),
        ops::math::IPOWI => Int2(|a, b, _| Some(integer_power(a, b)), width),
        ops::math::ABSI => Int1(|a, _| a.wrapping_abs(), width),
        ops::math::CTPOP => Int1(|a, w| i64::from(unsigned(a, w).count_ones()), width),
        ops::math::CTTZ => Int1(|a, w| i64::from(unsigned(a, w).trailing_zeros().min(w)), width),
        ops::math::CTLZ => Int1(|a, w| i64::from(unsigned(a, w).leading_zeros()) - i64::from(64 - w), width),
        ops::arith::CMPI => return None,
        _ => return None,
    })
}

fn other_op(op: Op, name: &str, from: Dtype, to: Dtype) -> Option<ScalarOp> {
    let how = match name {
        ops::math::ISNORMAL => return Some(ScalarOp::FloatTest(normal_test(from))),
        ops::arith::CMPF => return Some(ScalarOp::CompareFloat(CmpFPredicate::of(op)?)),
        ops::arith::CMPI => return Some(ScalarOp::CompareInt(CmpIPredicate::of(op)?, from.int_width()?)),
        ops::arith::SELECT => return Some(ScalarOp::Select),
        ops::arith::EXTF | ops::arith::TRUNCF => Conversion::Float,
        ops::arith::SITOFP => Conversion::SignedToFloat,
        ops::arith::UITOFP => Conversion::UnsignedToFloat,
        ops::arith::FPTOSI => Conversion::FloatToSigned,
        ops::arith::FPTOUI => Conversion::FloatToUnsigned,
        ops::arith::EXTSI | ops::arith::TRUNCI | ops::arith::INDEX_CAST => Conversion::SignExtend,
        ops::arith::EXTUI | ops::arith::INDEX_CASTUI => Conversion::ZeroExtend,
        ops::arith::BITCAST => Conversion::Bits,
        _ => return None,
    };
    Some(ScalarOp::Convert(how, from, to))
}

/// Wraps; a negative exponent gives the truncated fraction, 0 for a base of 0.
fn integer_power(base: i64, exponent: i64) -> i64 {
    if exponent < 0 {
        return if base == 1 || (base == -1 && exponent % 2 == 0) { 1 } else { -i64::from(base == -1) };
    }
    let (mut result, mut square, mut rest) = (1i64, base, exponent);
    while rest > 0 {
        if rest % 2 == 1 {
            result = result.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        rest /= 2;
    }
    result
}

/// Whether a value of a type is neither zero, denormal, infinite nor NaN.
fn normal_test(dtype: Dtype) -> fn(f64) -> bool {
    match dtype {
        Dtype::F16 => |v| v.is_finite() && v.abs() >= 2f64.powi(-14),
        Dtype::F64 => f64::is_normal,
        _ => |v| v.is_finite() && v.abs() >= f64::from(f32::MIN_POSITIVE),
    }
}

fn divides(a: i64, b: i64, width: u32) -> bool {
    b != 0 && !(b == -1 && a == i64::MIN >> (64 - width))
}

fn floor_div(a: i64, b: i64) -> i64 {
    let q = a.wrapping_div(b);
    if a.wrapping_rem(b) != 0 && (a < 0) != (b < 0) { q - 1 } else { q }
}

fn ceil_div(a: i64, b: i64) -> i64 {
    let q = a.wrapping_div(b);
    if a.wrapping_rem(b) != 0 && (a < 0) == (b < 0) { q + 1 } else { q }
}

fn shift(by: i64, width: u32) -> Option<u32> {
    let by = unsigned(by, width);
    (by < u64::from(width)).then_some(by as u32)
}

/// NaN if either is, and +0 over -0.
fn maximum(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else if a == b {
        if a.is_sign_positive() { a } else { b }
    } else {
        a.max(b)
    }
}

fn compare_float(predicate: CmpFPredicate, a: f64, b: f64) -> bool {
    use CmpFPredicate as P;
    let unordered = a.is_nan() || b.is_nan();
    match predicate {
        P::AlwaysFalse => false,
        P::Oeq => a == b,
        P::Ogt => a > b,
        P::Oge => a >= b,
        P::Olt => a < b,
        P::Ole => a <= b,
        P::One => !unordered && a != b,
        P::Ord => !unordered,
        P::Ueq => unordered || a == b,
        P::Ugt => unordered || a > b,
        P::Uge => unordered || a >= b,
        P::Ult => unordered || a < b,
        P::Ule => unordered || a <= b,
        P::Une => a != b,
        P::Uno => unordered,
        P::AlwaysTrue => true,
    }
}

/// The bits of an element as another type of the same width.
pub(super) fn bits_as(from: Dtype, to: Dtype, v: Scalar) -> Scalar {
    convert(Conversion::Bits, from, to, v)
}

fn convert(how: Conversion, from: Dtype, to: Dtype, v: Scalar) -> Scalar {
    let from_width = from.int_width().unwrap_or(64);
    let to_width = to.int_width().unwrap_or(64);
    match how {
        Conversion::Float => Scalar::Float(decode_float(to, encode_float(to, v.float()))),
        Conversion::SignedToFloat => Scalar::Float(signed(v, from_width) as f64),
        Conversion::UnsignedToFloat => Scalar::Float(unsigned(v.int(), from_width) as f64),
        Conversion::FloatToSigned => Scalar::Int(wrap(v.float() as i64, to_width)),
        Conversion::FloatToUnsigned => Scalar::Int(wrap(v.float() as u64 as i64, to_width)),
        Conversion::SignExtend => Scalar::Int(wrap(signed(v, from_width), to_width)),
        Conversion::ZeroExtend => Scalar::Int(wrap(unsigned(v.int(), from_width) as i64, to_width)),
        Conversion::Bits => {
            let bits = if from.is_float() { encode_float(from, v.float()) } else { unsigned(v.int(), from_width) };
            if to.is_float() { Scalar::Float(decode_float(to, bits)) } else { Scalar::Int(wrap(bits as i64, to_width)) }
        }
    }
}

/// The error function to f64's accuracy: a series of positive terms, so that nothing cancels.
fn erf(x: f64) -> f64 {
    if x.is_nan() || x.abs() > 6.0 {
        return if x.is_nan() { x } else { x.signum() };
    }
    // erf(x) = 2/sqrt(pi) e^(-x^2) sum over n of 2^n x^(2n+1) / (2n+1)!!
    let mut term = x;
    let mut sum = x;
    for n in 1..200 {
        term *= 2.0 * x * x / f64::from(2 * n + 1);
        sum += term;
        if term.abs() <= sum.abs() * 1e-17 {
            break;
        }
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erf_matches_known_values() {
        for (x, y) in [
            (0.0, 0.0),
            (0.5, 0.520_499_877_813_046_5),
            (1.0, 0.842_700_792_949_714_9),
            (-2.0, -0.995_322_265_018_952_7),
        ] {
            assert!((erf(x) - y).abs() < 1e-15, "erf({x}) = {}", erf(x));
        }
    }

    #[test]
    fn maximum_keeps_nan_and_the_sign_of_zero() {
        assert!(maximum(f64::NAN, 1.0).is_nan());
        assert!(maximum(-0.0, 0.0).is_sign_positive());
        assert_eq!(maximum(-1.0, 2.0), 2.0);
    }

    #[test]
    fn integers_wrap_and_undefined_division_is_seen() {
        assert_eq!(floor_div(-7, 2), -4);
        assert!(!divides(-128, -1, 8));
        assert!(!divides(1, 0, 8));
        let add = ScalarOp::Int2(|a, b, _| Some(a.wrapping_add(b)), 8);
        assert_eq!(add.apply(Scalar::Int(127), Scalar::Int(1), Scalar::Int(0)), Some(Scalar::Int(-128)));
    }
}
