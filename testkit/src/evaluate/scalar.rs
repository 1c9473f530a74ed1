//! Scalar semantics of arith and math: floats as f64, integers exact and wrapping at their width.

use crate::host_tensor::{Dtype, decode_float, encode_float, wrap};
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
    CompareFloat(i64),
    CompareInt(i64, u32),
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
    /// The semantics of an op, or `None` for one that is not of arith or math or is not covered.
    pub(super) fn of(op: Op) -> Option<Self> {
        let name = op.name();
        if !matches!(op.dialect(), "arith" | "math") || op.num_results() != 1 || op.num_operands() == 0 {
            return None;
        }
        let from = dtype_of(op.operand(0).ty())?;
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
            ScalarOp::CompareInt(p, width) => Scalar::Int(i64::from(compare_int(p, a, b, width))),
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

/// The result of a division that arith leaves undefined, in a kernel: the divisor counts as 1.
pub(super) fn divided_by_one(op: Op, dividend: Scalar) -> Option<Scalar> {
    match op.name() {
        "arith.divsi" | "arith.floordivsi" | "arith.ceildivsi" | "arith.divui" | "arith.ceildivui" => Some(dividend),
        "arith.remsi" | "arith.remui" => Some(Scalar::Int(0)),
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
        "arith.addf" => Float2(|a, b| a + b),
        "arith.subf" => Float2(|a, b| a - b),
        "arith.mulf" => Float2(|a, b| a * b),
        "arith.divf" => Float2(|a, b| a / b),
        "arith.remf" => Float2(|a, b| a % b),
        "arith.negf" => Float1(|a| -a),
        "arith.maximumf" => Float2(maximum),
        "arith.minimumf" => Float2(|a, b| -maximum(-a, -b)),
        "arith.maxnumf" => Float2(f64::max),
        "arith.minnumf" => Float2(f64::min),
        "math.absf" => Float1(f64::abs),
        "math.sqrt" => Float1(f64::sqrt),
        "math.rsqrt" => Float1(|a| 1.0 / a.sqrt()),
        "math.cbrt" => Float1(f64::cbrt),
        "math.exp" => Float1(f64::exp),
        "math.exp2" => Float1(f64::exp2),
        "math.expm1" => Float1(f64::exp_m1),
        "math.log" => Float1(f64::ln),
        "math.log2" => Float1(f64::log2),
        "math.log10" => Float1(f64::log10),
        "math.log1p" => Float1(f64::ln_1p),
        "math.tanh" => Float1(f64::tanh),
        "math.sinh" => Float1(f64::sinh),
        "math.cosh" => Float1(f64::cosh),
        "math.sin" => Float1(f64::sin),
        "math.cos" => Float1(f64::cos),
        "math.tan" => Float1(f64::tan),
        "math.asin" => Float1(f64::asin),
        "math.acos" => Float1(f64::acos),
        "math.atan" => Float1(f64::atan),
        "math.asinh" => Float1(f64::asinh),
        "math.acosh" => Float1(f64::acosh),
        "math.atanh" => Float1(f64::atanh),
        "math.atan2" => Float2(f64::atan2),
        "math.erf" => Float1(erf),
        "math.erfc" => Float1(|a| 1.0 - erf(a)),
        "math.floor" => Float1(f64::floor),
        "math.ceil" => Float1(f64::ceil),
        "math.trunc" => Float1(f64::trunc),
        "math.round" => Float1(f64::round),
        "math.roundeven" => Float1(f64::round_ties_even),
        "math.powf" => Float2(f64::powf),
        "math.copysign" => Float2(f64::copysign),
        "math.fma" => Float3(f64::mul_add),
        "math.clampf" => Float3(|v, low, high| -maximum(-maximum(v, low), -high)),
        "math.fpowi" => PowInt,
        "math.isnan" => FloatTest(f64::is_nan),
        "math.isinf" => FloatTest(f64::is_infinite),
        "math.isfinite" => FloatTest(f64::is_finite),
        _ => return None,
    })
}

