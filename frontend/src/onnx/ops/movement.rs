//! Elements moved: transposes, padding, repetition, gathers.

use super::scalars::clamped;
use super::shapes::{broadcast_to, scalar};
use super::slices::indexed;
use crate::onnx::operand::Operand;
use crate::onnx::predicate::CmpI;
use crate::onnx::symbolic::Dim;
use crate::onnx::tensor::MAX_ELEMENTS;
use crate::onnx::{Builder, Failure, NodeContext, Registry, Results, fold};
use monopour_ir::{Type, Value, ops};

pub(super) fn register(registry: &mut Registry) {
    registry.op("Transpose", 1, transpose, "");
    registry.op("Pad", 2, pad, "axes that are read at run time");
    registry.op("Tile", 6, tile, "");
    registry.op("Gather", 1, gather, "");
    registry.op("DepthToSpace", 1, depth_to_space, "");
    registry.op("SpaceToDepth", 1, space_to_depth, "");
}

fn transpose<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    let order: Vec<usize> = match cx.ints("perm")? {
        Some(perm) => perm.into_iter().map(|p| cx.axis(p, x.rank())).collect::<Result<_, _>>()?,
        None => (0..x.rank()).rev().collect(),
    };
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if sorted != (0..x.rank()).collect::<Vec<_>>() {
        return Err(format!("{order:?} is not an order of {} dimensions", x.rank()).into());
    }
    if let Some(own) = x.static_shape().filter(|_| x.known.is_some()) {
        let strides = fold::strides(&own);
        let (shape, moved): (Vec<i64>, Vec<i64>) = order.iter().map(|d| (own[*d], strides[*d])).unzip();
        if let Some(folded) = fold::pick(x, &shape, fold::positions(&shape, &moved, 0)) {
            return Ok(vec![folded]);
        }
    }
    Ok(vec![b.permuted(x, &order)?])
}

fn pad<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    let pads = if cx.opset() < 11 {
        cx.ints("pads")?.ok_or("its padding is missing")?.into_iter().map(Dim::constant).collect()
    } else {
        paddings(b, cx.operand(1)?)?
    };
    // Sums of larger ones wrap.
    if let Some(pad) = pads.iter().filter_map(Dim::as_constant).find(|pad| pad.unsigned_abs() > MAX_ELEMENTS as u64) {
        return Err(format!("a padding of {pad} elements is too large").into());
    }
    if cx.is_read(18, 3) {
        return Err("its axes follow from data, which is not supported".into());
    }
    let axes = match cx.optional(3) {
        Some(axes) => {
            cx.known_ints(axes, "axes")?.into_iter().map(|a| cx.axis(a, x.rank())).collect::<Result<_, _>>()?
        }
        None => (0..x.rank()).collect::<Vec<_>>(),
    };
    if pads.len() != 2 * axes.len() {
        return Err(format!("{} paddings are not two for each of {} axes", pads.len(), axes.len()).into());
    }
    let (mut before, mut after) = (vec![Dim::default(); x.rank()], vec![Dim::default(); x.rank()]);
    for (at, axis) in axes.iter().enumerate() {
        before[*axis] = pads[at].clone();
        after[*axis] = pads[axes.len() + at].clone();
    }
    let mode = cx.string("mode", "constant")?;
    if mode != "constant" {
        return mirrored(b, x, &before, &after, &mode);
    }
    let element = b.element(x.dtype)?;
    let number = match cx.optional(2).filter(|_| cx.opset() >= 11) {
        Some(value) => scalar(b, value)?,
        None => b.number(element, cx.float("value", 0.0)?),
    };
    // Negative padding is a slice.
    let cut = |d: &Dim| d.times(-1).at_least(&Dim::default());
    let added = |d: &Dim| d.at_least(&Dim::default());
    let first: Vec<Dim> = before.iter().map(cut).collect();
    let last: Vec<Dim> = after.iter().map(cut).collect();
    let mut part = x.clone();
    if first.iter().chain(&last).any(|d| !d.is(0)) {
        let shape: Vec<Dim> =
            x.shape.iter().zip(first.iter().zip(&last)).map(|(size, (f, l))| size.sub(f).sub(l)).collect();
        part = b.slice(x, &first, &shape, &vec![1; x.rank()])?;
    }
    let (low, high): (Vec<Dim>, Vec<Dim>) = (before.iter().map(added).collect(), after.iter().map(added).collect());
    if low.iter().chain(&high).all(|d| d.is(0)) {
        return Ok(vec![part]);
    }
    Ok(vec![b.padded(&part, &low, &high, number)?])
}

