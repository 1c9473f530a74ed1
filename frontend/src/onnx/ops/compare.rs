//! Comparisons, truth values, conversions, selections.

use super::elementwise::{Function, apply, apply_to_two};
use crate::onnx::operand::Operand;
use crate::onnx::predicate::{CmpF, CmpI, Predicate};
use crate::onnx::symbolic::Dim;
use crate::onnx::{
    Builder, DataType, Failure, Narrowing, NodeContext, Registry, Results, Round, Tensor, fold, structured,
};
use monopour_ir::{Value, ops};
use std::rc::Rc;

/// A comparison in its forms.
#[derive(Clone, Copy)]
pub(super) struct Comparison {
    predicate: fn(DataType) -> Predicate,
    floats: fn(&[f64]) -> bool,
    /// Of the difference of two sizes.
    difference: fn(&Dim) -> Option<bool>,
}

pub(super) const EQUAL: Comparison = Comparison {
    predicate: Predicate::equal,
    floats: |x| x[0] == x[1],
    difference: |d| d.as_constant().map(|d| d == 0),
};
pub(super) const LESS: Comparison =
    Comparison { predicate: Predicate::less, floats: |x| x[0] < x[1], difference: |d| d.as_constant().map(|d| d < 0) };
const LESS_OR_EQUAL: Comparison = Comparison {
    predicate: Predicate::less_or_equal,
    floats: |x| x[0] <= x[1],
    difference: |d| d.as_constant().map(|d| d <= 0),
};
pub(super) const GREATER: Comparison = Comparison {
    predicate: Predicate::greater,
    floats: |x| x[0] > x[1],
    difference: |d| d.as_constant().map(|d| d > 0),
};
const GREATER_OR_EQUAL: Comparison = Comparison {
    predicate: Predicate::greater_or_equal,
    floats: |x| x[0] >= x[1],
    difference: |d| d.as_constant().map(|d| d >= 0),
};
const NOT: Function =
    Function { body: flip, floats: None, sizes: |x| x[0].as_constant().map(|v| Dim::constant(1 - v)) };
const BITWISE_NOT: Function =
    Function { body: flip, floats: None, sizes: |x| x[0].as_constant().map(|v| Dim::constant(!v)) };
/// What Cast does not do.
const NO_CASTS: &str = "strings";

pub(super) fn register(registry: &mut Registry) {
    registry.op("Equal", 7, |b, cx| comparison(b, cx, EQUAL), "strings");
    registry.op("Less", 7, |b, cx| comparison(b, cx, LESS), "");
    registry.op("LessOrEqual", 12, |b, cx| comparison(b, cx, LESS_OR_EQUAL), "");
    registry.op("Greater", 7, |b, cx| comparison(b, cx, GREATER), "");
    registry.op("GreaterOrEqual", 12, |b, cx| comparison(b, cx, GREATER_OR_EQUAL), "");
    registry.op("And", 7, |b, cx| apply_to_two(b, cx, AND), "");
    registry.op("Or", 7, |b, cx| apply_to_two(b, cx, OR), "");
    registry.op("Xor", 7, |b, cx| apply_to_two(b, cx, XOR), "");
    registry.op("BitwiseAnd", 18, |b, cx| apply_to_two(b, cx, AND), "");
    registry.op("BitwiseOr", 18, |b, cx| apply_to_two(b, cx, OR), "");
    registry.op("BitwiseXor", 18, |b, cx| apply_to_two(b, cx, XOR), "");
    registry.op("Not", 1, |b, cx| apply(b, cx, NOT), "");
    registry.op("BitwiseNot", 18, |b, cx| apply(b, cx, BITWISE_NOT), "");
    registry.op("IsNaN", 9, is_nan, "");
    registry.op("IsInf", 10, is_inf, "");
    registry.op("Where", 9, select, "");
    registry.op("Cast", 6, cast, NO_CASTS);
    registry.op("CastLike", 15, cast_like, NO_CASTS);
}

pub(super) fn comparison<'c>(
    b: &mut Builder<'c>,
    cx: &NodeContext<'_, 'c>,
    Comparison { predicate, floats, difference }: Comparison,
) -> Results<'c> {
    let operands = [cx.operand(0)?, cx.operand(1)?];
    let from = operands[0].dtype;
    let shape = structured::broadcast(&[&operands[0].shape, &operands[1].shape])?;
    if fold::all_known(&operands, &shape) {
        let truth = |value: bool| Dim::constant(i64::from(value));
        let folded = if from.is_float() {
            fold::floats(&operands, DataType::Bool, &shape, |x| f64::from(u8::from(floats(x))))
        } else {
            let sizes = |x: &[Dim]| difference(&x[0].difference(&x[1])?).map(truth);
            fold::sizes(&operands, DataType::Bool, &shape, sizes)
        };
        if let Some(folded) = folded {
            return Ok(vec![folded]);
        }
    }
    let predicate = predicate(from);
    let result = b.elementwise_of_shape(&operands, DataType::Bool, shape, |b, x| b.compare(predicate, x[0], x[1]))?;
    Ok(vec![result])
}

