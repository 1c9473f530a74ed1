//! Arithmetic and functions of numbers, element by element.

use crate::onnx::operand::Operand;
use crate::onnx::predicate::{CmpF, CmpI, Predicate};
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, DataType, Failure, NodeContext, Registry, Results, fold, structured};
use monopour_ir::{Type, Value, ops};

/// Makes the element of a result of elements.
type Body = for<'c> fn(&mut Builder<'c>, DataType, &[Value<'c>]) -> Result<Value<'c>, Failure>;

/// An elementwise function in its forms.
#[derive(Clone, Copy)]
pub(super) struct Function {
    /// On values of the IR.
    pub body: Body,
    /// On known floats; `None`: of integers alone.
    pub floats: Option<fn(&[f64]) -> f64>,
    /// On known integers; `None`: unknown, or of no meaning.
    pub sizes: fn(&[Dim]) -> Option<Dim>,
}

impl Function {
    /// A function of floats alone.
    pub const fn of_floats(body: Body, floats: fn(&[f64]) -> f64) -> Self {
        Self { body, floats: Some(floats), sizes: |_| None }
    }
}

pub(super) fn register(registry: &mut Registry) {
    registry.op("Add", 7, |b, cx| apply_to_two(b, cx, ADD), "");
    registry.op("Sub", 7, |b, cx| apply_to_two(b, cx, SUB), "");
    registry.op("Mul", 7, |b, cx| apply_to_two(b, cx, MUL), "");
    registry.op("Div", 7, |b, cx| apply_to_two(b, cx, DIV), "");
    registry.op("Sum", 6, |b, cx| fold_operands(b, cx, ADD), "");
    registry.op("Min", 6, |b, cx| fold_operands(b, cx, MIN), "");
    registry.op("Max", 6, |b, cx| fold_operands(b, cx, MAX), "");
    registry.op("Mean", 6, mean, "");
    registry.op("Pow", 7, pow, "");
    registry.op("Mod", 10, modulo, "");
    registry.op(
        "Abs",
        6,
        |b, cx| apply(b, cx, Function { body: abs, floats: Some(|x| x[0].abs()), sizes: |x| size_abs(&x[0]) }),
        "",
    );
    registry.op("Neg", 6, |b, cx| apply(b, cx, NEG), "");
    registry.op(
        "Sign",
        9,
        |b, cx| {
            apply(
                b,
                cx,
                Function::of_floats(sign, |x| {
                    if x[0] > 0.0 {
                        1.0
                    } else if x[0] < 0.0 {
                        -1.0
                    } else {
                        x[0]
                    }
                }),
            )
        },
        "",
    );
    functions(registry);
    trigonometry(registry);
}

/// Functions of floats that are one op of `math`.
macro_rules! math {
    ($registry:ident: $($op:literal $since:literal $name:expr, $floats:expr;)*) => {
        $($registry.op($op, $since, |b, cx| apply(b, cx, Function::of_floats(|b, _, x| b.unary($name, x[0]), $floats)), "");)*
    };
}

fn functions(registry: &mut Registry) {
    math! { registry:
        "Exp" 6 ops::math::EXP, |x| x[0].exp();
        "Log" 6 ops::math::LOG, |x| x[0].ln();
        "Sqrt" 6 ops::math::SQRT, |x| x[0].sqrt();
        "Floor" 6 ops::math::FLOOR, |x| x[0].floor();
        "Ceil" 6 ops::math::CEIL, |x| x[0].ceil();
        "Round" 11 ops::math::ROUNDEVEN, |x| x[0].round_ties_even();
    }
    // There is no erf in the standard library: constants stay.
    registry.op("Erf", 9, |b, cx| map(b, cx, |b, x| b.unary(ops::math::ERF, x)), "");
    registry.op("Reciprocal", 6, |b, cx| apply(b, cx, Function::of_floats(reciprocal, |x| 1.0 / x[0])), "");
}

fn trigonometry(registry: &mut Registry) {
    math! { registry:
        "Sin" 7 ops::math::SIN, |x| x[0].sin();
        "Cos" 7 ops::math::COS, |x| x[0].cos();
        "Tan" 7 ops::math::TAN, |x| x[0].tan();
        "Asin" 7 ops::math::ASIN, |x| x[0].asin();
        "Acos" 7 ops::math::ACOS, |x| x[0].acos();
        "Atan" 7 ops::math::ATAN, |x| x[0].atan();
        "Sinh" 9 ops::math::SINH, |x| x[0].sinh();
        "Cosh" 9 ops::math::COSH, |x| x[0].cosh();
        "Tanh" 6 ops::math::TANH, |x| x[0].tanh();
        "Asinh" 9 ops::math::ASINH, |x| x[0].asinh();
        "Acosh" 9 ops::math::ACOSH, |x| x[0].acosh();
        "Atanh" 9 ops::math::ATANH, |x| x[0].atanh();
    }
}

/// A function of the one operand, which has the result's type.
pub(super) fn apply<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>, function: Function) -> Results<'c> {
    let x = cx.operand(0)?;
    Ok(vec![compute(b, &[x], x.dtype, function)?])
}