/// Paddings as sizes; one that is read at run time and negative is that size with the opposite sign.
fn paddings<'c>(b: &mut Builder<'c>, x: &Operand<'c>) -> Result<Vec<Dim>, Failure> {
    if let Some(sizes) = x.as_sizes() {
        return Ok(sizes);
    }
    let mut out = vec![];
    for value in b.elements_of(x)? {
        let zero = b.int(value.ty(), 0);
        let minus = b.binary(ops::arith::SUBI, zero, value)?;
        let (added, cut) = (b.binary(ops::arith::MAXSI, value, zero)?, b.binary(ops::arith::MAXSI, minus, zero)?);
        let (added, cut) = (b.new_symbol(added), b.new_symbol(cut));
        out.push(added.sub(&cut));
    }
    Ok(out)
}

/// Padding with elements of the operand.
fn mirrored<'c>(b: &mut Builder<'c>, x: &Operand<'c>, before: &[Dim], after: &[Dim], mode: &str) -> Results<'c> {
    let shape: Vec<Dim> =
        x.shape.iter().zip(before.iter().zip(after)).map(|(d, (low, high))| d.add(low).add(high)).collect();
    let source = b.value(x)?;
    let low: Vec<Value> = before.iter().map(|d| b.index(d)).collect::<Result<_, _>>()?;
    let sizes: Vec<Value> = x.shape.iter().map(|d| b.index(d)).collect::<Result<_, _>>()?;
    let mode = match mode {
        "reflect" => Mode::Reflect,
        "edge" => Mode::Edge,
        "wrap" => Mode::Wrap,
        other => return Err(format!("mode '{other}' is not supported").into()),
    };
    let once: Vec<bool> = (0..x.rank()).map(|d| is_met_once(&x.shape[d], [&before[d], &after[d]])).collect();
    let result = indexed(b, x, shape, |b, at| {
        let mut place = vec![];
        for (d, at) in at.iter().enumerate() {
            if before[d].is(0) && after[d].is(0) {
                place.push(*at);
                continue;
            }
            let at = b.binary(ops::arith::SUBI, *at, low[d])?;
            let reflects_once = matches!(mode, Mode::Reflect) && once[d];
            place.push(if reflects_once { reflected_once(b, at, sizes[d])? } else { mode.place(b, at, sizes[d])? });
        }
        Ok((source, place))
    })?;
    Ok(vec![result])
}

/// Whether what is added on either side is less than the size: no element is reflected twice.
fn is_met_once(size: &Dim, added: [&Dim; 2]) -> bool {
    let number = |dim: &Dim| dim.as_constant();
    number(size).is_some_and(|size| added.into_iter().all(|n| number(n).is_some_and(|n| (0..size).contains(&n))))
}

/// The index of an element that is reflected at most once, without a remainder: `last - |last - |at||`.
fn reflected_once<'c>(b: &mut Builder<'c>, at: Value<'c>, size: Value<'c>) -> Result<Value<'c>, Failure> {
    let (zero, one) = (b.int(at.ty(), 0), b.int(at.ty(), 1));
    let last = b.binary(ops::arith::SUBI, size, one)?;
    let magnitude = |b: &mut Builder<'c>, x: Value<'c>| {
        let minus = b.binary(ops::arith::SUBI, zero, x)?;
        b.binary(ops::arith::MAXSI, x, minus)
    };
    let at = magnitude(b, at)?;
    let behind = b.binary(ops::arith::SUBI, last, at)?;
    let behind = magnitude(b, behind)?;
    b.binary(ops::arith::SUBI, last, behind)
}

#[derive(Clone, Copy)]
enum Mode {
    Reflect,
    Edge,
    Wrap,
}