/// A function of bits: the op, and its value on known integers.
macro_rules! bits {
    ($name:expr, $known:expr) => {
        Function {
            body: |b, _, x| b.binary($name, x[0], x[1]),
            floats: None,
            sizes: |x| Some(Dim::constant($known(x[0].as_constant()?, x[1].as_constant()?))),
        }
    };
}

pub(super) const AND: Function = bits!(ops::arith::ANDI, |x: i64, y: i64| x & y);
pub(super) const OR: Function = bits!(ops::arith::ORI, |x: i64, y: i64| x | y);
pub(super) const XOR: Function = bits!(ops::arith::XORI, |x: i64, y: i64| x ^ y);

fn flip<'c>(b: &mut Builder<'c>, _: DataType, x: &[Value<'c>]) -> Result<Value<'c>, Failure> {
    let ones = b.int(x[0].ty(), -1);
    b.binary(ops::arith::XORI, x[0], ones)
}

/// Floats that the IR compares.
fn wide_floats<'c>(b: &mut Builder<'c>, x: &Operand<'c>) -> Result<Operand<'c>, Failure> {
    match x.dtype {
        narrow if narrow.is_narrow_float() => cast_to(b, x, DataType::F32),
        float if float.is_float() => Ok(x.clone()),
        other => Err(format!("operands of {other} are not supported").into()),
    }
}

fn is_nan<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = wide_floats(b, cx.operand(0)?)?;
    Ok(vec![b.elementwise(&[&x], DataType::Bool, |b, x| b.compare(CmpF::Uno, x[0], x[0]))?])
}

fn is_inf<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (negative, positive) = (cx.flag("detect_negative", true)?, cx.flag("detect_positive", true)?);
    let x = wide_floats(b, cx.operand(0)?)?;
    let result = b.elementwise(&[&x], DataType::Bool, |b, x| {
        let infinity = b.number(x[0].ty(), if positive { f64::INFINITY } else { f64::NEG_INFINITY });
        match (negative, positive) {
            (true, true) => {
                let size = b.unary(ops::math::ABSF, x[0])?;
                b.compare(CmpF::Oeq, size, infinity)
            }
            (false, false) => Ok(b.int(monopour_ir::Type::integer(b.context(), 1), 0)),
            _ => b.compare(CmpF::Oeq, x[0], infinity),
        }
    })?;
    Ok(vec![result])
}

fn select<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let operands = [cx.operand(0)?, cx.operand(1)?, cx.operand(2)?];
    let shape = structured::broadcast(&[&operands[0].shape, &operands[1].shape, &operands[2].shape])?;
    if fold::all_known(&operands, &shape) && !operands[1].dtype.is_float() {
        let choose = |x: &[Dim]| Some(if x[0].as_constant()? != 0 { x[1].clone() } else { x[2].clone() });
        if let Some(folded) = fold::sizes(&operands, operands[1].dtype, &shape, choose) {
            return Ok(vec![folded]);
        }
    }
    Ok(vec![b.elementwise_of_shape(&operands, operands[1].dtype, shape, |b, x| b.select(x[0], x[1], x[2]))?])
}

fn cast<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let to = cx.data_type("to")?.ok_or("attribute 'to' is missing")?;
    Ok(vec![cast_by(b, cx.operand(0)?, to, narrowing(cx)?)?])
}

fn cast_like<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    Ok(vec![cast_by(b, cx.operand(0)?, cx.operand(1)?.dtype, narrowing(cx)?)?])
}

/// How the node rounds to narrow floats.
fn narrowing(cx: &NodeContext) -> Result<Narrowing, Failure> {
    let round = match cx.string("round_mode", "up")?.as_str() {
        "up" => Round::Up,
        "down" => Round::Down,
        "nearest" => Round::Nearest,
        other => return Err(format!("round_mode '{other}' does not exist").into()),
    };
    Ok(Narrowing { saturate: cx.flag("saturate", true)?, round })
}

/// The operand with elements of another type.
pub(super) fn cast_to<'c>(b: &mut Builder<'c>, x: &Operand<'c>, to: DataType) -> Result<Operand<'c>, Failure> {
    cast_by(b, x, to, Narrowing::default())
}

