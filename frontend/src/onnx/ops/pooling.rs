//! Pooling over windows, and over whole images.

use super::compare::cast_to;
use super::convolution::Windows;
use super::reductions::{Kind, kept, mean, over};
use super::scalars::{add, both, clamped, indices, is_inside, like, mul, sub, wide};
use crate::onnx::operand::Operand;
use crate::onnx::predicate::{CmpI, Predicate};
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, DataType, Expr, Failure, LoopKind, NodeContext, Registry, Results, Structured, Tensor};
use monopour_ir::{Value, ops};
use std::rc::Rc;

pub(super) fn register(registry: &mut Registry) {
    registry.op("MaxPool", 1, max_pool, "");
    registry.op("AveragePool", 1, average_pool, "padding of images of unknown size");
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
    let kernel = cx.extents("kernel_shape")?.ok_or("attribute 'kernel_shape' is missing")?;
    Windows::of(cx, kernel, &x.shape[2..])
}

/// A reduction of windows of an image; elements of the padding are the first number.
fn pool<'c>(
    b: &mut Builder<'c>,
    x: &Operand<'c>,
    windows: &Windows,
    first: f64,
    body: impl FnOnce(&mut Builder<'c>, Value<'c>, Value<'c>) -> Result<Value<'c>, Failure>,
) -> Result<Operand<'c>, Failure> {
    let rank = windows.kernel.len();
    let full = [&x.shape[..x.rank() - rank], &windows.count].concat();
    // No loops over one image or channel.
    let (leading, image) = x.shape.split_at(x.rank() - rank);
    let leading: Vec<Dim> = leading.iter().filter(|d| !d.is(1)).cloned().collect();
    let lead = leading.len();
    let x = &b.reshaped(x, &[&leading, image].concat())?;
    let shape = [&leading[..], &windows.count].concat();
    // Vectors read a padded copy; reading in place with a choice per element took 3 to 100 times as long on a CPU.
    let padded = windows.pad(b, x, first)?;
    let (value, out) = (b.value(&padded)?, b.filled(x.dtype, &shape, first)?);
    let within = lead + rank;
    let mut op = over_windows(b, x, windows)?;
    op.outputs = vec![(out, (0..within).map(Expr::Loop).collect())];
    let index = (0..lead).map(Expr::Loop).chain((0..rank).map(|d| windows.index(d, lead + d, within + d))).collect();
    op.inputs.push((value, index));
    let value = b.structured(&op, |b, e| Ok(vec![body(b, e[1], e[2])?]))?[0];
    b.reshaped(&Operand::value(x.dtype, shape, value), &full)
}

/// The loops over windows and within them; an operand that is not read gives the latter their extents.
fn over_windows<'c>(b: &mut Builder<'c>, x: &Operand<'c>, windows: &Windows) -> Result<Structured<'c>, Failure> {
    let (rank, within) = (windows.kernel.len(), x.rank());
    let kernel: Vec<Dim> = windows.kernel.iter().map(|k| Dim::constant(*k)).collect();
    let extents = b.empty(x.dtype, &kernel)?;
    let kind = |d| if d < within { LoopKind::Parallel } else { LoopKind::Reduction };
    Ok(Structured {
        loops: (0..within + rank).map(kind).collect(),
        inputs: vec![(extents, (within..within + rank).map(Expr::Loop).collect())],
        outputs: vec![],
    })
}

/// The elements of a padded image, in a body over windows.
struct Places<'a, 'c> {
    source: Value<'c>,
    windows: &'a Windows,
    before: Vec<Value<'c>>,
    sizes: Vec<Value<'c>>,
    lead: usize,
}

impl<'a, 'c> Places<'a, 'c> {
    fn new(b: &mut Builder<'c>, x: &Operand<'c>, windows: &'a Windows) -> Result<Self, Failure> {
        let lead = x.rank() - windows.kernel.len();
        let (before, sizes) = (indices(b, &windows.before)?, indices(b, &x.shape)?);
        Ok(Self { source: b.value(x)?, windows, before, sizes, lead })
    }

    /// The element of the loops, whether it is one of the image, and its indices.
    fn element(&self, b: &mut Builder<'c>) -> Result<(Value<'c>, Value<'c>, Vec<Value<'c>>), Failure> {
        let mut place = (0..self.lead).map(|d| b.loop_index(d)).collect::<Result<Vec<_>, _>>()?;
        let rank = self.windows.kernel.len();
        let mut inside: Option<Value<'c>> = None;
        for d in 0..rank {
            let (window, within) = (b.loop_index(self.lead + d)?, b.loop_index(self.lead + rank + d)?);
            let stride = like(b, window, self.windows.strides[d] as f64);
            let dilation = like(b, window, self.windows.dilations[d] as f64);
            let (start, moved) = (mul(b, window, stride)?, mul(b, within, dilation)?);
            let at = add(b, start, moved)?;
            let at = sub(b, at, self.before[d])?;
            let size = self.sizes[self.lead + d];
            let is_in = is_inside(b, at, size)?;
            inside = Some(inside.map_or(Ok(is_in), |inside| both(b, inside, is_in))?);
            place.push(clamped(b, at, size)?);
        }
        let element = b.read(self.source, &place)?;
        Ok((element, inside.ok_or("its windows have no dimensions")?, place))
    }
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
    if cx.wants(1) {
        return max_pool_with_indices(b, cx, &windows, first);
    }
    Ok(vec![pool(b, x, &windows, first, |b, e, so_far| b.binary(name, so_far, e))?])
}

