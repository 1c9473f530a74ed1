//! Images sampled at places that a tensor holds: grids, offsets of windows.

use super::convolution::{Windows, add_bias};
use super::resize::cubic_weight;
use super::scalars::{
    Made, add, between, clamped, div, element, indices, is_inside, least, like, mul, narrowed, sub, to_float, to_index,
    wide,
};
use crate::onnx::Results;
use crate::onnx::operand::Operand;
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, DataType, Expr, Failure, NodeContext, Registry};
use monopour_ir::{Value, ops};

pub(super) fn register(registry: &mut Registry) {
    registry.op("GridSample", 16, grid_sample, "");
    registry.op("AffineGrid", 20, affine_grid, "");
    registry.op("DeformConv", 19, deform_conv, "images of other than two dimensions");
}

/// What lies beyond the image.
#[derive(Clone, Copy, PartialEq)]
enum Padding {
    Zeros,
    Border,
    Reflection,
}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Nearest,
    Linear,
    Cubic,
}

/// An axis of an image.
struct Axis<'c> {
    size: Value<'c>,
    length: Value<'c>,
    padding: Padding,
    /// Whether -1 and 1 are the middles of the first and last elements, not their borders.
    corners: bool,
}

/// An index within the image with a weight, which is none where it is 1, and whether it is inside.
type Tap<'c> = (Value<'c>, Option<Value<'c>>, Option<Value<'c>>);

impl<'c> Axis<'c> {
    fn new(
        b: &mut Builder<'c>,
        size: Value<'c>,
        sum: DataType,
        (padding, corners): (Padding, bool),
    ) -> Result<Self, Failure> {
        let ty = b.element(sum)?;
        Ok(Self { size, length: to_float(b, size, ty)?, padding, corners })
    }

    /// The place of a coordinate between -1 and 1.
    fn place(&self, b: &mut Builder<'c>, x: Value<'c>) -> Made<'c> {
        let (one, half) = (like(b, x, 1.0), like(b, x, 0.5));
        let from = add(b, x, one)?;
        if self.corners {
            let last = sub(b, self.length, one)?;
            let middle = mul(b, from, half)?;
            return mul(b, middle, last);
        }
        let scaled = mul(b, from, self.length)?;
        let moved = sub(b, scaled, one)?;
        mul(b, moved, half)
    }

    /// A place that is beyond the image brought back where the padding says so.
    fn within(&self, b: &mut Builder<'c>, x: Value<'c>) -> Made<'c> {
        let (zero, one, two) = (like(b, x, 0.0), like(b, x, 1.0), like(b, x, 2.0));
        let last = sub(b, self.length, one)?;
        match self.padding {
            Padding::Border => between(b, x, [zero, last]),
            Padding::Zeros => {
                // Further out there is nothing else.
                let (low, high) = (like(b, x, -4.0), like(b, x, 4.0));
                let high = add(b, self.length, high)?;
                between(b, x, [low, high])
            }
            Padding::Reflection => {
                let low = like(b, x, if self.corners { 0.0 } else { -0.5 });
                let span = if self.corners { last } else { self.length };
                let span = super::scalars::most(b, span, one)?;
                // A zigzag of period `2 * span`.
                let (period, moved) = (mul(b, span, two)?, sub(b, x, low)?);
                let turns = div(b, moved, period)?;
                let turns = b.unary(ops::math::FLOOR, turns)?;
                let whole = mul(b, turns, period)?;
                let rest = sub(b, moved, whole)?;
                let back = sub(b, period, rest)?;
                let place = least(b, rest, back)?;
                let place = add(b, place, low)?;
                let (low, high) = (like(b, x, -1.0), self.length);
                between(b, place, [low, high])
            }
        }
    }

    /// One tap at an index that may be outside.
    fn tap(&self, b: &mut Builder<'c>, at: Value<'c>, weight: Option<Value<'c>>) -> Result<Tap<'c>, Failure> {
        let inside = match self.padding {
            Padding::Zeros => Some(is_inside(b, at, self.size)?),
            _ => None,
        };
        let at = if self.padding == Padding::Reflection { self.reflected(b, at)? } else { at };
        Ok((clamped(b, at, self.size)?, weight, inside))
    }

    /// The index that another one beyond the image mirrors.
    fn reflected(&self, b: &mut Builder<'c>, at: Value<'c>) -> Made<'c> {
        let ty = self.length.ty();
        let float = to_float(b, at, ty)?;
        let place = self.within(b, float)?;
        let half = like(b, place, 0.5);
        // Of a whole number the mirror is one too.
        let rounded = add(b, place, half)?;
        let rounded = b.unary(ops::math::FLOOR, rounded)?;
        to_index(b, rounded)
    }

    /// The taps at a place.
    fn taps(&self, b: &mut Builder<'c>, place: Value<'c>, mode: Mode) -> Result<Vec<Tap<'c>>, Failure> {
        if mode == Mode::Nearest {
            let rounded = b.unary(ops::math::ROUNDEVEN, place)?;
            let place = self.within(b, rounded)?;
            let whole = b.unary(ops::math::FLOOR, place)?;
            let at = to_index(b, whole)?;
            return Ok(vec![self.tap(b, at, None)?]);
        }
        let place = self.within(b, place)?;
        let floor = b.unary(ops::math::FLOOR, place)?;
        let (ratio, first) = (sub(b, place, floor)?, to_index(b, floor)?);
        let mut out = vec![];
        let range = if mode == Mode::Cubic { -1..3 } else { 0..2 };
        for tap in range {
            let (moved, offset) = (like(b, first, f64::from(tap)), like(b, ratio, f64::from(tap)));
            let (at, distance) = (add(b, first, moved)?, sub(b, offset, ratio)?);
            let distance = b.unary(ops::math::ABSF, distance)?;
            let weight = if mode == Mode::Cubic {
                cubic_weight(b, distance, -0.75)?
            } else {
                let one = like(b, distance, 1.0);
                sub(b, one, distance)?
            };
            out.push(self.tap(b, at, Some(weight))?);
        }
        Ok(out)
    }
}

