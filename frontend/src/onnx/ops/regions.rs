//! Pooling over regions of images.

use super::scalars::{
    Made, add, between, both, clamped, div, element, indices, like, most, mul, narrowed, neighbours, sub, to_float,
    to_index, wide,
};
use crate::onnx::Results;
use crate::onnx::operand::Operand;
use crate::onnx::predicate::{CmpF, CmpI};
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, DataType, Expr, Failure, LoopKind, NodeContext, Registry, Structured};
use monopour_ir::{Type, Value, ops};

pub(super) fn register(registry: &mut Registry) {
    registry.op("RoiAlign", 10, roi_align, "");
    registry.op("MaxRoiPool", 1, max_roi_pool, "");
}

/// A region along an axis: its start, and the size of a bin.
#[derive(Clone, Copy)]
struct Span<'c> {
    start: Value<'c>,
    bin: Value<'c>,
}

/// The attributes of RoiAlign, and its regions.
struct Regions<'c> {
    rois: (Value<'c>, DataType),
    sum: DataType,
    scale: f64,
    half_pixel: bool,
    pooled: [i64; 2],
}

impl<'c> Regions<'c> {
    /// Along axis `d`, rows first, of region `roi`.
    fn span(&self, b: &mut Builder<'c>, roi: Value<'c>, d: usize) -> Result<Span<'c>, Failure> {
        let mut edge = |column: usize| {
            let column = like(b, roi, column as f64);
            let edge = element(b, self.rois, &[roi, column], self.sum)?;
            let (scale, half) = (like(b, edge, self.scale), like(b, edge, 0.5));
            let scaled = mul(b, edge, scale)?;
            if self.half_pixel { sub(b, scaled, half) } else { Ok(scaled) }
        };
        let (start, end) = (edge(1 - d)?, edge(3 - d)?);
        let mut size = sub(b, end, start)?;
        if !self.half_pixel {
            let one = like(b, size, 1.0);
            size = most(b, size, one)?;
        }
        let bins = like(b, size, self.pooled[d] as f64);
        Ok(Span { start, bin: div(b, size, bins)? })
    }

    /// The number of samples of a bin: given, or one per element.
    fn samples(&self, b: &mut Builder<'c>, span: Span<'c>, ratio: i64) -> Made<'c> {
        if ratio > 0 {
            return Ok(like(b, span.bin, ratio as f64));
        }
        let range = [like(b, span.bin, 0.0), like(b, span.bin, 65536.0)];
        let count = b.unary(ops::math::CEIL, span.bin)?;
        between(b, count, range)
    }
}

/// Whether an operand is regions of that many numbers.
fn are_regions(rois: &Operand, numbers: i64) -> bool {
    rois.rank() == 2 && rois.shape[1].as_constant().is_none_or(|n| n == numbers)
}