/// A function of two operands, which have the result's type.
pub(super) fn apply_to_two<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>, function: Function) -> Results<'c> {
    let operands = [cx.operand(0)?, cx.operand(1)?];
    Ok(vec![compute(b, &operands, operands[0].dtype, function)?])
}

/// A function of operands of one type.
pub(super) fn compute<'c>(
    b: &mut Builder<'c>,
    operands: &[&Operand<'c>],
    dtype: DataType,
    function: Function,
) -> Result<Operand<'c>, Failure> {
    let from = operands[0].dtype;
    if operands.iter().any(|o| o.dtype != from) {
        let types = operands.iter().map(|o| o.dtype.to_string()).collect::<Vec<_>>().join(", ");
        return Err(format!("its operands are of different types: {types}").into());
    }
    if from.is_narrow() || from.is_float() && function.floats.is_none() {
        return Err(format!("operands of {from} are not supported").into());
    }
    let shapes: Vec<&[Dim]> = operands.iter().map(|o| o.shape.as_slice()).collect();
    let shape = structured::broadcast(&shapes)?;
    if fold::all_known(operands, &shape) {
        let folded = match function.floats.filter(|_| from.is_float()) {
            Some(floats) => fold::floats(operands, dtype, &shape, floats),
            None => fold::sizes(operands, dtype, &shape, function.sizes),
        };
        if let Some(folded) = folded {
            return Ok(folded);
        }
    }
    b.elementwise_of_shape(operands, dtype, shape, |b, elements| (function.body)(b, from, elements))
}

/// A function of the one operand's elements, not computed at import.
pub(super) fn map<'c>(
    b: &mut Builder<'c>,
    cx: &NodeContext<'_, 'c>,
    body: impl FnOnce(&mut Builder<'c>, Value<'c>) -> Result<Value<'c>, Failure>,
) -> Results<'c> {
    let x = cx.operand(0)?;
    if !x.dtype.is_float() {
        return Err(format!("operands of {} are not supported", x.dtype).into());
    }
    Ok(vec![b.elementwise(&[x], x.dtype, |b, e| body(b, e[0]))?])
}

/// A function of two applied to all operands, from the first on.
fn fold_operands<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>, function: Function) -> Results<'c> {
    let operands = cx.all()?;
    let (first, rest) = operands.split_first().ok_or("it has no operands")?;
    let mut result = (*first).clone();
    for operand in rest {
        result = compute(b, &[&result, operand], first.dtype, function)?;
    }
    Ok(vec![result])
}

fn mean<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let sum = fold_operands(b, cx, ADD)?.remove(0);
    let count = cx.num_operands() as f64;
    let result = b.elementwise(&[&sum], sum.dtype, |b, e| {
        let count = b.number(e[0].ty(), count);
        b.binary(ops::arith::DIVF, e[0], count)
    })?;
    Ok(vec![result])
}

