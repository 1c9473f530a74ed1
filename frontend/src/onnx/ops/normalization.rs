//! Normalizations and softmax.

use super::compare::cast_to;
use super::convolution::{no_channels, per_channel};
use super::reductions::{Kind, kept, mean, over};
use super::scalars::wide;
use crate::onnx::operand::Operand;
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, DataType, Expr, Failure, LoopKind, NodeContext, Registry, Results, Structured, fold};
use monopour_ir::ops;

pub(super) fn register(registry: &mut Registry) {
    registry.op("BatchNormalization", 6, batch_norm, "training before version 14");
    registry.op("InstanceNormalization", 6, instance_norm, "");
    registry.op("LayerNormalization", 17, layer_norm, "");
    registry.op("RMSNormalization", 23, rms_norm, "");
    registry.op("GroupNormalization", 18, group_norm, "");
    registry.op("LRN", 1, lrn, "");
    registry.op("Softmax", 1, |b, cx| softmax(b, cx, false), "");
    registry.op("LogSoftmax", 1, |b, cx| softmax(b, cx, true), "");
}

/// `scale / sqrt(variance + epsilon)` and `shift - mean` of it: constants where the operands are.
fn batch_norm<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    let [scale, shift, average, variance] = [1, 2, 3, 4].map(|at| cx.operand(at));
    let (scale, shift, average, variance) = (scale?, shift?, average?, variance?);
    // Before version 7 a node says that it does not train.
    if cx.opset() < 7 && !cx.flag("is_test", false)? {
        return Err("training is not supported before version 14".into());
    }
    if cx.flag("training_mode", false)? {
        return training_batch_norm(b, cx);
    }
    let epsilon = cx.float("epsilon", f64::from(1e-5f32))?;
    let operands = [scale, shift, average, variance];
    let shape = scale.shape.clone();
    let factor = fold::floats(&operands, x.dtype, &shape, |e| e[0] / (e[3] + epsilon).sqrt());
    let offset = fold::floats(&operands, x.dtype, &shape, |e| e[1] - e[2] * e[0] / (e[3] + epsilon).sqrt());
    if let (Some(factor), Some(offset)) = (factor, offset) {
        let (factor, offset) = (per_channel(b, &factor, x.rank())?, per_channel(b, &offset, x.rank())?);
        let result = b.elementwise(&[x, &factor, &offset], x.dtype, |b, e| {
            let scaled = b.binary(ops::arith::MULF, e[0], e[1])?;
            b.binary(ops::arith::ADDF, scaled, e[2])
        })?;
        return Ok(vec![result]);
    }
    let mut each = vec![];
    for operand in operands {
        let operand = cast_to(b, operand, x.dtype)?;
        each.push(per_channel(b, &operand, x.rank())?);
    }
    let result = b.elementwise(&[x, &each[0], &each[1], &each[2], &each[3]], x.dtype, |b, e| {
        let epsilon = b.number(e[0].ty(), epsilon);
        let sum = b.binary(ops::arith::ADDF, e[4], epsilon)?;
        let root = b.unary(ops::math::SQRT, sum)?;
        let rest = b.binary(ops::arith::SUBF, e[0], e[3])?;
        let scaled = b.binary(ops::arith::MULF, rest, e[1])?;
        let divided = b.binary(ops::arith::DIVF, scaled, root)?;
        b.binary(ops::arith::ADDF, divided, e[2])
    })?;
    Ok(vec![result])
}

/// By the mean and variance of the batch, with which those of the node are moved on.
fn training_batch_norm<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let given = cx.operand(0)?;
    let x = cast_to(b, given, wide(given.dtype))?;
    let axes: Vec<usize> = (0..x.rank()).filter(|d| *d != 1).collect();
    let average = mean(b, &x, &axes)?;
    let along = kept(b, &average, &x, &axes)?;
    let rest = b.elementwise(&[&x, &along], x.dtype, |b, e| b.binary(ops::arith::SUBF, e[0], e[1]))?;
    let squares = b.elementwise(&[&rest], x.dtype, |b, e| b.binary(ops::arith::MULF, e[0], e[0]))?;
    let variance = mean(b, &squares, &axes)?;
    let spread = kept(b, &variance, &x, &axes)?;
    let inverse = inverse_root(b, &spread, cx.float("epsilon", f64::from(1e-5f32))?)?;
    let mut factors = vec![];
    for at in [1, 2] {
        let factor = cast_to(b, cx.operand(at)?, x.dtype)?;
        factors.push(per_channel(b, &factor, x.rank())?);
    }
    let y = scaled(b, &rest, &inverse, Some(&factors[0]), Some(&factors[1]))?;
    let mut results = vec![cast_to(b, &y, given.dtype)?];
    let momentum = cx.float("momentum", f64::from(0.9f32))?;
    for (at, of_batch) in [(3, &average), (4, &variance)] {
        let running = cx.operand(at)?;
        let before = cast_to(b, running, x.dtype)?;
        let moved = b.elementwise(&[&before, of_batch], x.dtype, |b, e| {
            let factors = [momentum, 1.0 - momentum].map(|factor| b.number(e[0].ty(), factor));
            let kept = b.binary(ops::arith::MULF, e[0], factors[0])?;
            let added = b.binary(ops::arith::MULF, e[1], factors[1])?;
            b.binary(ops::arith::ADDF, kept, added)
        })?;
        results.push(cast_to(b, &moved, running.dtype)?);
    }
    Ok(results)
}