fn roi_align<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (x, rois, batch) = (cx.operand(0)?, cx.operand(1)?, cx.operand(2)?);
    if x.rank() != 4 || !are_regions(rois, 4) || batch.rank() != 1 || !x.dtype.is_float() {
        return Err("its image is not of rank 4, or its regions are not four numbers each".into());
    }
    let default = if cx.opset() < 16 { "output_half_pixel" } else { "half_pixel" };
    let half_pixel = cx.string("coordinate_transformation_mode", default)? == "half_pixel";
    let (ratio, pooled) = (cx.int("sampling_ratio", 0)?, [cx.int("output_height", 1)?, cx.int("output_width", 1)?]);
    let sum = wide(x.dtype);
    let rois = (b.value(rois)?, rois.dtype);
    let regions = Regions { rois, sum, scale: cx.float("spatial_scale", 1.0)?, half_pixel, pooled };
    let extents = match ratio {
        1.. => [Dim::constant(ratio), Dim::constant(ratio)],
        _ => most_samples(b, &regions, &cx.operand(1)?.shape[0])?,
    };
    let takes_most = match cx.string("mode", "avg")?.as_str() {
        "avg" => false,
        "max" => true,
        other => return Err(format!("attribute 'mode' is '{other}'").into()),
    };
    let shape =
        [cx.operand(1)?.shape[0].clone(), x.shape[1].clone(), Dim::constant(pooled[0]), Dim::constant(pooled[1])];
    let source = (b.value(x)?, x.dtype);
    let sizes = indices(b, &x.shape[2..])?;
    let out = b.filled(sum, &shape, if takes_most { f64::NEG_INFINITY } else { 0.0 })?;
    let within = b.empty(sum, &extents)?;
    let batches = b.value(batch)?;
    let op = Structured {
        loops: [[LoopKind::Parallel; 4].as_slice(), &[LoopKind::Reduction; 2]].concat(),
        inputs: vec![(within, vec![Expr::Loop(4), Expr::Loop(5)]), (batches, vec![Expr::Loop(0)])],
        outputs: vec![(out, (0..4).map(Expr::Loop).collect())],
    };
    let images = b.index(&x.shape[0])?;
    let value = b.structured(&op, |b, e| {
        let at = (0..6).map(|d| b.loop_index(d)).collect::<Result<Vec<_>, _>>()?;
        let image = b.op(ops::arith::INDEX_CAST, &[e[1]], Type::index(b.context()))?;
        let lead = [clamped(b, image, images)?, at[1]];
        let sample = sample(b, &regions, &at, (source, lead), (&sizes, ratio))?;
        Ok(vec![sample.into(b, e[2], takes_most)?])
    })?[0];
    let result = Operand::value(sum, shape.to_vec(), value);
    let result = b.elementwise(&[&result], x.dtype, |b, e| {
        let mut value = e[0];
        if takes_most {
            // A region without samples.
            let (nothing, zero) = (like(b, value, f64::NEG_INFINITY), like(b, value, 0.0));
            let is_empty = b.compare(CmpF::Oeq, value, nothing)?;
            value = b.select(is_empty, zero, value)?;
        }
        narrowed(b, value, sum, x.dtype)
    })?;
    Ok(vec![result])
}

/// The largest numbers of samples along rows and columns of a bin.
fn most_samples<'c>(b: &mut Builder<'c>, regions: &Regions<'c>, count: &Dim) -> Result<[Dim; 2], Failure> {
    let mut out = vec![];
    for d in 0..2 {
        let samples = b.computed(regions.sum, std::slice::from_ref(count), |b, at| {
            let span = regions.span(b, at[0], d)?;
            regions.samples(b, span, 0)
        })?;
        let all = b.reduce(&samples, &[0], (regions.sum, 1.0), |b, e, so_far| most(b, so_far, e))?;
        let value = b.value(&all)?;
        let value = b.read(value, &[])?;
        let count = to_index(b, value)?;
        out.push(b.new_symbol(count));
    }
    Ok([out[0].clone(), out[1].clone()])
}

/// A bilinear sample: its four weighted elements, the number of samples of its bin, and whether it is one.
struct Sample<'c> {
    terms: Vec<Value<'c>>,
    count: Value<'c>,
    counts: Value<'c>,
}

impl<'c> Sample<'c> {
    /// With the samples so far.
    fn into(self, b: &mut Builder<'c>, so_far: Value<'c>, takes_most: bool) -> Made<'c> {
        let value = if takes_most {
            let all = self.terms[1..].iter().try_fold(self.terms[0], |x, y| most(b, x, *y))?;
            most(b, so_far, all)?
        } else {
            let all = self.terms[1..].iter().try_fold(self.terms[0], |x, y| add(b, x, *y))?;
            let part = div(b, all, self.count)?;
            add(b, so_far, part)?
        };
        b.select(self.counts, value, so_far)
    }
}

