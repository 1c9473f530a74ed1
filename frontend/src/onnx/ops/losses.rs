//! Losses of classes, one-hot maxima and normalisations by norms.

use super::compare::convert;
use super::normalization::{deviations, softmax_over};
use super::reductions::{Kind, kept, mean, over};
use super::scalars::{add, clamped, div, element, like, mul, wide};
use crate::onnx::operand::Operand;
use crate::onnx::predicate::{CmpF, CmpI};
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, DataType, Expr, Failure, LoopKind, NodeContext, Registry, Results, Structured};
use monopour_ir::{Type, ops};

pub(super) fn register(registry: &mut Registry) {
    registry.op("NegativeLogLikelihoodLoss", 12, |b, cx| Ok(vec![likelihood(b, cx, cx.operand(0)?)?]), "");
    registry.op("SoftmaxCrossEntropyLoss", 12, cross_entropy, "");
    registry.op("Hardmax", 1, hardmax, "");
    registry.op("MeanVarianceNormalization", 9, mean_variance, "");
    registry.op("LpNormalization", 1, lp_normalization, "");
}

/// The loss of log-probabilities of classes.
fn likelihood<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>, x: &Operand<'c>) -> Result<Operand<'c>, Failure> {
    let (target, weight) = (cx.operand(1)?, cx.optional(2));
    if x.rank() < 2 || target.rank() + 1 != x.rank() || !x.dtype.is_float() || !target.dtype.is_integer() {
        return Err("its classes do not fit its log-probabilities".into());
    }
    if weight.is_some_and(|weight| weight.rank() != 1) {
        return Err("its weights are not of rank 1".into());
    }
    let (ignored, sum) = (cx.int_given("ignore_index")?, wide(x.dtype));
    let reduction = cx.string("reduction", "mean")?;
    let source = (b.value(x)?, x.dtype);
    let weights = weight.map(|w| Ok::<_, Failure>((b.value(w)?, w.dtype))).transpose()?;
    let classes = b.index(&x.shape[1])?;
    let to = if reduction == "none" { x.dtype } else { sum };
    // The loss of each place, or its weight.
    let each = |b: &mut Builder<'c>, only_weight: bool| {
        let targets = (b.value(target)?, target.dtype);
        b.computed(to, &target.shape, |b, at| {
            let class = element(b, targets, at, DataType::I64)?;
            let place = b.op(ops::arith::INDEX_CAST, &[class], Type::index(b.context()))?;
            let place = clamped(b, place, classes)?;
            let float = b.element(sum)?;
            let mut value = b.number(float, 1.0);
            if !only_weight {
                let read = element(b, source, &[&at[..1], &[place], &at[1..]].concat(), sum)?;
                value = b.unary(ops::arith::NEGF, read)?;
            }
            if let Some(weights) = weights {
                let weight = element(b, weights, &[place], sum)?;
                value = mul(b, value, weight)?;
            }
            if let Some(ignored) = ignored {
                let (ignored, zero) = (b.int(class.ty(), ignored), like(b, value, 0.0));
                let is_ignored = b.compare(CmpI::Eq, class, ignored)?;
                value = b.select(is_ignored, zero, value)?;
            }
            convert(b, sum, to, value)
        })
    };
    let loss = each(b, false)?;
    let axes: Vec<usize> = (0..target.rank()).collect();
    let total = match reduction.as_str() {
        "none" => return Ok(loss),
        "sum" => over(b, &loss, &axes, Kind::Sum)?,
        "mean" if weight.is_none() && ignored.is_none() => mean(b, &loss, &axes)?,
        "mean" => {
            let weights = each(b, true)?;
            let (total, by) = (over(b, &loss, &axes, Kind::Sum)?, over(b, &weights, &axes, Kind::Sum)?);
            b.elementwise(&[&total, &by], sum, |b, e| div(b, e[0], e[1]))?
        }
        other => return Err(format!("attribute 'reduction' is '{other}'").into()),
    };
    super::compare::cast_to(b, &total, x.dtype)
}

fn cross_entropy<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    if x.rank() < 2 {
        return Err("its scores are not of rank 2 or more".into());
    }
    let logs = softmax_over(b, x, &[1], true)?;
    Ok(vec![likelihood(b, cx, &logs)?, logs])
}