/// As [`cast_to`], with a rounding to narrow floats.
pub(super) fn cast_by<'c>(
    b: &mut Builder<'c>,
    x: &Operand<'c>,
    to: DataType,
    by: Narrowing,
) -> Result<Operand<'c>, Failure> {
    if x.dtype == to {
        return Ok(x.clone());
    }
    if let Some(folded) = folded_cast(x, to) {
        return Ok(folded);
    }
    b.element(to)?;
    let from = x.dtype;
    b.elementwise(&[x], to, |b, e| {
        if to.is_narrow_float() { to_narrow_float(b, from, to, e[0], by) } else { convert(b, from, to, e[0]) }
    })
}

fn to_narrow_float<'c>(
    b: &mut Builder<'c>,
    from: DataType,
    to: DataType,
    x: Value<'c>,
    by: Narrowing,
) -> Result<Value<'c>, Failure> {
    let wide = if from == DataType::F64 { from } else { DataType::F32 };
    let x = convert(b, from, wide, x)?;
    b.encode(to, x, by)
}

fn folded_cast<'c>(x: &Operand<'c>, to: DataType) -> Option<Operand<'c>> {
    let shape = x.static_shape()?;
    if x.dtype.is_float() {
        let values = x.as_floats()?;
        let in_range = |v: &f64| v.is_finite() && v.abs() < 2f64.powi(31);
        let plain = to.is_float() || to == DataType::Bool || values.iter().all(in_range);
        let values: Vec<f64> = match to {
            DataType::Bool => values.into_iter().map(|v| f64::from(u8::from(v != 0.0))).collect(),
            _ => values,
        };
        return plain.then(|| Tensor::from_f64(to, shape, &values)).flatten().map(|t| Operand::constant(Rc::new(t)));
    }
    let is_signed = |sizes: &[Dim]| !x.dtype.is_unsigned() || sizes.iter().all(Dim::is_not_negative);
    if !to.is_integer() && !is_signed(&x.as_sizes()?) {
        return None;
    }
    if to.is_integer() && to.bits() >= Some(32) {
        return Some(Operand::sizes(to, shape, x.as_sizes()?));
    }
    Some(Operand::constant(Rc::new(Tensor::from_i64(to, shape, &x.as_ints()?)?)))
}

/// An element of another type.
pub(super) fn convert<'c>(
    b: &mut Builder<'c>,
    from: DataType,
    to: DataType,
    x: Value<'c>,
) -> Result<Value<'c>, Failure> {
    let ty = b.element(to)?;
    if from == to {
        return Ok(x);
    }
    if from.is_narrow_float() {
        let number = b.decode(from, x)?;
        return convert(b, DataType::F32, to, number);
    }
    if to.is_narrow_float() {
        return to_narrow_float(b, from, to, x, Narrowing::default());
    }
    if to.is_packed() {
        // The low bits of an integer.
        let whole = if from.is_float() { convert(b, from, DataType::I32, x)? } else { x };
        let whole = if from == DataType::Bool { b.op(ops::arith::EXTUI, &[whole], ty)? } else { whole };
        return b.wrap(to, whole);
    }
    let unsigned = from.is_unsigned() || from == DataType::Bool;
    if to == DataType::Bool {
        let zero = b.number(x.ty(), 0.0);
        // NaN is true.
        let unequal = if from.is_float() { Predicate::from(CmpF::Une) } else { CmpI::Ne.into() };
        return b.compare(unequal, x, zero);
    }
    let (from_bits, to_bits) =
        (x.ty().float_width().or(x.ty().integer_width()), ty.float_width().or(ty.integer_width()));
    let name = match (from.is_float(), to.is_float()) {
        (true, true) if from_bits == to_bits => {
            let wide = b.op(ops::arith::EXTF, &[x], monopour_ir::Type::f32(b.context()))?;
            return b.op(ops::arith::TRUNCF, &[wide], ty);
        }
        (true, true) if from_bits < to_bits => ops::arith::EXTF,
        (true, true) => ops::arith::TRUNCF,
        (false, true) if unsigned => ops::arith::UITOFP,
        (false, true) => ops::arith::SITOFP,
        (true, false) if to.is_unsigned() => ops::arith::FPTOUI,
        (true, false) => ops::arith::FPTOSI,
        (false, false) if from_bits == to_bits => return Ok(x),
        (false, false) if from_bits > to_bits => ops::arith::TRUNCI,
        (false, false) if unsigned => ops::arith::EXTUI,
        (false, false) => ops::arith::EXTSI,
    };
    b.op(name, &[x], ty)
}