/// The op of floats, signed or unsigned integers.
fn by_type<'c>(
    b: &mut Builder<'c>,
    dtype: DataType,
    [float, signed, unsigned]: [&str; 3],
    x: &[Value<'c>],
) -> Result<Value<'c>, Failure> {
    let name = if dtype.is_float() {
        float
    } else if dtype.is_unsigned() || dtype == DataType::Bool {
        unsigned
    } else {
        signed
    };
    b.binary(name, x[0], x[1])
}

pub(super) const ADD: Function = Function {
    body: |b, t, x| by_type(b, t, [ops::arith::ADDF, ops::arith::ADDI, ops::arith::ADDI], x),
    floats: Some(|x| x[0] + x[1]),
    sizes: |x| Some(x[0].add(&x[1])),
};
pub(super) const SUB: Function = Function {
    body: |b, t, x| by_type(b, t, [ops::arith::SUBF, ops::arith::SUBI, ops::arith::SUBI], x),
    floats: Some(|x| x[0] - x[1]),
    sizes: |x| Some(x[0].sub(&x[1])),
};
pub(super) const MUL: Function = Function {
    body: |b, t, x| by_type(b, t, [ops::arith::MULF, ops::arith::MULI, ops::arith::MULI], x),
    floats: Some(|x| x[0] * x[1]),
    sizes: |x| Some(x[0].mul(&x[1])),
};
pub(super) const DIV: Function = Function {
    body: |b, t, x| by_type(b, t, [ops::arith::DIVF, ops::arith::DIVSI, ops::arith::DIVUI], x),
    floats: Some(|x| x[0] / x[1]),
    sizes: |x| quotient(&x[0], &x[1]),
};
pub(super) const MIN: Function = Function {
    body: |b, t, x| by_type(b, t, [ops::arith::MINIMUMF, ops::arith::MINSI, ops::arith::MINUI], x),
    floats: Some(|x| if x[0].is_nan() || x[1].is_nan() { f64::NAN } else { x[0].min(x[1]) }),
    sizes: |x| Some(x[0].at_most(&x[1])),
};
pub(super) const MAX: Function = Function {
    body: |b, t, x| by_type(b, t, [ops::arith::MAXIMUMF, ops::arith::MAXSI, ops::arith::MAXUI], x),
    floats: Some(|x| if x[0].is_nan() || x[1].is_nan() { f64::NAN } else { x[0].max(x[1]) }),
    sizes: |x| Some(x[0].at_least(&x[1])),
};
const NEG: Function = Function {
    body: |b, t, x| {
        if t.is_float() {
            return b.unary(ops::arith::NEGF, x[0]);
        }
        let zero = b.int(x[0].ty(), 0);
        b.binary(ops::arith::SUBI, zero, x[0])
    },
    floats: Some(|x| -x[0]),
    sizes: |x| Some(x[0].times(-1)),
};

/// The quotient rounded towards zero, where it is the one that is rounded down.
fn quotient(n: &Dim, d: &Dim) -> Option<Dim> {
    match (n.as_constant(), d.as_constant()) {
        (Some(n), Some(d)) => n.checked_div(d).map(Dim::constant),
        _ if n.is_not_negative() && d.is_not_negative() => n.floor_div(d),
        _ => n.exact_quotient(d),
    }
}

fn size_abs(x: &Dim) -> Option<Dim> {
    if x.is_not_negative() { Some(x.clone()) } else { x.as_constant().map(|v| Dim::constant(v.wrapping_abs())) }
}