impl Mode {
    /// The index within the operand for one that may be outside.
    fn place<'c>(self, b: &mut Builder<'c>, at: Value<'c>, size: Value<'c>) -> Result<Value<'c>, Failure> {
        match self {
            Mode::Edge => clamped(b, at, size),
            Mode::Wrap => modulo(b, at, size),
            Mode::Reflect => {
                // A zigzag of period 2 * (size - 1).
                let one = b.int(at.ty(), 1);
                let last = b.binary(ops::arith::SUBI, size, one)?;
                let two = b.int(at.ty(), 2);
                let period = b.binary(ops::arith::MULI, last, two)?;
                let period = b.binary(ops::arith::MAXSI, period, one)?;
                let at = modulo(b, at, period)?;
                let back = b.binary(ops::arith::SUBI, period, at)?;
                b.binary(ops::arith::MINSI, at, back)
            }
        }
    }
}

/// The remainder that is not negative, of a positive divisor.
fn modulo<'c>(b: &mut Builder<'c>, x: Value<'c>, by: Value<'c>) -> Result<Value<'c>, Failure> {
    let rest = b.binary(ops::arith::REMSI, x, by)?;
    let moved = b.binary(ops::arith::ADDI, rest, by)?;
    b.binary(ops::arith::REMSI, moved, by)
}

fn tile<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    let repeats = b.sizes_of(cx.operand(1)?)?;
    if repeats.len() != x.rank() {
        return Err("its repetitions are not one for each dimension".into());
    }
    let (mut apart, mut repeated, mut shape) = (vec![], vec![], vec![]);
    for (size, times) in x.shape.iter().zip(&repeats) {
        apart.extend([Dim::constant(1), size.clone()]);
        repeated.extend([times.clone(), size.clone()]);
        shape.push(size.mul(times));
    }
    let apart = b.reshaped(x, &apart)?;
    let repeated = broadcast_to(b, &apart, repeated)?;
    Ok(vec![b.reshaped(&repeated, &shape)?])
}

fn gather<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (x, indices) = (cx.operand(0)?, cx.operand(1)?);
    let axis = cx.axis_attribute(0, x.rank())?;
    let shape: Vec<Dim> = [&x.shape[..axis], &indices.shape, &x.shape[axis + 1..]].concat();
    if let Some(folded) = folded_gather(x, indices, axis, &shape) {
        return Ok(vec![folded]);
    }
    if let Some(at) = indices.as_ints().filter(|at| at.len() == 1) {
        // One index: a slice.
        let size = &x.shape[axis];
        let at = if at[0] < 0 { size.plus(at[0]) } else { Dim::constant(at[0]) };
        if size.as_constant().zip(at.as_constant()).is_some_and(|(size, at)| !(0..size).contains(&at)) {
            return Err(format!("index {at} is not in a dimension of size {size}").into());
        }
        let (mut first, mut part) = (vec![Dim::default(); x.rank()], x.shape.clone());
        (first[axis], part[axis]) = (at, Dim::constant(1));
        let slice = b.slice(x, &first, &part, &vec![1; x.rank()])?;
        return Ok(vec![b.reshaped(&slice, &shape)?]);
    }
    Ok(vec![gather_by_data(b, x, indices, axis, shape)?])
}

/// The rows of a table at these indices.
pub(super) fn gather_rows<'c>(
    b: &mut Builder<'c>,
    table: &Operand<'c>,
    indices: &Operand<'c>,
) -> Result<Operand<'c>, Failure> {
    if table.rank() == 0 {
        return Err("a table of one number has no rows".into());
    }
    gather_along(b, table, indices, 0)
}

/// The parts of a tensor at these indices of a dimension.
pub(super) fn gather_along<'c>(
    b: &mut Builder<'c>,
    x: &Operand<'c>,
    indices: &Operand<'c>,
    axis: usize,
) -> Result<Operand<'c>, Failure> {
    let shape = [&x.shape[..axis], &indices.shape, &x.shape[axis + 1..]].concat();
    gather_by_data(b, x, indices, axis, shape)
}

