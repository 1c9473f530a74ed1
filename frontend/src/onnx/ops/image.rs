//! Images made of windows: columns summed, pooled elements put back, centers cut out or framed.

use super::compare::cast_to;
use super::scalars::{Made, add, both, clamped, div, indices, is_inside, like, mul, sub};
use super::scatter::last_updates;
use crate::onnx::operand::Operand;
use crate::onnx::predicate::CmpI;
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, DataType, Expr, Failure, LoopKind, NodeContext, Registry, Results, Structured};
use monopour_ir::{Value, ops};

pub(super) fn register(registry: &mut Registry) {
    registry.op("Col2Im", 18, col2im, "");
    registry.op("CenterCropPad", 18, center_crop_pad, "");
    registry.op("MaxUnpool", 9, max_unpool, "");
}

/// Windows along an axis, by which an element of the image finds those that it is in.
struct Cover<'c> {
    before: i64,
    stride: i64,
    dilation: i64,
    /// Number of windows.
    count: Value<'c>,
}

impl<'c> Cover<'c> {
    /// The window of which the element is at that place, and whether there is one.
    fn window(&self, b: &mut Builder<'c>, at: Value<'c>, within: Value<'c>) -> Result<(Value<'c>, Value<'c>), Failure> {
        let (before, stride) = (like(b, at, self.before as f64), like(b, at, self.stride as f64));
        let dilation = like(b, at, self.dilation as f64);
        let (from, reach) = (add(b, at, before)?, mul(b, within, dilation)?);
        let start = sub(b, from, reach)?;
        let (window, zero) = (div(b, start, stride)?, like(b, at, 0.0));
        let rest = b.binary(ops::arith::REMSI, start, stride)?;
        let (whole, negative) = (b.compare(CmpI::Eq, rest, zero)?, b.compare(CmpI::Slt, start, zero)?);
        // A start before the first window has no window, whatever its quotient.
        let minus = like(b, window, -1.0);
        let window = b.select(negative, minus, window)?;
        let inside = is_inside(b, window, self.count)?;
        Ok((clamped(b, window, self.count)?, both(b, whole, inside)?))
    }
}

/// An index of row-major elements.
fn flat<'c>(b: &mut Builder<'c>, at: &[Value<'c>], sizes: &[Value<'c>]) -> Made<'c> {
    let mut index = at[0];
    for (at, size) in at[1..].iter().zip(&sizes[1..]) {
        let scaled = mul(b, index, *size)?;
        index = add(b, scaled, *at)?;
    }
    Ok(index)
}

fn col2im<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    let (image, block) = (b.sizes_of(cx.operand(1)?)?, b.sizes_of(cx.operand(2)?)?);
    let rank = image.len();
    if x.rank() != 3 || rank == 0 || block.len() != rank {
        return Err("its columns, image and block do not fit".into());
    }
    let (pads, strides) = (cx.ints_of("pads", 2 * rank, 0)?, cx.ints_of("strides", rank, 1)?);
    let dilations = cx.ints_of("dilations", rank, 1)?;
    let area = block.iter().fold(Dim::constant(1), |n, d| n.mul(d));
    let channels = x.shape[1].floor_div(&area).ok_or("its block is empty")?;
    let (mut covers, mut counts) = (vec![], vec![]);
    for d in 0..rank {
        let span = block[d].plus(-1).times(dilations[d]).plus(1);
        let free = image[d].plus(pads[d] + pads[rank + d]).sub(&span);
        let count = free.floor_div(&strides[d].into()).ok_or("a stride is 0")?.plus(1);
        let count = b.index(&count)?;
        counts.push(count);
        covers.push(Cover { before: pads[d], stride: strides[d], dilation: dilations[d], count });
    }
    let shape = [&[x.shape[0].clone(), channels][..], &image].concat();
    let (source, sizes, area) = (b.value(x)?, indices(b, &block)?, b.index(&area)?);
    let (out, within) = (b.filled(x.dtype, &shape, 0.0)?, b.empty(x.dtype, &block)?);
    let first = 2 + rank;
    let op = Structured {
        loops: [vec![LoopKind::Parallel; first], vec![LoopKind::Reduction; rank]].concat(),
        inputs: vec![(within, (first..first + rank).map(Expr::Loop).collect())],
        outputs: vec![(out, (0..first).map(Expr::Loop).collect())],
    };
    let value = b.structured(&op, |b, e| {
        let at = (0..first + rank).map(|d| b.loop_index(d)).collect::<Result<Vec<_>, _>>()?;
        let (mut windows, mut valid) = (vec![], None);
        for (d, cover) in covers.iter().enumerate() {
            let (window, is_one) = cover.window(b, at[2 + d], at[first + d])?;
            windows.push(window);
            valid = Some(valid.map_or(Ok(is_one), |valid| both(b, valid, is_one))?);
        }
        let (place, column) = (flat(b, &at[first..], &sizes)?, flat(b, &windows, &counts)?);
        let row = mul(b, at[1], area)?;
        let row = add(b, row, place)?;
        let value = b.read(source, &[at[0], row, column])?;
        let sum = add(b, e[1], value)?;
        Ok(vec![b.select(valid.ok_or("no axis")?, sum, e[1])?])
    })?[0];
    Ok(vec![Operand::value(x.dtype, shape, value)])
}