fn sample<'c>(
    b: &mut Builder<'c>,
    regions: &Regions<'c>,
    at: &[Value<'c>],
    (source, lead): ((Value<'c>, DataType), [Value<'c>; 2]),
    (sizes, ratio): (&[Value<'c>], i64),
) -> Result<Sample<'c>, Failure> {
    let ty = b.element(regions.sum)?;
    let (mut taps, mut counts, mut count, mut valid) = (vec![], None, None, None);
    for d in 0..2 {
        let span = regions.span(b, at[0], d)?;
        let samples = regions.samples(b, span, ratio)?;
        let (bin, step) = (to_float(b, at[2 + d], ty)?, to_float(b, at[4 + d], ty)?);
        let half = like(b, step, 0.5);
        let middle = add(b, step, half)?;
        let offset = mul(b, bin, span.bin)?;
        let inner = mul(b, middle, span.bin)?;
        let one = like(b, samples, 1.0);
        let at_least_one = most(b, samples, one)?;
        let inner = div(b, inner, at_least_one)?;
        let place = add(b, span.start, offset)?;
        let place = add(b, place, inner)?;
        let is_one = b.compare(CmpF::Olt, step, samples)?;
        let (inside, pair) = pair(b, place, sizes[d])?;
        taps.push(pair);
        let merged = |b: &mut Builder<'c>, x: Option<Value<'c>>, y| x.map_or(Ok(y), |x| both(b, x, y));
        counts = Some(merged(b, counts, is_one)?);
        valid = Some(merged(b, valid, inside)?);
        count = Some(match count {
            Some(count) => mul(b, count, at_least_one)?,
            None => at_least_one,
        });
    }
    let (counts, count, valid) = (counts.ok_or("no axis")?, count.ok_or("no axis")?, valid.ok_or("no axis")?);
    let mut terms = vec![];
    for (row, by_row) in &taps[0] {
        for (column, by_column) in &taps[1] {
            let value = element(b, source, &[lead[0], lead[1], *row, *column], regions.sum)?;
            let weight = mul(b, *by_row, *by_column)?;
            let term = mul(b, value, weight)?;
            let zero = like(b, term, 0.0);
            terms.push(b.select(valid, term, zero)?);
        }
    }
    Ok(Sample { terms, count, counts })
}

/// The two elements around a place with their weights, and whether it is in the image or just beside.
type Pair<'c> = (Value<'c>, Vec<(Value<'c>, Value<'c>)>);

fn pair<'c>(b: &mut Builder<'c>, place: Value<'c>, size: Value<'c>) -> Result<Pair<'c>, Failure> {
    let length = to_float(b, size, place.ty())?;
    let (minus, zero, one) = (like(b, place, -1.0), like(b, place, 0.0), like(b, place, 1.0));
    let (from, to) = (b.compare(CmpF::Ole, minus, place)?, b.compare(CmpF::Ole, place, length)?);
    let inside = both(b, from, to)?;
    let last = sub(b, length, one)?;
    Ok((inside, neighbours(b, place, [zero, last], size)?.into()))
}

