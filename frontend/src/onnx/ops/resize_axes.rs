//! The axes of a resized image: scales, sizes and the place of a result within the image.

use super::reductions::number;
use super::scalars::{Made, add, div, like, mul, sub, to_float};
use crate::onnx::operand::Operand;
use crate::onnx::predicate::CmpF;
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, DataType, Failure, NodeContext};
use monopour_ir::{Type, Value, ops};

/// Scales `n / 2^k` of at most this `n` give sizes that are expressions.
const MAX_RATIO: f64 = 1024.0;

/// An f32 that is known, or a value of the host function.
#[derive(Clone, Copy)]
pub(super) enum Scalar<'c> {
    Known(f32),
    Value(Value<'c>),
}

/// A function of two numbers: the op, and its value.
type Function = (&'static str, fn(f32, f32) -> f32);
const MUL: Function = (ops::arith::MULF, |x, y| x * y);
const DIV: Function = (ops::arith::DIVF, |x, y| x / y);
const ADD: Function = (ops::arith::ADDF, |x, y| x + y);
const MIN: Function = (ops::arith::MINIMUMF, f32::min);
const MAX: Function = (ops::arith::MAXIMUMF, f32::max);

impl<'c> Scalar<'c> {
    pub fn known(self) -> Option<f64> {
        match self {
            Self::Known(number) => Some(f64::from(number)),
            Self::Value(_) => None,
        }
    }
    pub fn value(self, b: &mut Builder<'c>) -> Value<'c> {
        match self {
            Self::Known(number) => b.number(Type::f32(b.context()), f64::from(number)),
            Self::Value(value) => value,
        }
    }
    fn of_size(b: &mut Builder<'c>, size: &Dim) -> Result<Self, Failure> {
        if let Some(size) = size.as_constant() {
            return Ok(Self::Known(size as f32));
        }
        let ty = Type::f32(b.context());
        Ok(Self::Value(number(b, size, ty)?))
    }
    fn apply(self, b: &mut Builder<'c>, (op, known): Function, other: Self) -> Result<Self, Failure> {
        if let (Self::Known(x), Self::Known(y)) = (self, other) {
            return Ok(Self::Known(known(x, y)));
        }
        let (x, y) = (self.value(b), other.value(b));
        Ok(Self::Value(b.binary(op, x, y)?))
    }
    fn floor(self, b: &mut Builder<'c>) -> Result<Self, Failure> {
        Ok(match self {
            Self::Known(x) => Self::Known(x.floor()),
            Self::Value(x) => Self::Value(b.unary(ops::math::FLOOR, x)?),
        })
    }
    /// A whole number as a size.
    fn size(self, b: &mut Builder<'c>) -> Result<Dim, Failure> {
        let value = match self {
            Self::Known(x) => return Ok(Dim::constant(x as i64)),
            Self::Value(x) => x,
        };
        let whole = b.op(ops::arith::FPTOSI, &[value], Type::integer(b.context(), 64))?;
        let index = b.op(ops::arith::INDEX_CAST, &[whole], Type::index(b.context()))?;
        let zero = b.int(index.ty(), 0);
        let size = b.binary(ops::arith::MAXSI, index, zero)?;
        Ok(b.new_symbol(size))
    }
}

/// Which place of the image a result is.
#[derive(Clone, Copy, PartialEq)]
enum Transformation {
    HalfPixel,
    HalfPixelSymmetric,
    PytorchHalfPixel,
    AlignCorners,
    Asymmetric,
    Crop,
}

/// One axis that is resized.
pub(super) struct Along<'c> {
    pub dim: usize,
    pub scale: Scalar<'c>,
    /// Size of the image.
    pub size: Value<'c>,
    length: Scalar<'c>,
    /// Size of the result, and that number before it was rounded.
    count: Scalar<'c>,
    whole: Scalar<'c>,
    transformation: Transformation,
    /// The region: its tensor, its type, where its start and end are.
    region: Option<(Value<'c>, DataType, [usize; 2])>,
}

/// What decides the sizes of the result.
enum Given<'c> {
    Scales(Vec<Scalar<'c>>),
    Sizes(Vec<Dim>),
}

fn given<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Result<Given<'c>, Failure> {
    let is_given = |o: &&Operand<'c>| !o.shape.first().is_some_and(|d| d.is(0));
    if let Some(scales) = cx.floats("scales")? {
        return Ok(Given::Scales(scales.into_iter().map(|s| Scalar::Known(s as f32)).collect()));
    }
    let first = if cx.node.op_type == "Upsample" || cx.opset() < 11 { 1 } else { 2 };
    if let Some(scales) = cx.optional(first).filter(is_given) {
        if let Some(known) = scales.as_floats() {
            return Ok(Given::Scales(known.into_iter().map(|s| Scalar::Known(s as f32)).collect()));
        }
        let count = scales.elements().as_constant().ok_or("its scales are of an unknown number")?;
        let (index, source) = (Type::index(b.context()), b.value(scales)?);
        let mut out = vec![];
        for at in 0..count {
            let at = b.int(index, at);
            out.push(Scalar::Value(b.read(source, &[at])?));
        }
        return Ok(Given::Scales(out));
    }
    let sizes = cx.optional(3).filter(is_given).ok_or("it has neither scales nor sizes")?;
    Ok(Given::Sizes(b.sizes_of(sizes)?))
}

fn transformation(cx: &NodeContext) -> Result<Transformation, Failure> {
    if cx.node.op_type == "Upsample" || cx.opset() < 11 {
        return Ok(Transformation::Asymmetric);
    }
    Ok(match cx.string("coordinate_transformation_mode", "half_pixel")?.as_str() {
        "half_pixel" => Transformation::HalfPixel,
        "half_pixel_symmetric" => Transformation::HalfPixelSymmetric,
        "pytorch_half_pixel" => Transformation::PytorchHalfPixel,
        "align_corners" => Transformation::AlignCorners,
        "asymmetric" => Transformation::Asymmetric,
        "tf_crop_and_resize" => Transformation::Crop,
        other => return Err(format!("attribute 'coordinate_transformation_mode' is '{other}'").into()),
    })
}

/// The shape of the result, and the axes that differ.
pub(super) fn axes<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Result<(Vec<Dim>, Vec<Along<'c>>), Failure> {
    let x = cx.operand(0)?;
    let dims: Vec<usize> = match cx.ints("axes")? {
        Some(axes) => axes.into_iter().map(|a| cx.axis(a, x.rank())).collect::<Result<_, _>>()?,
        None => (0..x.rank()).collect(),
    };
    let transformation = transformation(cx)?;
    let mut lengths = vec![];
    for dim in &dims {
        lengths.push(Scalar::of_size(b, &x.shape[*dim])?);
    }
    let sized = match given(b, cx)? {
        Given::Scales(scales) => by_scales(b, x, &dims, (&lengths, scales))?,
        Given::Sizes(sizes) => by_sizes(b, cx, (&lengths, sizes))?,
    };
    let region = cx.optional(1).filter(|_| transformation == Transformation::Crop);
    let region = region.map(|r| Ok::<_, Failure>((b.value(r)?, r.dtype))).transpose()?;
    if transformation == Transformation::Crop && region.is_none() {
        return Err("its region is missing".into());
    }
    if sized.len() != dims.len() {
        return Err(format!("{} scales or sizes are not one for each of {} axes", sized.len(), dims.len()).into());
    }
    let (mut shape, mut all) = (x.shape.clone(), vec![]);
    for (at, (scale, size)) in sized.into_iter().enumerate() {
        let dim = dims[at];
        let same = size == x.shape[dim] && scale.known().is_none_or(|s| s == 1.0);
        shape[dim] = size.clone();
        if same && transformation != Transformation::Crop {
            continue;
        }
        let (length, count) = (lengths[at], Scalar::of_size(b, &size)?);
        all.push(Along {
            dim,
            scale,
            size: b.index(&x.shape[dim])?,
            length,
            count,
            whole: scale.apply(b, MUL, length)?,
            transformation,
            region: region.map(|(value, dtype)| (value, dtype, [at, at + dims.len()])),
        });
    }
    Ok((shape, all))
}

/// Sizes that follow from scales.
fn by_scales<'c>(
    b: &mut Builder<'c>,
    x: &Operand<'c>,
    dims: &[usize],
    (lengths, scales): (&[Scalar<'c>], Vec<Scalar<'c>>),
) -> Result<Vec<(Scalar<'c>, Dim)>, Failure> {
    let mut out = vec![];
    for ((dim, length), scale) in dims.iter().zip(lengths).zip(scales) {
        let size = match scale.known().and_then(ratio) {
            Some((n, d)) => x.shape[*dim].times(n).floor_div(&d.into()).unwrap_or_default(),
            None => {
                let product = scale.apply(b, MUL, *length)?.floor(b)?;
                product.size(b)?
            }
        };
        out.push((scale, size));
    }
    Ok(out)
}

/// A scale as a quotient of small integers.
fn ratio(scale: f64) -> Option<(i64, i64)> {
    let divisor = [1.0, 2.0, 4.0, 8.0, 16.0].into_iter().find(|d| (scale * d).fract() == 0.0)?;
    let n = scale * divisor;
    (0.0..=MAX_RATIO).contains(&n).then_some((n as i64, divisor as i64))
}

/// Scales that follow from sizes, which may have to keep the image's aspect ratio.
fn by_sizes<'c>(
    b: &mut Builder<'c>,
    cx: &NodeContext<'_, 'c>,
    (lengths, sizes): (&[Scalar<'c>], Vec<Dim>),
) -> Result<Vec<(Scalar<'c>, Dim)>, Failure> {
    let mut scales = vec![];
    for (length, size) in lengths.iter().zip(&sizes) {
        let size = Scalar::of_size(b, size)?;
        scales.push(size.apply(b, DIV, *length)?);
    }
    let function = match cx.string("keep_aspect_ratio_policy", "stretch")?.as_str() {
        "stretch" => return Ok(scales.into_iter().zip(sizes).collect()),
        "not_larger" => MIN,
        "not_smaller" => MAX,
        other => return Err(format!("attribute 'keep_aspect_ratio_policy' is '{other}'").into()),
    };
    let (first, rest) = scales.split_first().ok_or("it has no axes")?;
    let scale = rest.iter().try_fold(*first, |scale, other| scale.apply(b, function, *other))?;
    let mut out = vec![];
    for length in lengths {
        let size = scale.apply(b, MUL, *length)?.apply(b, ADD, Scalar::Known(0.5))?.floor(b)?;
        out.push((scale, size.size(b)?));
    }
    Ok(out)
}

impl<'c> Along<'c> {
    /// The factor by which the image grows, if it is whole, with the exact place in the image of each result of the first
    /// element; those of the next one are one further, and so on.
    pub fn whole_growth(&self, size: &Dim, grown: &Dim) -> Option<(i64, Vec<f64>)> {
        let factor = self.scale.known().filter(|scale| scale.fract() == 0.0 && (2.0..=MAX_RATIO).contains(scale))?;
        if *grown != size.times(factor as i64) {
            return None;
        }
        let place: fn(f64, f64) -> f64 = match self.transformation {
            Transformation::Asymmetric => |at, factor| at / factor,
            Transformation::HalfPixel | Transformation::PytorchHalfPixel | Transformation::HalfPixelSymmetric => {
                |at, factor| (at + 0.5) / factor - 0.5
            }
            Transformation::AlignCorners | Transformation::Crop => return None,
        };
        Some((factor as i64, (0..factor as i64).map(|at| place(at as f64, factor)).collect()))
    }

    /// The first and last place of the image, and `more` on each side.
    pub fn range(&self, b: &mut Builder<'c>, more: f64) -> Result<[Value<'c>; 2], Failure> {
        let length = self.length.value(b);
        let (low, moved) = (like(b, length, -more), like(b, length, more - 1.0));
        Ok([low, add(b, length, moved)?])
    }

    /// The number of taps of a kernel of that reach, stretched where the image shrinks.
    pub fn taps(&self, b: &mut Builder<'c>, reach: f64) -> Result<Dim, Failure> {
        let shrink = self.scale.apply(b, MIN, Scalar::Known(1.0))?;
        let steps = Scalar::Known(-reach as f32).apply(b, DIV, shrink)?.floor(b)?;
        let steps = steps.apply(b, MUL, Scalar::Known(-2.0))?;
        steps.size(b)
    }

    /// The scale where the image shrinks, else 1.
    pub fn shrink(&self, b: &mut Builder<'c>) -> Made<'c> {
        let shrink = self.scale.apply(b, MIN, Scalar::Known(1.0))?;
        Ok(shrink.value(b))
    }

    /// In a body: the place of a result in the image, and whether it is outside where that matters.
    pub fn coordinate(&self, b: &mut Builder<'c>, at: Value<'c>) -> Result<(Value<'c>, Option<Value<'c>>), Failure> {
        let at = to_float(b, at, Type::f32(b.context()))?;
        let (scale, half) = (self.scale.value(b), like(b, at, 0.5));
        let place = match self.transformation {
            Transformation::Asymmetric => div(b, at, scale)?,
            Transformation::AlignCorners => {
                let zero = like(b, at, 0.0);
                self.unless_one(b, zero, at)?
            }
            Transformation::Crop => return self.cropped(b, at),
            Transformation::HalfPixel | Transformation::PytorchHalfPixel | Transformation::HalfPixelSymmetric => {
                let middle = add(b, at, half)?;
                let scaled = div(b, middle, scale)?;
                sub(b, scaled, half)?
            }
        };
        let place = match self.transformation {
            Transformation::PytorchHalfPixel => {
                let (count, minus) = (self.count.value(b), like(b, at, -0.5));
                let one = like(b, count, 1.0);
                let is_one = b.compare(CmpF::Oeq, count, one)?;
                b.select(is_one, minus, place)?
            }
            Transformation::HalfPixelSymmetric => {
                let (count, whole, length) = (self.count.value(b), self.whole.value(b), self.length.value(b));
                let adjustment = div(b, count, whole)?;
                let one = like(b, adjustment, 1.0);
                let rest = sub(b, one, adjustment)?;
                let center = mul(b, length, half)?;
                let offset = mul(b, center, rest)?;
                add(b, offset, place)?
            }
            _ => place,
        };
        Ok((place, None))
    }

    /// `at * (length - 1) / (whole - 1)`, or another value where there is one result.
    fn unless_one(&self, b: &mut Builder<'c>, other: Value<'c>, at: Value<'c>) -> Made<'c> {
        let (length, whole) = (self.length.value(b), self.whole.value(b));
        let one = like(b, at, 1.0);
        let (span, steps) = (sub(b, length, one)?, sub(b, whole, one)?);
        let zero = like(b, at, 0.0);
        let is_one = b.compare(CmpF::Oeq, steps, zero)?;
        let steps = b.select(is_one, one, steps)?;
        let moved = mul(b, at, span)?;
        let place = div(b, moved, steps)?;
        b.select(is_one, other, place)
    }

    fn cropped(&self, b: &mut Builder<'c>, at: Value<'c>) -> Result<(Value<'c>, Option<Value<'c>>), Failure> {
        let (tensor, dtype, bounds) = self.region.ok_or("its region is missing")?;
        let mut read = |at: usize| {
            let at = b.int(Type::index(b.context()), at as i64);
            super::scalars::element(b, (tensor, dtype), &[at], DataType::F32)
        };
        let (start, end) = (read(bounds[0])?, read(bounds[1])?);
        let (length, one, half) = (self.length.value(b), like(b, at, 1.0), like(b, at, 0.5));
        let (last, part) = (sub(b, length, one)?, sub(b, end, start)?);
        let middle = mul(b, last, half)?;
        // Both are multiplied by the region's part of the image.
        let place = self.unless_one(b, middle, at)?;
        let place = mul(b, place, part)?;
        let from = mul(b, start, last)?;
        let place = add(b, place, from)?;
        let zero = like(b, place, 0.0);
        let (below, above) = (b.compare(CmpF::Olt, place, zero)?, b.compare(CmpF::Olt, last, place)?);
        Ok((place, Some(b.binary(ops::arith::ORI, below, above)?)))
    }
}