/// The operand less its mean over axes, and `1 / sqrt(variance + epsilon)`; the latter two keep the axes.
pub(super) fn centered<'c>(
    b: &mut Builder<'c>,
    x: &Operand<'c>,
    axes: &[usize],
    epsilon: f64,
) -> Result<[Operand<'c>; 3], Failure> {
    let [rest, variance, average] = deviations(b, x, axes)?;
    Ok([rest, inverse_root(b, &variance, epsilon)?, average])
}

/// The operand less its mean over axes, the variance and the mean; the latter two keep the axes.
pub(super) fn deviations<'c>(
    b: &mut Builder<'c>,
    x: &Operand<'c>,
    axes: &[usize],
) -> Result<[Operand<'c>; 3], Failure> {
    let average = mean(b, x, axes)?;
    let average = kept(b, &average, x, axes)?;
    let rest = b.elementwise(&[x, &average], x.dtype, |b, e| b.binary(ops::arith::SUBF, e[0], e[1]))?;
    let variance = mean_square(b, &rest, axes)?;
    Ok([rest, variance, average])
}

/// The mean of the squares over axes, which it keeps.
fn mean_square<'c>(b: &mut Builder<'c>, x: &Operand<'c>, axes: &[usize]) -> Result<Operand<'c>, Failure> {
    let squares = b.elementwise(&[x], x.dtype, |b, e| b.binary(ops::arith::MULF, e[0], e[0]))?;
    let average = mean(b, &squares, axes)?;
    kept(b, &average, x, axes)
}

/// `rest * inverse * scale + shift`.
pub(super) fn scaled<'c>(
    b: &mut Builder<'c>,
    rest: &Operand<'c>,
    inverse: &Operand<'c>,
    scale: Option<&Operand<'c>>,
    shift: Option<&Operand<'c>>,
) -> Result<Operand<'c>, Failure> {
    let operands: Vec<&Operand> = [Some(rest), Some(inverse), scale, shift].into_iter().flatten().collect();
    b.elementwise(&operands, rest.dtype, |b, e| {
        let mut y = b.binary(ops::arith::MULF, e[0], e[1])?;
        let mut at = 2;
        if scale.is_some() {
            y = b.binary(ops::arith::MULF, y, e[at])?;
            at += 1;
        }
        if shift.is_some() {
            y = b.binary(ops::arith::ADDF, y, e[at])?;
        }
        Ok(y)
    })
}

fn instance_norm<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let given = cx.operand(0)?;
    if given.rank() < 2 {
        return Err("its image has no channels".into());
    }
    let x = cast_to(b, given, wide(given.dtype))?;
    let axes: Vec<usize> = (2..x.rank()).collect();
    let [rest, inverse, _] = centered(b, &x, &axes, cx.float("epsilon", f64::from(1e-5f32))?)?;
    let mut factors = vec![];
    for at in [1, 2] {
        let factor = cast_to(b, cx.operand(at)?, x.dtype)?;
        factors.push(per_channel(b, &factor, x.rank())?);
    }
    let y = scaled(b, &rest, &inverse, Some(&factors[0]), Some(&factors[1]))?;
    Ok(vec![cast_to(b, &y, given.dtype)?])
}

fn layer_norm<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let given = cx.operand(0)?;
    let x = cast_to(b, given, stash_type(cx, given.dtype)?)?;
    let axis = cx.axis_attribute(-1, x.rank())?;
    let epsilon = cx.float("epsilon", f64::from(1e-5f32))?;
    let [y, average, inverse] = normalized(b, &x, axis, (cx.operand(1)?, cx.optional(2)), epsilon)?;
    Ok(vec![cast_to(b, &y, given.dtype)?, average, inverse])
}