/// The sum of weighted elements at all combinations of taps, those outside being 0.
fn sampled<'c>(
    b: &mut Builder<'c>,
    source: (Value<'c>, DataType),
    lead: &[Value<'c>],
    axes: &[Vec<Tap<'c>>],
    sum: DataType,
) -> Made<'c> {
    let Some((taps, rest)) = axes.split_first() else { return element(b, source, lead, sum) };
    let mut total = None;
    for (at, weight, inside) in taps {
        let mut value = sampled(b, source, &[lead, &[*at]].concat(), rest, sum)?;
        if let Some(inside) = inside {
            let zero = like(b, value, 0.0);
            value = b.select(*inside, value, zero)?;
        }
        if let Some(weight) = weight {
            value = mul(b, value, *weight)?;
        }
        total = Some(match total {
            Some(total) => add(b, total, value)?,
            None => value,
        });
    }
    total.ok_or_else(|| "there is nothing to sum".into())
}

fn grid_sample<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (x, grid) = (cx.operand(0)?, cx.operand(1)?);
    let rank = x.rank().saturating_sub(2);
    if rank == 0 || grid.rank() != x.rank() || !grid.shape[rank + 1].is(rank as i64) || !grid.dtype.is_float() {
        return Err("its grid does not fit its image".into());
    }
    let mode = match cx.string("mode", "linear")?.as_str() {
        "linear" | "bilinear" => Mode::Linear,
        "cubic" | "bicubic" => Mode::Cubic,
        "nearest" => Mode::Nearest,
        other => return Err(format!("attribute 'mode' is '{other}'").into()),
    };
    let padding = match cx.string("padding_mode", "zeros")?.as_str() {
        "zeros" => Padding::Zeros,
        "border" => Padding::Border,
        "reflection" => Padding::Reflection,
        other => return Err(format!("attribute 'padding_mode' is '{other}'").into()),
    };
    let corners = cx.flag("align_corners", false)?;
    let shape = [&x.shape[..2], &grid.shape[1..=rank]].concat();
    let sum = if x.dtype.is_float() || mode != Mode::Nearest { wide(x.dtype) } else { x.dtype };
    let float = wide(grid.dtype);
    let (source, places) = ((b.value(x)?, x.dtype), (b.value(grid)?, grid.dtype));
    let sizes = indices(b, &x.shape[2..])?;
    let result = b.computed(x.dtype, &shape, |b, at| {
        let mut axes = vec![];
        for (d, size) in sizes.iter().enumerate() {
            let axis = Axis::new(b, *size, float, (padding, corners))?;
            // The last coordinate is the first one of the grid.
            let last = like(b, at[0], (rank - 1 - d) as f64);
            let coordinate = element(b, places, &[&at[..1], &at[2..], &[last]].concat(), float)?;
            let place = axis.place(b, coordinate)?;
            let mut taps = axis.taps(b, place, mode)?;
            for tap in &mut taps {
                if let Some(weight) = tap.1 {
                    tap.1 = Some(super::compare::convert(b, float, sum, weight)?);
                }
            }
            axes.push(taps);
        }
        let value = sampled(b, source, &at[..2], &axes, sum)?;
        if sum == x.dtype { Ok(value) } else { narrowed(b, value, sum, x.dtype) }
    })?;
    Ok(vec![result])
}

