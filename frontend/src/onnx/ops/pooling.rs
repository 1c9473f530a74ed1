//! Pooling over windows, and over whole images.

use super::convolution::Windows;
use super::reductions::{Kind, kept, mean, over};
use crate::onnx::operand::Operand;
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, DataType, Expr, Failure, LoopKind, NodeContext, Registry, Results, Structured, Tensor};
use monopour_ir::{Value, ops};
use std::rc::Rc;

pub(super) fn register(registry: &mut Registry) {
    registry.op("MaxPool", 1, max_pool, "indices as a second result");
    registry.op("AveragePool", 1, average_pool, "");
    registry.op("LpPool", 2, lp_pool, "");
    registry.op(
        "GlobalAveragePool",
        1,
        |b, cx| {
            let x = cx.operand(0)?;
            global(b, x, mean)
        },
        "",
    );
    registry.op(
        "GlobalMaxPool",
        1,
        |b, cx| {
            let x = cx.operand(0)?;
            global(b, x, |b, x, axes| over(b, x, axes, Kind::Max))
        },
        "",
    );
}

/// A reduction of the whole image of each channel.
fn global<'c>(
    b: &mut Builder<'c>,
    x: &Operand<'c>,
    f: impl FnOnce(&mut Builder<'c>, &Operand<'c>, &[usize]) -> Result<Operand<'c>, Failure>,
) -> Results<'c> {
    let axes: Vec<usize> = (2..x.rank()).collect();
    let reduced = f(b, x, &axes)?;
    Ok(vec![kept(b, &reduced, x, &axes)?])
}

fn windows(cx: &NodeContext, x: &Operand) -> Result<Windows, Failure> {
    if x.rank() < 3 {
        return Err("its operand is not of rank 3 or more".into());
    }
    let kernel = cx.ints("kernel_shape")?.ok_or("attribute 'kernel_shape' is missing")?;
    Windows::of(cx, kernel, &x.shape[2..])
}

/// A reduction of windows of an image that is already padded.
fn pool<'c>(
    b: &mut Builder<'c>,
    x: &Operand<'c>,
    windows: &Windows,
    first: f64,
    body: impl FnOnce(&mut Builder<'c>, Value<'c>, Value<'c>) -> Result<Value<'c>, Failure>,
) -> Result<Operand<'c>, Failure> {
    let rank = windows.kernel.len();
    let lead = x.rank() - rank;
    let shape = [&x.shape[..lead], &windows.count].concat();
    let (value, out) = (b.value(x)?, b.filled(x.dtype, &shape, first)?);
    // An operand that is not read gives the loops within a window their extents.
    let kernel: Vec<Dim> = windows.kernel.iter().map(|k| Dim::constant(*k)).collect();
    let extents = b.empty(x.dtype, &kernel)?;
    let within = lead + rank;
    let index = (0..lead).map(Expr::Loop).chain((0..rank).map(|d| windows.index(d, lead + d, within + d))).collect();
    let kind = |d| if d < within { LoopKind::Parallel } else { LoopKind::Reduction };
    let op = Structured {
        loops: (0..within + rank).map(kind).collect(),
        inputs: vec![(value, index), (extents, (within..within + rank).map(Expr::Loop).collect())],
        outputs: vec![(out, (0..within).map(Expr::Loop).collect())],
    };
    let value = b.structured(&op, |b, e| Ok(vec![body(b, e[0], e[2])?]))?[0];
    Ok(Operand::value(x.dtype, shape, value))
}

fn max_pool<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    let windows = windows(cx, x)?;
    let (first, name) = match x.dtype {
        dtype if dtype.is_float() => (f64::NEG_INFINITY, ops::arith::MAXIMUMF),
        DataType::U8 => (0.0, ops::arith::MAXUI),
        DataType::I8 => (-128.0, ops::arith::MAXSI),
        other => return Err(format!("operands of {other} are not supported").into()),
    };
    let padded = windows.pad(b, x, first)?;
    Ok(vec![pool(b, &padded, &windows, first, |b, e, so_far| b.binary(name, so_far, e))?])
}

fn average_pool<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    let windows = windows(cx, x)?;
    let padded = windows.pad(b, x, 0.0)?;
    let sum = pool(b, &padded, &windows, 0.0, |b, e, so_far| b.binary(ops::arith::ADDF, so_far, e))?;
    let counts = counts(cx, &windows, x)?;
    let result = b.elementwise(&[&sum, &counts], x.dtype, |b, e| b.binary(ops::arith::DIVF, e[0], e[1]))?;
    Ok(vec![result])
}

/// The number of elements of each window that are averaged.
fn counts<'c>(cx: &NodeContext, windows: &Windows, x: &Operand<'c>) -> Result<Operand<'c>, Failure> {
    let all = cx.flag("count_include_pad", false)?;
    let rank = windows.kernel.len();
    let made = |shape: Vec<i64>, values: &[f64]| {
        let tensor = Tensor::from_f64(x.dtype, shape, values).ok_or("its elements are not floats")?;
        Ok::<_, Failure>(Operand::constant(Rc::new(tensor)))
    };
    if windows.is_bare() {
        return made(vec![], &[windows.kernel.iter().product::<i64>() as f64]);
    }
    let number = |d: &Dim| d.as_constant().ok_or("padding of unknown size is not supported");
    let pads = cx.ints("pads")?.unwrap_or_else(|| vec![0; 2 * rank]);
    let mut along = vec![];
    for d in 0..rank {
        let (size, before) = (number(&x.shape[2 + d])?, number(&windows.before[d])?);
        let (count, after) = (number(&windows.count[d])?, number(&windows.after[d])?);
        // Elements that only rounding up adds are never counted.
        let given = if cx.flag("ceil_mode", false)? { pads[rank + d] } else { after };
        let (low, high) = if all { (0, size + before + given) } else { (before, size + before) };
        let taken = |at: i64| {
            let places = (0..windows.kernel[d]).map(|k| at * windows.strides[d] + k * windows.dilations[d]);
            places.filter(|place| (low..high).contains(place)).count() as f64
        };
        along.push((0..count).map(taken).collect::<Vec<f64>>());
    }
    let shape: Vec<i64> = along.iter().map(|counts| counts.len() as i64).collect();
    let product = along
        .iter()
        .fold(vec![1.0], |product, counts| product.iter().flat_map(|n| counts.iter().map(move |c| n * c)).collect());
    if let Some(first) = product.first().filter(|first| product.iter().all(|n| n == *first)) {
        return made(vec![], &[*first]);
    }
    made(shape, &product)
}

fn lp_pool<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    let windows = windows(cx, x)?;
    let p = cx.int("p", 2)?;
    let padded = windows.pad(b, x, 0.0)?;
    let sum = pool(b, &padded, &windows, 0.0, |b, e, so_far| {
        let size = b.unary(ops::math::ABSF, e)?;
        let power = (1..p).try_fold(size, |power, _| b.binary(ops::arith::MULF, power, size))?;
        b.binary(ops::arith::ADDF, so_far, power)
    })?;
    let element = b.element(x.dtype)?;
    let result = b.elementwise(&[&sum], x.dtype, |b, e| match p {
        1 => Ok(e[0]),
        2 => b.unary(ops::math::SQRT, e[0]),
        _ => {
            let root = b.number(element, 1.0 / p as f64);
            b.binary(ops::math::POWF, e[0], root)
        }
    })?;
    Ok(vec![result])
}
