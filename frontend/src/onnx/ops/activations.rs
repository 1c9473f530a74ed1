//! Activations.

use super::compare::convert;
use super::elementwise::{Function, MAX, apply, compute, map};
use crate::onnx::operand::Operand;
use crate::onnx::predicate::{CmpF, Predicate};
use crate::onnx::{Builder, DataType, Failure, NodeContext, Registry, Results, Tensor};
use monopour_ir::{Value, ops};
use std::rc::Rc;

pub(super) fn register(registry: &mut Registry) {
    registry.op("Relu", 6, |b, cx| apply(b, cx, RELU), "");
    registry.op(
        "Sigmoid",
        6,
        |b, cx| apply(b, cx, Function::of_floats(|b, _, x| sigmoid(b, x[0]), |x| 1.0 / (1.0 + (-x[0]).exp()))),
        "",
    );
    registry.op("LeakyRelu", 6, leaky_relu, "");
    registry.op("PRelu", 7, prelu, "");
    registry.op("Elu", 6, elu, "");
    registry.op("Celu", 12, celu, "");
    registry.op("Selu", 6, selu, "");
    registry.op("ThresholdedRelu", 10, thresholded_relu, "");
    registry.op("HardSigmoid", 6, hard_sigmoid, "");
    registry.op(
        "HardSwish",
        14,
        |b, cx| {
            map(b, cx, |b, x| {
                let y = hard(b, x, 1.0 / 6.0, 0.5)?;
                b.binary(ops::arith::MULF, x, y)
            })
        },
        "",
    );
    registry.op("Softplus", 1, |b, cx| map(b, cx, softplus), "");
    registry.op("Softsign", 1, |b, cx| map(b, cx, softsign), "");
    registry.op(
        "Mish",
        18,
        |b, cx| {
            map(b, cx, |b, x| {
                let y = softplus(b, x)?;
                let y = b.unary(ops::math::TANH, y)?;
                b.binary(ops::arith::MULF, x, y)
            })
        },
        "",
    );
    registry.op("Gelu", 20, gelu, "");
    registry.op("Swish", 24, swish, "");
    registry.op("SwiGLU", 28, swiglu, "");
    registry.op("Clip", 6, clip, "");
    registry.op("Shrink", 9, shrink, "");
}

const RELU: Function = Function {
    body: |b, t, x| {
        let zero = b.number(x[0].ty(), 0.0);
        b.binary(if t.is_float() { ops::arith::MAXIMUMF } else { ops::arith::MAXSI }, x[0], zero)
    },
    floats: Some(|x| if x[0].is_nan() { x[0] } else { x[0].max(0.0) }),
    sizes: |x| Some(x[0].at_least(&0.into())),
};

/// `x` where it is positive, else what `below` makes of it.
pub(super) fn where_positive<'c>(
    b: &mut Builder<'c>,
    x: Value<'c>,
    below: impl FnOnce(&mut Builder<'c>, Value<'c>) -> Result<Value<'c>, Failure>,
) -> Result<Value<'c>, Failure> {
    let zero = b.number(x.ty(), 0.0);
    let positive = b.compare(CmpF::Ogt, x, zero)?;
    let below = below(b, x)?;
    b.select(positive, x, below)
}

pub(super) fn scaled<'c>(b: &mut Builder<'c>, x: Value<'c>, by: f64) -> Result<Value<'c>, Failure> {
    let by = b.number(x.ty(), by);
    b.binary(ops::arith::MULF, x, by)
}

pub(super) fn offset<'c>(b: &mut Builder<'c>, x: Value<'c>, by: f64) -> Result<Value<'c>, Failure> {
    let by = b.number(x.ty(), by);
    b.binary(ops::arith::ADDF, x, by)
}

/// `1 / (1 + exp(-x))`.
pub(super) fn sigmoid<'c>(b: &mut Builder<'c>, x: Value<'c>) -> Result<Value<'c>, Failure> {
    let minus = b.unary(ops::arith::NEGF, x)?;
    let power = b.unary(ops::math::EXP, minus)?;
    let sum = offset(b, power, 1.0)?;
    let one = b.number(x.ty(), 1.0);
    b.binary(ops::arith::DIVF, one, sum)
}

fn leaky_relu<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let alpha = cx.float("alpha", f64::from(0.01f32))?;
    map(b, cx, |b, x| where_positive(b, x, |b, x| scaled(b, x, alpha)))
}