fn abs<'c>(b: &mut Builder<'c>, dtype: DataType, x: &[Value<'c>]) -> Result<Value<'c>, Failure> {
    match dtype {
        _ if dtype.is_float() => b.unary(ops::math::ABSF, x[0]),
        _ if dtype.is_unsigned() => Ok(x[0]),
        _ => b.unary(ops::math::ABSI, x[0]),
    }
}

fn reciprocal<'c>(b: &mut Builder<'c>, _: DataType, x: &[Value<'c>]) -> Result<Value<'c>, Failure> {
    let one = b.number(x[0].ty(), 1.0);
    b.binary(ops::arith::DIVF, one, x[0])
}

fn sign<'c>(b: &mut Builder<'c>, dtype: DataType, x: &[Value<'c>]) -> Result<Value<'c>, Failure> {
    let ty = x[0].ty();
    let [zero, one, minus] = [0.0, 1.0, -1.0].map(|n| b.number(ty, n));
    let above = b.compare(Predicate::greater(dtype), x[0], zero)?;
    let rest = if dtype.is_unsigned() {
        zero
    } else {
        let below = b.compare(Predicate::less(dtype), x[0], zero)?;
        // NaN and both zeros stay.
        let keep = if dtype.is_float() { x[0] } else { zero };
        b.select(below, minus, keep)?
    };
    b.select(above, one, rest)
}

/// Whether the exponent is one small integer, known.
fn small_exponent(y: &Operand) -> Option<i64> {
    let number = y.as_scalar()?;
    (number.fract() == 0.0 && (0.0..=4.0).contains(&number)).then_some(number as i64)
}

pub(super) fn pow<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (x, y) = (cx.operand(0)?, cx.operand(1)?);
    let dtype = x.dtype;
    if dtype.is_float() && y.dtype == dtype {
        let shape = structured::broadcast(&[&x.shape, &y.shape])?;
        if let Some(folded) = fold::floats(&[x, y], dtype, &shape, |e| e[0].powf(e[1])) {
            return Ok(vec![folded]);
        }
    }
    if dtype.is_integer() && y.dtype.is_integer() {
        return Ok(vec![integer_powers(b, x, y)?]);
    }
    if let Some(exponent) = small_exponent(y) {
        let shape = structured::broadcast(&[&x.shape, &y.shape])?;
        return Ok(vec![b.elementwise_of_shape(&[x], dtype, shape, |b, e| power(b, dtype, e[0], exponent))?]);
    }
    let (from, to) = (y.dtype, dtype);
    let result = b.elementwise(&[x, y], dtype, |b, e| {
        // Powers of integers with exponents that are floats are floats, rounded towards 0.
        let float = if to.is_float() { to } else { DataType::F64 };
        let base = super::compare::convert(b, to, float, e[0])?;
        let exponent = super::compare::convert(b, from, float, e[1])?;
        let power = b.binary(ops::math::POWF, base, exponent)?;
        super::compare::convert(b, float, to, power)
    })?;
    Ok(vec![result])
}

/// Powers of integers, modulo `2^bits`, by squares for the bits of the exponents.
fn integer_powers<'c>(b: &mut Builder<'c>, x: &Operand<'c>, y: &Operand<'c>) -> Result<Operand<'c>, Failure> {
    if x.dtype.is_packed() || y.dtype.is_packed() {
        return Err(format!("powers of {} to {} are not supported", x.dtype, y.dtype).into());
    }
    let known = y.as_ints().filter(|_| y.as_scalar().is_some()).map(|ints| ints[0]);
    let bits = y.dtype.bits().unwrap_or(64) - u32::from(!y.dtype.is_unsigned());
    b.elementwise(&[x, y], x.dtype, |b, e| {
        let (zero, one) = (b.int(e[0].ty(), 0), b.int(e[0].ty(), 1));
        let (mut square, mut power) = (e[0], one);
        match known {
            Some(exponent) if exponent >= 0 => {
                for bit in 0..64 - exponent.leading_zeros() {
                    square = if bit == 0 { square } else { b.binary(ops::arith::MULI, square, square)? };
                    if exponent >> bit & 1 == 1 {
                        power = b.binary(ops::arith::MULI, power, square)?;
                    }
                }
                return Ok(power);
            }
            _ => {}
        }
        let none = b.int(e[1].ty(), 0);
        for bit in 0..bits {
            square = if bit == 0 { square } else { b.binary(ops::arith::MULI, square, square)? };
            let more = b.binary(ops::arith::MULI, power, square)?;
            let mask = b.int(e[1].ty(), 1_i64 << bit);
            let digit = b.binary(ops::arith::ANDI, e[1], mask)?;
            let is_set = b.compare(CmpI::Ne, digit, none)?;
            power = b.select(is_set, more, power)?;
        }
        if y.dtype.is_unsigned() {
            return Ok(power);
        }
        // The inverse of 1 and -1 is the number itself, that of others is rounded to 0.
        let size = if x.dtype.is_unsigned() { e[0] } else { b.unary(ops::math::ABSI, e[0])? };
        let (is_unit, is_negative) = (b.compare(CmpI::Eq, size, one)?, b.compare(CmpI::Slt, e[1], none)?);
        let inverse = b.select(is_unit, power, zero)?;
        b.select(is_negative, inverse, power)
    })
}