/// The dimensions from `axis` on normalized, their mean, and their factor.
pub(super) fn normalized<'c>(
    b: &mut Builder<'c>,
    x: &Operand<'c>,
    axis: usize,
    (scale, shift): (&Operand<'c>, Option<&Operand<'c>>),
    epsilon: f64,
) -> Result<[Operand<'c>; 3], Failure> {
    let axes: Vec<usize> = (axis..x.rank()).collect();
    let [rest, inverse, average] = centered(b, x, &axes, epsilon)?;
    let scale = cast_to(b, scale, x.dtype)?;
    let shift = shift.map(|s| cast_to(b, s, x.dtype)).transpose()?;
    Ok([scaled(b, &rest, &inverse, Some(&scale), shift.as_ref())?, average, inverse])
}

/// The type in which a node computes: f32 unless it says otherwise, and f64 of f64.
pub(super) fn stash_type(cx: &NodeContext, given: DataType) -> Result<DataType, Failure> {
    match cx.data_type("stash_type")?.unwrap_or(DataType::F32) {
        _ if given == DataType::F64 => Ok(given),
        stash @ (DataType::F16 | DataType::Bf16 | DataType::F32 | DataType::F64) => Ok(stash),
        other => Err(format!("attribute 'stash_type' is {other}").into()),
    }
}

/// As [`rms`], of a node.
pub(super) fn rms_norm<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let given = cx.operand(0)?;
    let x = cast_to(b, given, stash_type(cx, given.dtype)?)?;
    let axis = cx.axis_attribute(-1, x.rank())?;
    let [y, inverse] = rms(b, &x, axis, cx.operand(1)?, cx.float("epsilon", f64::from(1e-5f32))?)?;
    Ok(vec![cast_to(b, &y, given.dtype)?, inverse])
}

/// `x * scale / sqrt(mean of squares + epsilon)` over the dimensions from `axis` on, and the factor without the scale.
pub(super) fn rms<'c>(
    b: &mut Builder<'c>,
    x: &Operand<'c>,
    axis: usize,
    scale: &Operand<'c>,
    epsilon: f64,
) -> Result<[Operand<'c>; 2], Failure> {
    let axes: Vec<usize> = (axis..x.rank()).collect();
    let squares = mean_square(b, x, &axes)?;
    let inverse = inverse_root(b, &squares, epsilon)?;
    let scale = cast_to(b, scale, x.dtype)?;
    Ok([scaled(b, x, &inverse, Some(&scale), None)?, inverse])
}

/// `1 / sqrt(x + epsilon)`.
fn inverse_root<'c>(b: &mut Builder<'c>, x: &Operand<'c>, epsilon: f64) -> Result<Operand<'c>, Failure> {
    b.elementwise(&[x], x.dtype, |b, e| {
        let epsilon = b.number(e[0].ty(), epsilon);
        let sum = b.binary(ops::arith::ADDF, e[0], epsilon)?;
        let root = b.unary(ops::math::SQRT, sum)?;
        let one = b.number(e[0].ty(), 1.0);
        b.binary(ops::arith::DIVF, one, root)
    })
}

/// Normalizes groups of channels; the scale and shift are per channel, before version 21 per group.
fn group_norm<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let given = cx.operand(0)?;
    let groups = Dim::constant(cx.int("num_groups", 0)?);
    let x = cast_to(b, given, stash_type(cx, given.dtype)?)?;
    let [batch, channels, image @ ..] = &x.shape[..] else { return Err("its operand has no channels".into()) };
    let size =
        channels.exact_quotient(&groups).ok_or_else(|| format!("{channels} channels are not {groups} groups"))?;
    let area = image.iter().fold(Dim::constant(1), |n, d| n.mul(d));
    let apart = b.reshaped(&x, &[batch.clone(), groups.clone(), size.clone(), area])?;
    let [rest, inverse, _] = centered(b, &apart, &[2, 3], cx.float("epsilon", f64::from(1e-5f32))?)?;
    let size = if cx.opset() >= 21 { size } else { Dim::constant(1) };
    let mut factors = vec![];
    for at in [1, 2] {
        let factor = cast_to(b, cx.operand(at)?, x.dtype)?;
        factors.push(b.reshaped(&factor, &[groups.clone(), size.clone(), 1.into()])?);
    }
    let y = scaled(b, &rest, &inverse, Some(&factors[0]), Some(&factors[1]))?;
    let y = b.reshaped(&y, &x.shape)?;
    Ok(vec![cast_to(b, &y, given.dtype)?])
}