pub(super) fn prelu<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (x, slope) = (cx.operand(0)?, cx.operand(1)?);
    let multiply = if x.dtype.is_float() { ops::arith::MULF } else { ops::arith::MULI };
    let result = b.elementwise(&[x, slope], x.dtype, |b, e| {
        let zero = b.number(e[0].ty(), 0.0);
        let positive = b.compare(Predicate::greater(x.dtype), e[0], zero)?;
        let below = b.binary(multiply, e[0], e[1])?;
        b.select(positive, e[0], below)
    })?;
    Ok(vec![result])
}

/// `alpha * (exp(x / by) - 1)`.
pub(super) fn exponential<'c>(b: &mut Builder<'c>, x: Value<'c>, alpha: f64, by: f64) -> Result<Value<'c>, Failure> {
    let x = if by == 1.0 { x } else { scaled(b, x, 1.0 / by)? };
    let power = b.unary(ops::math::EXPM1, x)?;
    scaled(b, power, alpha)
}

fn elu<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let alpha = cx.float("alpha", 1.0)?;
    map(b, cx, |b, x| where_positive(b, x, |b, x| exponential(b, x, alpha, 1.0)))
}

fn celu<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let alpha = cx.float("alpha", 1.0)?;
    map(b, cx, |b, x| where_positive(b, x, |b, x| exponential(b, x, alpha, alpha)))
}

fn selu<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let alpha = cx.float("alpha", f64::from(1.673_263_2_f32))?;
    let gamma = cx.float("gamma", f64::from(1.050_701_f32))?;
    map(b, cx, |b, x| {
        let y = where_positive(b, x, |b, x| exponential(b, x, alpha, 1.0))?;
        scaled(b, y, gamma)
    })
}

fn thresholded_relu<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let alpha = cx.float("alpha", 1.0)?;
    map(b, cx, |b, x| {
        let (bound, zero) = (b.number(x.ty(), alpha), b.number(x.ty(), 0.0));
        let above = b.compare(CmpF::Ogt, x, bound)?;
        b.select(above, x, zero)
    })
}

/// `max(0, min(1, alpha * x + beta))`.
pub(super) fn hard<'c>(b: &mut Builder<'c>, x: Value<'c>, alpha: f64, beta: f64) -> Result<Value<'c>, Failure> {
    let y = scaled(b, x, alpha)?;
    let y = offset(b, y, beta)?;
    let (zero, one) = (b.number(x.ty(), 0.0), b.number(x.ty(), 1.0));
    let y = b.binary(ops::arith::MINIMUMF, y, one)?;
    b.binary(ops::arith::MAXIMUMF, y, zero)
}

fn hard_sigmoid<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (alpha, beta) = (cx.float("alpha", f64::from(0.2f32))?, cx.float("beta", 0.5)?);
    map(b, cx, |b, x| hard(b, x, alpha, beta))
}

/// `max(x, 0) + log1p(exp(-|x|))`, which does not overflow.
pub(super) fn softplus<'c>(b: &mut Builder<'c>, x: Value<'c>) -> Result<Value<'c>, Failure> {
    let size = b.unary(ops::math::ABSF, x)?;
    let minus = b.unary(ops::arith::NEGF, size)?;
    let power = b.unary(ops::math::EXP, minus)?;
    let log = b.unary(ops::math::LOG1P, power)?;
    let zero = b.number(x.ty(), 0.0);
    let positive = b.binary(ops::arith::MAXIMUMF, x, zero)?;
    b.binary(ops::arith::ADDF, positive, log)
}

pub(super) fn softsign<'c>(b: &mut Builder<'c>, x: Value<'c>) -> Result<Value<'c>, Failure> {
    let size = b.unary(ops::math::ABSF, x)?;
    let sum = offset(b, size, 1.0)?;
    b.binary(ops::arith::DIVF, x, sum)
}

fn gelu<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    match cx.string("approximate", "none")?.as_str() {
        "none" => map(b, cx, gelu_erf),
        "tanh" => map(b, cx, gelu_tanh),
        other => Err(format!("attribute 'approximate' is '{other}'").into()),
    }
}

/// `x / 2 * (1 + erf(x / sqrt(2)))`.
pub(super) fn gelu_erf<'c>(b: &mut Builder<'c>, x: Value<'c>) -> Result<Value<'c>, Failure> {
    let part = scaled(b, x, std::f64::consts::FRAC_1_SQRT_2)?;
    let part = b.unary(ops::math::ERF, part)?;
    let part = offset(b, part, 1.0)?;
    let half = scaled(b, x, 0.5)?;
    b.binary(ops::arith::MULF, half, part)
}