fn center_crop_pad<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    let sizes = b.sizes_of(cx.operand(1)?)?;
    let axes: Vec<usize> = match cx.ints("axes")? {
        Some(axes) => axes.into_iter().map(|a| cx.axis(a, x.rank())).collect::<Result<_, _>>()?,
        None => (0..x.rank()).collect(),
    };
    if axes.len() != sizes.len() {
        return Err("its sizes are not one for each axis".into());
    }
    let (zero, two) = (Dim::default(), Dim::constant(2));
    let (mut shape, mut first, mut before) = (x.shape.clone(), vec![zero.clone(); x.rank()], vec![zero; x.rank()]);
    let mut framed = false;
    for (axis, size) in axes.iter().zip(&sizes) {
        let own = &x.shape[*axis];
        let half = |n: &Dim| n.at_least(&Dim::default()).floor_div(&two).unwrap_or_default();
        (first[*axis], before[*axis]) = (half(&own.sub(size)), half(&size.sub(own)));
        framed |= size.sub(own).at_least(&Dim::default()) != Dim::default();
        shape[*axis] = size.clone();
    }
    if !framed {
        return Ok(vec![b.slice(x, &first, &shape, &vec![1; x.rank()])?]);
    }
    let (source, element) = (b.value(x)?, b.element(x.dtype)?);
    let (first, before, own) = (indices(b, &first)?, indices(b, &before)?, indices(b, &x.shape)?);
    let result = b.computed(x.dtype, &shape, |b, at| {
        let (mut place, mut inside) = (vec![], None);
        for d in 0..at.len() {
            let moved = add(b, at[d], first[d])?;
            let moved = sub(b, moved, before[d])?;
            let is_in = is_inside(b, moved, own[d])?;
            inside = Some(inside.map_or(Ok(is_in), |inside| both(b, inside, is_in))?);
            place.push(clamped(b, moved, own[d])?);
        }
        let value = b.read(source, &place)?;
        let none = b.number(element, 0.0);
        inside.map_or(Ok(value), |inside| b.select(inside, value, none))
    })?;
    Ok(vec![result])
}

fn max_unpool<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (x, places) = (cx.operand(0)?, cx.operand(1)?);
    let kernel = cx.extents("kernel_shape")?.ok_or("attribute 'kernel_shape' is missing")?;
    let rank = kernel.len();
    if rank == 0 || x.rank() != rank + 2 || places.shape != x.shape {
        return Err("its indices and windows do not fit its operand".into());
    }
    let (strides, pads) = (cx.ints_of("strides", rank, 1)?, cx.ints_of("pads", 2 * rank, 0)?);
    let mut whole = x.shape[..2].to_vec();
    for d in 0..rank {
        let size = x.shape[2 + d].plus(-1).times(strides[d]).plus(kernel[d] - pads[d] - pads[rank + d]);
        whole.push(size);
    }
    let shape = match cx.optional(2) {
        Some(shape) => b.sizes_of(shape)?,
        None => whole.clone(),
    };
    if shape.len() != whole.len() {
        return Err("its shape is not of the operand's rank".into());
    }
    let (volume, one) = (whole.iter().fold(Dim::constant(1), |n, d| n.mul(d)), Dim::constant(1));
    let flat_places = b.reshaped(places, &[places.elements()])?;
    let flat_places = cast_to(b, &flat_places, DataType::I32)?;
    let given = b.reshaped(x, &[x.elements(), one.clone()])?;
    let rows = [volume, one];
    let zeros = Operand::value(x.dtype, rows.to_vec(), b.filled(x.dtype, &rows, 0.0)?);
    let spread = last_updates(b, (&zeros, &given), &flat_places)?;
    let spread = b.reshaped(&spread, &whole)?;
    if shape == whole {
        return Ok(vec![spread]);
    }
    let (sizes, source) = (indices(b, &whole)?, b.value(&spread)?);
    let result = b.computed(x.dtype, &shape, |b, at| {
        let (mut place, mut within) = (vec![], None);
        for (at, size) in at.iter().zip(&sizes) {
            let is_one = is_inside(b, *at, *size)?;
            place.push(clamped(b, *at, *size)?);
            within = Some(within.map_or(Ok(is_one), |others| both(b, others, is_one))?);
        }
        let element = b.read(source, &place)?;
        let none = like(b, element, 0.0);
        b.select(within.ok_or("no axis")?, element, none)
    })?;
    Ok(vec![result])
}