fn power<'c>(b: &mut Builder<'c>, dtype: DataType, x: Value<'c>, exponent: i64) -> Result<Value<'c>, Failure> {
    let name = if dtype.is_float() { ops::arith::MULF } else { ops::arith::MULI };
    if exponent == 0 {
        return Ok(b.number(x.ty(), 1.0));
    }
    (1..exponent).try_fold(x, |power, _| b.binary(name, power, x))
}

fn modulo<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    if cx.flag("fmod", false)? {
        return apply_to_two(b, cx, FMOD);
    }
    apply_to_two(b, cx, MODULO)
}

const FMOD: Function = Function {
    body: |b, t, x| {
        if t.is_float() { remainder(b, x) } else { by_type(b, t, ["", ops::arith::REMSI, ops::arith::REMUI], x) }
    },
    floats: Some(|x| x[0] % x[1]),
    sizes: |x| Some(Dim::constant(x[0].as_constant()?.checked_rem(x[1].as_constant()?)?)),
};

/// The remainder with the divisor's sign.
const MODULO: Function = Function {
    body: |b, t, x| {
        if t.is_unsigned() {
            return b.binary(ops::arith::REMUI, x[0], x[1]);
        }
        if t.is_float() {
            return float_modulo(b, x);
        }
        let rest = b.binary(ops::arith::REMSI, x[0], x[1])?;
        let zero = b.int(rest.ty(), 0);
        let signs = b.binary(ops::arith::XORI, rest, x[1])?;
        let (differ, some) = (b.compare(CmpI::Slt, signs, zero)?, b.compare(CmpI::Ne, rest, zero)?);
        let moved = b.binary(ops::arith::ADDI, rest, x[1])?;
        let both = b.op(ops::arith::ANDI, &[differ, some], Type::integer(b.context(), 1))?;
        b.select(both, moved, rest)
    },
    floats: Some(|x| {
        let rest = x[0] % x[1];
        if rest != 0.0 && (rest < 0.0) != (x[1] < 0.0) { rest + x[1] } else { rest }
    }),
    sizes: |x| x[0].modulo(&x[1]),
};

/// The remainder with the dividend's sign, which is the dividend where the divisor is larger: infinite ones, too.
fn remainder<'c>(b: &mut Builder<'c>, x: &[Value<'c>]) -> Result<Value<'c>, Failure> {
    let rest = b.binary(ops::arith::REMF, x[0], x[1])?;
    let (dividend, divisor) = (b.unary(ops::math::ABSF, x[0])?, b.unary(ops::math::ABSF, x[1])?);
    let is_less = b.compare(CmpF::Olt, dividend, divisor)?;
    b.select(is_less, x[0], rest)
}

/// The remainder with the divisor's sign; zero has it, too.
fn float_modulo<'c>(b: &mut Builder<'c>, x: &[Value<'c>]) -> Result<Value<'c>, Failure> {
    let rest = remainder(b, x)?;
    let zero = b.number(rest.ty(), 0.0);
    let truth = Type::integer(b.context(), 1);
    let (below, negative) = (b.compare(CmpF::Olt, rest, zero)?, b.compare(CmpF::Olt, x[1], zero)?);
    let some = b.compare(CmpF::One, rest, zero)?;
    let differ = b.op(ops::arith::XORI, &[below, negative], truth)?;
    let both = b.op(ops::arith::ANDI, &[differ, some], truth)?;
    let moved = b.binary(ops::arith::ADDF, rest, x[1])?;
    let rest = b.select(both, moved, rest)?;
    let signed = b.binary(ops::math::COPYSIGN, rest, x[1])?;
    b.select(some, rest, signed)
}