/// `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))`.
pub(super) fn gelu_tanh<'c>(b: &mut Builder<'c>, x: Value<'c>) -> Result<Value<'c>, Failure> {
    let square = b.binary(ops::arith::MULF, x, x)?;
    let cube = b.binary(ops::arith::MULF, square, x)?;
    let cube = scaled(b, cube, 0.044_715)?;
    let sum = b.binary(ops::arith::ADDF, x, cube)?;
    let inner = scaled(b, sum, (2.0 / std::f64::consts::PI).sqrt())?;
    let tanh = b.unary(ops::math::TANH, inner)?;
    let part = offset(b, tanh, 1.0)?;
    let half = scaled(b, x, 0.5)?;
    b.binary(ops::arith::MULF, half, part)
}

/// `x / (1 + exp(-alpha * x))`.
pub(super) fn swish_of<'c>(b: &mut Builder<'c>, x: Value<'c>, alpha: f64) -> Result<Value<'c>, Failure> {
    let y = if alpha == 1.0 { x } else { scaled(b, x, alpha)? };
    let y = sigmoid(b, y)?;
    b.binary(ops::arith::MULF, x, y)
}

fn swish<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let alpha = cx.float("alpha", 1.0)?;
    map(b, cx, |b, x| swish_of(b, x, alpha))
}

fn swiglu<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (gate, x, alpha) = (cx.operand(0)?, cx.operand(1)?, cx.float("alpha", 1.0)?);
    let result = b.elementwise(&[gate, x], x.dtype, |b, e| {
        let gate = swish_of(b, e[0], alpha)?;
        b.binary(ops::arith::MULF, gate, e[1])
    })?;
    Ok(vec![result])
}

fn clip<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    let bound = |at: usize, name: &str| -> Result<Option<Operand<'c>>, Failure> {
        if cx.opset() >= 11 {
            return Ok(cx.optional(at).cloned());
        }
        let given = cx.node.attributes.contains_key(name).then(|| cx.float(name, 0.0)).transpose()?;
        let tensor = given.and_then(|number| Tensor::from_f64(x.dtype, vec![], &[number]));
        Ok(tensor.map(|t| Operand::constant(Rc::new(t))))
    };
    let (low, high) = (bound(1, "min")?, bound(2, "max")?);
    let min = super::elementwise::MIN;
    let raised = low.map(|low| compute(b, &[x, &low], x.dtype, MAX)).transpose()?.unwrap_or_else(|| x.clone());
    let result = high.map(|high| compute(b, &[&raised, &high], x.dtype, min)).transpose()?;
    Ok(vec![result.unwrap_or(raised)])
}

/// `x` moved towards 0 by a bias where it is beyond a bound on either side, else 0.
fn shrink<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (x, bound, bias) = (cx.operand(0)?, cx.float("lambd", 0.5)?, cx.float("bias", 0.0)?);
    if matches!(x.dtype, DataType::I64 | DataType::U64) {
        return Ok(vec![shrink_integers(b, x, bound, bias)?]);
    }
    // Integers are compared and moved as floats, which hold 8 to 32 bits exactly.
    let float = if x.dtype.is_float() { x.dtype } else { DataType::F64 };
    let result = b.elementwise(&[x], x.dtype, |b, e| {
        let e = convert(b, x.dtype, float, e[0])?;
        let (low, high, zero) = (b.number(e.ty(), -bound), b.number(e.ty(), bound), b.number(e.ty(), 0.0));
        let (up, down) = (offset(b, e, bias)?, offset(b, e, -bias)?);
        let above = b.compare(CmpF::Ogt, e, high)?;
        let below = b.compare(CmpF::Ogt, low, e)?;
        let y = b.select(above, down, zero)?;
        let y = b.select(below, up, y)?;
        convert(b, float, x.dtype, y)
    })?;
    Ok(vec![result])
}

/// As [`shrink`], of integers that are not all f64.
fn shrink_integers<'c>(b: &mut Builder<'c>, x: &Operand<'c>, bound: f64, bias: f64) -> Result<Operand<'c>, Failure> {
    let is_small = |number: f64| number.abs() < 2f64.powi(53);
    if bias.fract() != 0.0 || !is_small(bias) || !is_small(bound) || (x.dtype.is_unsigned() && bound < 0.0) {
        return Err(format!("operands of {} with bound {bound} and bias {bias} are not supported", x.dtype).into());
    }
    let dtype = x.dtype;
    b.elementwise(&[x], dtype, |b, e| {
        let [high, low, bias, zero] = [bound.floor(), (-bound).ceil(), bias, 0.0].map(|n| b.int(e[0].ty(), n as i64));
        let (up, down) = (b.binary(ops::arith::ADDI, e[0], bias)?, b.binary(ops::arith::SUBI, e[0], bias)?);
        let above = b.compare(Predicate::greater(dtype), e[0], high)?;
        let y = b.select(above, down, zero)?;
        let below = b.compare(Predicate::less(dtype), e[0], low)?;
        b.select(below, up, y)
    })
}