fn max_roi_pool<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (x, rois) = (cx.operand(0)?, cx.operand(1)?);
    if x.rank() != 4 || !are_regions(rois, 5) || !x.dtype.is_float() {
        return Err("its image is not of rank 4, or its regions are not five numbers each".into());
    }
    let pooled = cx.ints("pooled_shape")?.filter(|p| p.len() == 2 && p.iter().all(|n| *n > 0));
    let pooled = pooled.ok_or("attribute 'pooled_shape' is missing")?;
    let scale = cx.float("spatial_scale", 1.0)?;
    let sum = wide(x.dtype);
    let shape = [&[rois.shape[0].clone(), x.shape[1].clone()][..], &[pooled[0].into(), pooled[1].into()]].concat();
    let (source, regions) = ((b.value(x)?, x.dtype), (b.value(rois)?, rois.dtype));
    let sizes = indices(b, &x.shape)?;
    let out = b.filled(sum, &shape, f64::NEG_INFINITY)?;
    // A bin is at most the image.
    let within = b.empty(sum, &x.shape[2..])?;
    let op = Structured {
        loops: [[LoopKind::Parallel; 4].as_slice(), &[LoopKind::Reduction; 2]].concat(),
        inputs: vec![(within, vec![Expr::Loop(4), Expr::Loop(5)])],
        outputs: vec![(out, (0..4).map(Expr::Loop).collect())],
    };
    let value = b.structured(&op, |b, e| {
        let at = (0..6).map(|d| b.loop_index(d)).collect::<Result<Vec<_>, _>>()?;
        let column = like(b, at[0], 0.0);
        let image = element(b, regions, &[at[0], column], sum)?;
        let range = [like(b, image, 0.0), like(b, image, 16_777_216.0)];
        let image = between(b, image, range)?;
        let image = to_index(b, image)?;
        let (mut place, mut inside) = (vec![clamped(b, image, sizes[0])?, at[1]], None);
        for d in 0..2 {
            let bounds = bin(b, regions, (at[0], at[2 + d]), (d, scale, pooled[d]), (sum, sizes[2 + d]))?;
            let position = add(b, bounds[0], at[4 + d])?;
            let is_in = b.compare(CmpI::Slt, position, bounds[1])?;
            place.push(clamped(b, position, sizes[2 + d])?);
            inside = Some(match inside {
                Some(inside) => both(b, inside, is_in)?,
                None => is_in,
            });
        }
        let value = element(b, source, &place, sum)?;
        let value = most(b, e[1], value)?;
        Ok(vec![b.select(inside.ok_or("no axis")?, value, e[1])?])
    })?[0];
    let result = Operand::value(sum, shape, value);
    let result = b.elementwise(&[&result], x.dtype, |b, e| {
        let (nothing, zero) = (like(b, e[0], f64::NEG_INFINITY), like(b, e[0], 0.0));
        let is_empty = b.compare(CmpF::Oeq, e[0], nothing)?;
        let value = b.select(is_empty, zero, e[0])?;
        narrowed(b, value, sum, x.dtype)
    })?;
    Ok(vec![result])
}

/// The first index of a bin and the one after its last.
fn bin<'c>(
    b: &mut Builder<'c>,
    regions: (Value<'c>, DataType),
    (roi, at): (Value<'c>, Value<'c>),
    (d, scale, bins): (usize, f64, i64),
    (sum, size): (DataType, Value<'c>),
) -> Result<[Value<'c>; 2], Failure> {
    let ty = b.element(sum)?;
    let mut edge = |column: usize| {
        let column = like(b, roi, column as f64);
        let edge = element(b, regions, &[roi, column], sum)?;
        let (scale, half) = (like(b, edge, scale), like(b, edge, 0.5));
        let scaled = mul(b, edge, scale)?;
        let moved = add(b, scaled, half)?;
        b.unary(ops::math::FLOOR, moved)
    };
    let (start, end) = (edge(2 - d)?, edge(4 - d)?);
    let (one, zero, bins) = (like(b, start, 1.0), like(b, start, 0.0), like(b, start, bins as f64));
    let extent = sub(b, end, start)?;
    let extent = add(b, extent, one)?;
    let extent = most(b, extent, one)?;
    let length = to_float(b, size, ty)?;
    let mut out = vec![];
    for next in [0.0, 1.0] {
        let position = to_float(b, at, ty)?;
        let next = like(b, position, next);
        let position = add(b, position, next)?;
        let scaled = mul(b, position, extent)?;
        let part = div(b, scaled, bins)?;
        let rounded = b.unary(if out.is_empty() { ops::math::FLOOR } else { ops::math::CEIL }, part)?;
        let place = add(b, rounded, start)?;
        let place = between(b, place, [zero, length])?;
        out.push(to_index(b, place)?);
    }
    Ok([out[0], out[1]])
}