fn hardmax<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let given = cx.operand(0)?;
    if !given.dtype.is_float() {
        return Err(format!("operands of {} are not supported", given.dtype).into());
    }
    let (x, axis) = if cx.opset() >= 13 {
        (given.clone(), cx.axis_attribute(-1, given.rank())?)
    } else {
        let axis = cx.int("axis", 1)?;
        // The axis after the last one is valid, too; a negative one counts from the last.
        let axis = cx.axis(axis, given.rank() + usize::from(axis >= 0))?;
        let size = |dims: &[Dim]| dims.iter().fold(Dim::constant(1), |n, d| n.mul(d));
        (b.reshaped(given, &[size(&given.shape[..axis]), size(&given.shape[axis..])])?, 1)
    };
    let most = over(b, &x, &[axis], Kind::Max)?;
    let rank = x.rank();
    let kept_dims: Vec<Expr> = (0..rank).filter(|d| *d != axis).map(Expr::Loop).collect();
    let first = b.filled(DataType::I32, &most.shape, f64::from(i32::MAX))?;
    let op = Structured {
        loops: (0..rank).map(|d| if d == axis { LoopKind::Reduction } else { LoopKind::Parallel }).collect(),
        inputs: vec![(b.value(&x)?, (0..rank).map(Expr::Loop).collect()), (b.value(&most)?, kept_dims.clone())],
        outputs: vec![(first, kept_dims)],
    };
    // The first of equal maxima.
    let first = b.structured(&op, |b, e| {
        let at = b.loop_index(axis)?;
        let at = b.op(ops::arith::INDEX_CAST, &[at], e[2].ty())?;
        let is_most = b.compare(CmpF::Oeq, e[0], e[1])?;
        let at = b.select(is_most, at, e[2])?;
        Ok(vec![b.binary(ops::arith::MINSI, e[2], at)?])
    })?[0];
    let first = Operand::value(DataType::I32, most.shape.clone(), first);
    let first = kept(b, &first, &x, &[axis])?;
    let element = b.element(x.dtype)?;
    let made = b.elementwise_of_shape(&[&first], x.dtype, x.shape.clone(), |b, e| {
        let at = b.loop_index(axis)?;
        let at = b.op(ops::arith::INDEX_CAST, &[at], e[0].ty())?;
        let is_first = b.compare(CmpI::Eq, at, e[0])?;
        let (one, zero) = (b.number(element, 1.0), b.number(element, 0.0));
        b.select(is_first, one, zero)
    })?;
    Ok(vec![b.reshaped(&made, &given.shape)?])
}

/// `(x - mean) / (deviation + 1e-9)`.
fn mean_variance<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    let axes = cx.axes(Some(cx.ints("axes")?.unwrap_or_else(|| vec![0, 2, 3])), x.rank())?;
    let [rest, variance, _] = deviations(b, x, &axes)?;
    let result = b.elementwise(&[&rest, &variance], x.dtype, |b, e| {
        let deviation = b.unary(ops::math::SQRT, e[1])?;
        let epsilon = like(b, deviation, 1e-9);
        let divisor = add(b, deviation, epsilon)?;
        div(b, e[0], divisor)
    })?;
    Ok(vec![result])
}

fn lp_normalization<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    let (axis, p) = (cx.axis_attribute(-1, x.rank())?, cx.int("p", 2)?);
    if !matches!(p, 1 | 2) || !x.dtype.is_float() {
        return Err(format!("norm {p} of {} is not supported", x.dtype).into());
    }
    let powers = b.elementwise(&[x], x.dtype, |b, e| match p {
        1 => b.unary(ops::math::ABSF, e[0]),
        _ => mul(b, e[0], e[0]),
    })?;
    let sum = over(b, &powers, &[axis], Kind::Sum)?;
    let sum = kept(b, &sum, x, &[axis])?;
    let result = b.elementwise(&[x, &sum], x.dtype, |b, e| {
        let norm = if p == 1 { e[1] } else { b.unary(ops::math::SQRT, e[1])? };
        let (quotient, zero) = (div(b, e[0], norm)?, like(b, norm, 0.0));
        let is_zero = b.compare(CmpF::Oeq, norm, zero)?;
        b.select(is_zero, zero, quotient)
    })?;
    Ok(vec![result])
}