fn int_op(name: &str, width: u32) -> Option<ScalarOp> {
    use ScalarOp::{Int1, Int2};
    Some(match name {
        "arith.addi" => Int2(|a, b, _| Some(a.wrapping_add(b)), width),
        "arith.subi" => Int2(|a, b, _| Some(a.wrapping_sub(b)), width),
        "arith.muli" => Int2(|a, b, _| Some(a.wrapping_mul(b)), width),
        "arith.divsi" => Int2(|a, b, w| divides(a, b, w).then(|| a / b), width),
        "arith.remsi" => Int2(|a, b, w| divides(a, b, w).then(|| a % b), width),
        "arith.floordivsi" => Int2(|a, b, w| divides(a, b, w).then(|| floor_div(a, b)), width),
        "arith.ceildivsi" => Int2(|a, b, w| divides(a, b, w).then(|| -floor_div(a.wrapping_neg(), b)), width),
        "arith.divui" => Int2(|a, b, w| unsigned(a, w).checked_div(unsigned(b, w)).map(|v| v as i64), width),
        "arith.remui" => Int2(|a, b, w| unsigned(a, w).checked_rem(unsigned(b, w)).map(|v| v as i64), width),
        "arith.ceildivui" => Int2(|a, b, w| (b != 0).then(|| unsigned(a, w).div_ceil(unsigned(b, w)) as i64), width),
        "arith.andi" => Int2(|a, b, _| Some(a & b), width),
        "arith.ori" => Int2(|a, b, _| Some(a | b), width),
        "arith.xori" => Int2(|a, b, _| Some(a ^ b), width),
        "arith.shli" => Int2(|a, b, w| Some(a.wrapping_shl(shift(b, w)?)), width),
        "arith.shrsi" => Int2(|a, b, w| Some(a >> shift(b, w)?), width),
        "arith.shrui" => Int2(|a, b, w| Some((unsigned(a, w) >> shift(b, w)?) as i64), width),
        "arith.maxsi" => Int2(|a, b, _| Some(a.max(b)), width),
        "arith.minsi" => Int2(|a, b, _| Some(a.min(b)), width),
        "arith.maxui" => Int2(|a, b, w| Some(unsigned(a, w).max(unsigned(b, w)) as i64), width),
        "arith.minui" => Int2(|a, b, w| Some(unsigned(a, w).min(unsigned(b, w)) as i64), width),
        "math.ipowi" => Int2(|a, b, _| Some(integer_power(a, b)), width),
        "math.absi" => Int1(|a, _| a.wrapping_abs(), width),
        "math.ctpop" => Int1(|a, w| i64::from(unsigned(a, w).count_ones()), width),
        "math.cttz" => Int1(|a, w| i64::from(unsigned(a, w).trailing_zeros().min(w)), width),
        "math.ctlz" => Int1(|a, w| i64::from(unsigned(a, w).leading_zeros()) - i64::from(64 - w), width),
        "arith.cmpi" => return None,
        _ => return None,
    })
}

fn other_op(op: Op, name: &str, from: Dtype, to: Dtype) -> Option<ScalarOp> {
    let predicate = || op.attr("predicate").and_then(|a| a.as_int());
    let how = match name {
        "math.isnormal" => return Some(ScalarOp::FloatTest(normal_test(from))),
        "arith.cmpf" => return Some(ScalarOp::CompareFloat(predicate()?)),
        "arith.cmpi" => return Some(ScalarOp::CompareInt(predicate()?, from.int_width()?)),
        "arith.select" => return Some(ScalarOp::Select),
        "arith.extf" | "arith.truncf" => Conversion::Float,
        "arith.sitofp" => Conversion::SignedToFloat,
        "arith.uitofp" => Conversion::UnsignedToFloat,
        "arith.fptosi" => Conversion::FloatToSigned,
        "arith.fptoui" => Conversion::FloatToUnsigned,
        "arith.extsi" | "arith.trunci" | "arith.index_cast" => Conversion::SignExtend,
        "arith.extui" | "arith.index_castui" => Conversion::ZeroExtend,
        "arith.bitcast" => Conversion::Bits,
        _ => return None,
    };
    Some(ScalarOp::Convert(how, from, to))
}

/// Wraps; a negative exponent leaves the whole part of the fraction, 0 for a base of 0.
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

fn compare_float(predicate: i64, a: f64, b: f64) -> bool {
    let unordered = a.is_nan() || b.is_nan();
    match predicate {
        0 => false,
        1 => a == b,
        2 => a > b,
        3 => a >= b,
        4 => a < b,
        5 => a <= b,
        6 => !unordered && a != b,
        7 => !unordered,
        8 => unordered || a == b,
        9 => unordered || a > b,
        10 => unordered || a >= b,
        11 => unordered || a < b,
        12 => unordered || a <= b,
        13 => a != b,
        14 => unordered,
        _ => true,
    }
}

fn compare_int(predicate: i64, a: Scalar, b: Scalar, width: u32) -> bool {
    let (a, b) = (signed(a, width), signed(b, width));
    let (ua, ub) = (unsigned(a, width), unsigned(b, width));
    match predicate {
        0 => a == b,
        1 => a != b,
        2 => a < b,
        3 => a <= b,
        4 => a > b,
        5 => a >= b,
        6 => ua < ub,
        7 => ua <= ub,
        8 => ua > ub,
        _ => ua >= ub,
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