/// The maxima with their places among the elements of the image.
fn max_pool_with_indices<'c>(
    b: &mut Builder<'c>,
    cx: &NodeContext<'_, 'c>,
    windows: &Windows,
    first: f64,
) -> Results<'c> {
    let x = cx.operand(0)?;
    let (rank, lead) = (windows.kernel.len(), x.rank() - windows.kernel.len());
    let shape = [&x.shape[..lead], &windows.count].concat();
    let columns_first = cx.flag("storage_order", false)?;
    let order: Vec<usize> =
        (0..lead).chain((0..rank).map(|d| lead + if columns_first { rank - 1 - d } else { d })).collect();
    let all: Vec<Expr> = (0..x.rank()).map(Expr::Loop).collect();
    let (best, place) = (b.filled(x.dtype, &shape, first)?, b.filled(DataType::I64, &shape, -1.0)?);
    let mut op = over_windows(b, x, windows)?;
    op.outputs = vec![(best, all.clone()), (place, all)];
    let places = Places::new(b, x, windows)?;
    let greater = Predicate::greater(x.dtype);
    let results = b.structured(&op, |b, e| {
        let (element, inside, at) = places.element(b)?;
        let mut index = at[order[0]];
        for d in &order[1..] {
            let scaled = mul(b, index, places.sizes[*d])?;
            index = add(b, scaled, at[*d])?;
        }
        let index = b.op(ops::arith::INDEX_CAST, &[index], e[2].ty())?;
        let none = like(b, e[2], 0.0);
        let (is_first, is_more) = (b.compare(CmpI::Slt, e[2], none)?, b.compare(greater, element, e[1])?);
        let better = b.binary(ops::arith::ORI, is_first, is_more)?;
        let better = both(b, better, inside)?;
        Ok(vec![b.select(better, element, e[1])?, b.select(better, index, e[2])?])
    })?;
    Ok(vec![Operand::value(x.dtype, shape.clone(), results[0]), Operand::value(DataType::I64, shape, results[1])])
}

fn average_pool<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let given = cx.operand(0)?;
    let windows = windows(cx, given)?;
    let x = &cast_to(b, given, wide(given.dtype))?;
    let sum = pool(b, x, &windows, 0.0, |b, e, so_far| b.binary(ops::arith::ADDF, so_far, e))?;
    let counts = counts(cx, &windows, x)?;
    let result = b.elementwise(&[&sum, &counts], x.dtype, |b, e| b.binary(ops::arith::DIVF, e[0], e[1]))?;
    Ok(vec![cast_to(b, &result, given.dtype)?])
}

/// Most windows whose elements are counted at import.
const MAX_COUNTS: f64 = (1_u32 << 22) as f64;

/// The number of elements of each window that are averaged.
fn counts<'c>(cx: &NodeContext, windows: &Windows, x: &Operand<'c>) -> Result<Operand<'c>, Failure> {
    let all = cx.flag("count_include_pad", false)?;
    let rank = windows.kernel.len();
    let made = |shape: Vec<i64>, values: &[f64]| {
        let tensor = Tensor::from_f64(x.dtype, shape, values).ok_or("its elements are not floats")?;
        Ok::<_, Failure>(Operand::constant(Rc::new(tensor)))
    };
    if windows.is_bare() {
        return made(vec![], &[windows.kernel.iter().map(|k| *k as f64).product()]);
    }
    let number = |d: &Dim| d.as_constant().ok_or("padding of unknown size is not supported");
    let pads = cx.ints("pads")?.unwrap_or_else(|| vec![0; 2 * rank]);
    let windows_of = |d: &Dim| number(d).map(|n| n as f64);
    if windows.count.iter().map(windows_of).product::<Result<f64, _>>()? > MAX_COUNTS {
        return Err("averages of so many padded windows are not supported".into());
    }
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
    let given = cx.operand(0)?;
    let windows = windows(cx, given)?;
    let x = &cast_to(b, given, wide(given.dtype))?;
    let p = cx.int("p", 2)?;
    let sum = pool(b, x, &windows, 0.0, |b, e, so_far| {
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
    Ok(vec![cast_to(b, &result, given.dtype)?])
}