fn affine_grid<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (theta, corners) = (cx.operand(0)?, cx.flag("align_corners", false)?);
    let sizes = b.sizes_of(cx.operand(1)?)?;
    let rank = sizes.len().saturating_sub(2);
    let fits = theta.rank() == 3 && theta.shape[1].is(rank as i64) && theta.shape[2].is(rank as i64 + 1);
    if rank == 0 || !fits || !theta.dtype.is_float() {
        return Err("its matrices do not fit its size".into());
    }
    let shape = [&theta.shape[..1], &sizes[2..], &[Dim::constant(rank as i64)]].concat();
    let (source, sum) = ((b.value(theta)?, theta.dtype), wide(theta.dtype));
    let ty = b.element(sum)?;
    let extents = indices(b, &sizes[2..])?;
    let result = b.computed(theta.dtype, &shape, |b, at| {
        let row = at[rank + 1];
        let last = like(b, row, rank as f64);
        let mut total = element(b, source, &[at[0], row, last], sum)?;
        for (d, extent) in extents.iter().enumerate() {
            let column = like(b, row, (rank - 1 - d) as f64);
            let factor = element(b, source, &[at[0], row, column], sum)?;
            let coordinate = coordinate(b, [at[1 + d], *extent], corners, ty)?;
            let term = mul(b, factor, coordinate)?;
            total = add(b, total, term)?;
        }
        narrowed(b, total, sum, theta.dtype)
    })?;
    Ok(vec![result])
}

/// The coordinate between -1 and 1 of an element.
fn coordinate<'c>(
    b: &mut Builder<'c>,
    [at, extent]: [Value<'c>; 2],
    corners: bool,
    ty: monopour_ir::Type<'c>,
) -> Made<'c> {
    let (at, extent) = (to_float(b, at, ty)?, to_float(b, extent, ty)?);
    let (one, two) = (like(b, at, 1.0), like(b, at, 2.0));
    let twice = mul(b, at, two)?;
    let (moved, steps) = if corners {
        let steps = sub(b, extent, one)?;
        (twice, super::scalars::most(b, steps, one)?)
    } else {
        (add(b, twice, one)?, extent)
    };
    let part = div(b, moved, steps)?;
    sub(b, part, one)
}