/// `x / (bias + alpha / size * sum of squares of channels around)^beta`.
fn lrn<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let given = cx.operand(0)?;
    if given.rank() < 2 {
        return Err(no_channels(given.rank()));
    }
    let x = &cast_to(b, given, wide(given.dtype))?;
    let size = cx.int("size", 1)?.max(1);
    let (alpha, beta, bias) = (cx.float("alpha", f64::from(1e-4f32))?, cx.float("beta", 0.75)?, cx.float("bias", 1.0)?);
    let mut before = vec![Dim::default(); x.rank()];
    let mut after = before.clone();
    before[1] = Dim::constant((size - 1) / 2);
    after[1] = Dim::constant(size / 2);
    let element = b.element(x.dtype)?;
    let zero = b.number(element, 0.0);
    let padded = b.padded(x, &before, &after, zero)?;
    let (value, out) = (b.value(&padded)?, b.filled(x.dtype, &x.shape, 0.0)?);
    let extents = b.empty(x.dtype, &[Dim::constant(size)])?;
    let rank = x.rank();
    let mut index: Vec<Expr> = (0..rank).map(Expr::Loop).collect();
    index[1] = Expr::Sum(vec![(1, 1), (rank, 1)], 0);
    let mut loops = vec![LoopKind::Parallel; rank];
    loops.push(LoopKind::Reduction);
    let op = Structured {
        loops,
        inputs: vec![(value, index), (extents, vec![Expr::Loop(rank)])],
        outputs: vec![(out, (0..rank).map(Expr::Loop).collect())],
    };
    let sum = b.structured(&op, |b, e| {
        let square = b.binary(ops::arith::MULF, e[0], e[0])?;
        Ok(vec![b.binary(ops::arith::ADDF, e[2], square)?])
    })?[0];
    let sum = Operand::value(x.dtype, x.shape.clone(), sum);
    let result = b.elementwise(&[x, &sum], x.dtype, |b, e| {
        let (factor, bias) = (b.number(element, alpha / size as f64), b.number(element, bias));
        let scaled = b.binary(ops::arith::MULF, e[1], factor)?;
        let base = b.binary(ops::arith::ADDF, scaled, bias)?;
        let exponent = b.number(element, -beta);
        let power = b.binary(ops::math::POWF, base, exponent)?;
        b.binary(ops::arith::MULF, e[0], power)
    })?;
    Ok(vec![cast_to(b, &result, given.dtype)?])
}

fn softmax<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>, log: bool) -> Results<'c> {
    let x = cx.operand(0)?;
    if cx.opset() >= 13 {
        let axis = cx.axis_attribute(-1, x.rank())?;
        return Ok(vec![softmax_over(b, x, &[axis], log)?]);
    }
    // Before version 13: over all dimensions from the axis on.
    let axis = cx.axis_attribute(1, x.rank())?;
    Ok(vec![softmax_over(b, x, &(axis..x.rank()).collect::<Vec<_>>(), log)?])
}

/// `exp(x - max) / sum`, or its logarithm; of 16 bits in f32, rounded once, as other runtimes do.
pub(super) fn softmax_over<'c>(
    b: &mut Builder<'c>,
    x: &Operand<'c>,
    axes: &[usize],
    log: bool,
) -> Result<Operand<'c>, Failure> {
    let (given, x) = (x.dtype, &cast_to(b, x, wide(x.dtype))?);
    let most = over(b, x, axes, Kind::Max)?;
    let most = kept(b, &most, x, axes)?;
    let rest = b.elementwise(&[x, &most], x.dtype, |b, e| b.binary(ops::arith::SUBF, e[0], e[1]))?;
    let powers = b.elementwise(&[&rest], x.dtype, |b, e| b.unary(ops::math::EXP, e[0]))?;
    let sum = over(b, &powers, axes, Kind::Sum)?;
    let sum = kept(b, &sum, x, axes)?;
    let result = if log {
        b.elementwise(&[&rest, &sum], x.dtype, |b, e| {
            let log = b.unary(ops::math::LOG, e[1])?;
            b.binary(ops::arith::SUBF, e[0], log)
        })?
    } else {
        b.elementwise(&[&powers, &sum], x.dtype, |b, e| b.binary(ops::arith::DIVF, e[0], e[1]))?
    };
    cast_to(b, &result, given)
}