fn gather_by_data<'c>(
    b: &mut Builder<'c>,
    x: &Operand<'c>,
    indices: &Operand<'c>,
    axis: usize,
    shape: Vec<Dim>,
) -> Result<Operand<'c>, Failure> {
    let (source, size) = (b.value(x)?, b.index(&x.shape[axis])?);
    // Dimensions of size 1 behind the indices make them broadcast to the result.
    let behind = vec![Dim::constant(1); x.rank() - axis - 1];
    let indices_view = b.reshaped(indices, &[&indices.shape[..], &behind].concat())?;
    let (rank, moved) = (x.rank(), indices.rank());
    b.elementwise_of_shape(&[&indices_view], x.dtype, shape, |b, e| {
        let place = in_range(b, e[0], size)?;
        let mut at = vec![];
        for d in 0..rank {
            at.push(match d {
                _ if d == axis => place,
                _ if d < axis => b.loop_index(d)?,
                _ => b.loop_index(d + moved - 1)?,
            });
        }
        b.read(source, &at)
    })
}

/// An index as `index`, counted from the end where negative.
pub(super) fn in_range<'c>(b: &mut Builder<'c>, at: Value<'c>, size: Value<'c>) -> Result<Value<'c>, Failure> {
    let index = Type::index(b.context());
    let at = b.op(ops::arith::INDEX_CAST, &[at], index)?;
    let zero = b.int(index, 0);
    // Signed less.
    let negative = b.compare(CmpI::Slt, at, zero)?;
    let moved = b.binary(ops::arith::ADDI, at, size)?;
    b.select(negative, moved, at)
}

fn folded_gather<'c>(x: &Operand<'c>, indices: &Operand<'c>, axis: usize, shape: &[Dim]) -> Option<Operand<'c>> {
    let own = x.static_shape().filter(|_| x.known.is_some())?;
    let at = indices.as_ints()?;
    let numbers: Vec<i64> = shape.iter().map(Dim::as_constant).collect::<Option<_>>()?;
    let size = own[axis];
    let at: Vec<i64> = at.into_iter().map(|i| if i < 0 { i + size } else { i }).collect();
    if at.iter().any(|i| !(0..size).contains(i)) {
        return None;
    }
    let inner: i64 = own[axis + 1..].iter().product();
    let outer: i64 = own[..axis].iter().product();
    let positions =
        (0..outer).flat_map(|o| at.iter().flat_map(move |i| (0..inner).map(move |n| (o * size + i) * inner + n)));
    let positions: Vec<usize> = positions.filter_map(|p| usize::try_from(p).ok()).collect();
    fold::pick(x, &numbers, positions.into_iter())
}

/// Blocks of channels, rows and columns, and their order in the result.
fn blocks<'c>(b: &mut Builder<'c>, x: &Operand<'c>, apart: &[Dim], order: &[usize], shape: &[Dim]) -> Results<'c> {
    let apart = b.reshaped(x, apart)?;
    let moved = b.permuted(&apart, order)?;
    Ok(vec![b.reshaped(&moved, shape)?])
}

fn depth_to_space<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    let size = cx.int("blocksize", 0)?;
    let [n, c, h, w] = &x.shape[..] else { return Err("its operand is not of rank 4".into()) };
    let block = Dim::constant(size);
    let depth = c.exact_quotient(&block.mul(&block)).ok_or("its channels are not a multiple of the block")?;
    let shape = [n.clone(), depth.clone(), h.times(size), w.times(size)];
    let (n, h, w) = (n.clone(), h.clone(), w.clone());
    if cx.string("mode", "DCR")? == "CRD" {
        let apart = [n, depth, block.clone(), block, h, w];
        return blocks(b, x, &apart, &[0, 1, 4, 2, 5, 3], &shape);
    }
    let apart = [n, block.clone(), block, depth, h, w];
    blocks(b, x, &apart, &[0, 3, 4, 1, 5, 2], &shape)
}

fn space_to_depth<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    let size = cx.int("blocksize", 0)?;
    let [n, c, h, w] = &x.shape[..] else { return Err("its operand is not of rank 4".into()) };
    let block = Dim::constant(size);
    let rows = h.exact_quotient(&block).ok_or("its rows are not a multiple of the block")?;
    let columns = w.exact_quotient(&block).ok_or("its columns are not a multiple of the block")?;
    let shape = [n.clone(), c.times(size * size), rows.clone(), columns.clone()];
    let apart = [n.clone(), c.clone(), rows, block.clone(), columns, block];
    let order = if cx.string("mode", "DCR")? == "CRD" { [0, 1, 3, 5, 2, 4] } else { [0, 3, 5, 1, 2, 4] };
    blocks(b, x, &apart, &order, &shape)
}