fn deform_conv<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (x, w, offset) = (cx.operand(0)?, cx.operand(1)?, cx.operand(2)?);
    if x.rank() != 4 || w.rank() != 4 || offset.rank() != 4 {
        return Err("only images of two dimensions are supported".into());
    }
    let kernel: Option<Vec<i64>> = w.shape[2..].iter().map(Dim::as_constant).collect();
    let kernel = kernel.ok_or("its filter is of unknown size")?;
    let windows = Windows::of(cx, kernel, &x.shape[2..])?;
    let (groups, offset_groups) = (cx.int("group", 1)?, cx.int("offset_group", 1)?);
    let channels = x.shape[1].as_constant().ok_or("its channels are of unknown number")?;
    if groups < 1 || offset_groups < 1 || channels % offset_groups != 0 || channels % groups != 0 {
        return Err("its channels are not a multiple of its groups".into());
    }
    let columns = columns(b, cx, &windows, channels / offset_groups)?;
    let by = Dim::constant(groups);
    let per_group = w.shape[0].exact_quotient(&by).ok_or("its filters are not a multiple of its groups")?;
    let depth = x.shape[1].exact_quotient(&by).ok_or("its channels are not a multiple of its groups")?;
    // Loops: image, group, filter, row, column, channel, row and column of the window.
    let window = &w.shape[2..];
    let left = [&[x.shape[0].clone(), by.clone(), depth.clone()], window, &windows.count].concat();
    let left = b.reshaped(&columns, &left)?;
    let right = [&[by.clone(), per_group.clone(), depth], window].concat();
    let right = b.reshaped(w, &right)?;
    let loops = |all: &[usize]| all.iter().copied().map(Expr::Loop).collect::<Vec<_>>();
    let operands = [(b.value(&left)?, loops(&[0, 1, 5, 6, 7, 3, 4])), (b.value(&right)?, loops(&[1, 2, 5, 6, 7]))];
    let shape = [&[x.shape[0].clone(), by, per_group][..], &windows.count].concat();
    let product = b.products(operands, 8, x.dtype, (&shape, &[0, 1, 2, 3, 4]))?;
    let result = b.reshaped(&product, &[&[x.shape[0].clone(), w.shape[0].clone()][..], &windows.count].concat())?;
    Ok(vec![add_bias(b, result, cx.optional(3))?])
}

/// The elements of each window, sampled at their offsets: image, channel, place in the window, window.
fn columns<'c>(
    b: &mut Builder<'c>,
    cx: &NodeContext<'_, 'c>,
    windows: &Windows,
    per_group: i64,
) -> Result<Operand<'c>, Failure> {
    let (x, offset, mask) = (cx.operand(0)?, cx.operand(2)?, cx.optional(4));
    let sizes = windows.kernel.iter().map(|k| Dim::constant(*k)).collect::<Vec<_>>();
    let shape = [&x.shape[..2], &sizes, &windows.count].concat();
    let sum = wide(x.dtype);
    let ty = b.element(sum)?;
    let (source, offsets) = ((b.value(x)?, x.dtype), (b.value(offset)?, offset.dtype));
    let mask = mask.map(|m| Ok::<_, Failure>((b.value(m)?, m.dtype))).transpose()?;
    let extents = indices(b, &x.shape[2..])?;
    let before = indices(b, &windows.before)?;
    let columns = windows.kernel[1];
    b.computed(x.dtype, &shape, |b, at| {
        let mut index = |n: i64| like(b, at[0], n as f64);
        let (per_group, columns, two, one) = (index(per_group), index(columns), index(2), index(1));
        let area = index(windows.kernel.iter().product());
        let group = div(b, at[1], per_group)?;
        let row = mul(b, at[2], columns)?;
        let place = add(b, row, at[3])?;
        let first = mul(b, group, area)?;
        let place = add(b, first, place)?;
        let mut axes = vec![];
        let twice = mul(b, place, two)?;
        for d in 0..2 {
            let channel = if d == 0 { twice } else { add(b, twice, one)? };
            let moved = element(b, offsets, &[at[0], channel, at[4], at[5]], sum)?;
            let (stride, dilation) =
                (like(b, at[0], windows.strides[d] as f64), like(b, at[0], windows.dilations[d] as f64));
            let (window, within) = (mul(b, at[4 + d], stride)?, mul(b, at[2 + d], dilation)?);
            let start = add(b, window, within)?;
            let start = sub(b, start, before[d])?;
            let start = to_float(b, start, ty)?;
            let place = add(b, start, moved)?;
            let axis = Axis::new(b, extents[d], sum, (Padding::Zeros, true))?;
            axes.push(axis.taps(b, place, Mode::Linear)?);
        }
        let mut value = sampled(b, source, &at[..2], &axes, sum)?;
        if let Some(mask) = mask {
            let factor = element(b, mask, &[at[0], place, at[4], at[5]], sum)?;
            value = mul(b, value, factor)?;
        }
        narrowed(b, value, sum, x.dtype)
    })
}
