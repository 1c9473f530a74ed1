//! Images resized: elements taken, or weighted along one axis after the other.
//!
//! ```text
//! nearest    one element                 all axes at once; each repeated, where the image grows by whole factors
//! linear     two elements per axis       all axes at once
//! cubic      four elements               an axis at a time
//! antialias  a stretched kernel's        an axis at a time, its weights a small tensor
//! ```

use super::resize_axes::{Along, axes};
use super::scalars::{Made, add, between, clamped, element, is_inside, like, mul, narrowed, sub};
use super::scalars::{neighbours, to_float, to_index, wide};
use crate::onnx::Results;
use crate::onnx::operand::Operand;
use crate::onnx::predicate::CmpF;
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, DataType, Expr, Failure, LoopKind, NodeContext, Registry, Structured};
use monopour_ir::{Type, Value, ops};

pub(super) fn register(registry: &mut Registry) {
    registry.op("Resize", 10, resize, "");
    registry.op("Upsample", 7, resize, "");
}

/// How elements are weighted.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Nearest(Rounding),
    Linear,
    Cubic,
}

/// Which element is nearest.
#[derive(Clone, Copy, PartialEq)]
enum Rounding {
    PreferFloor,
    PreferCeil,
    Floor,
    Ceil,
    /// Before version 11: the next element along an axis that shrinks, else the one before.
    ByScale,
}

/// The attributes.
#[derive(Clone, Copy)]
struct Kernel {
    mode: Mode,
    /// The coefficient of a cubic kernel.
    a: f64,
    exclude_outside: bool,
    antialias: bool,
    /// The number beyond the image, if there is one.
    beyond: Option<f64>,
}

fn kernel(cx: &NodeContext) -> Result<Kernel, Failure> {
    let mode = match cx.string("mode", "nearest")?.as_str() {
        "nearest" => Mode::Nearest(match cx.string("nearest_mode", "round_prefer_floor")?.as_str() {
            _ if cx.opset() < 11 => Rounding::ByScale,
            "round_prefer_floor" => Rounding::PreferFloor,
            "round_prefer_ceil" => Rounding::PreferCeil,
            "floor" => Rounding::Floor,
            "ceil" => Rounding::Ceil,
            other => return Err(format!("attribute 'nearest_mode' is '{other}'").into()),
        }),
        "linear" | "bilinear" => Mode::Linear,
        "cubic" => Mode::Cubic,
        other => return Err(format!("attribute 'mode' is '{other}'").into()),
    };
    let crops = cx.string("coordinate_transformation_mode", "half_pixel")? == "tf_crop_and_resize";
    Ok(Kernel {
        mode,
        a: cx.float("cubic_coeff_a", -0.75)?,
        exclude_outside: cx.flag("exclude_outside", false)?,
        antialias: cx.flag("antialias", false)?,
        beyond: if crops { Some(cx.float("extrapolation_value", 0.0)?) } else { None },
    })
}

fn resize<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    let (shape, all) = axes(b, cx)?;
    if all.is_empty() {
        return Ok(vec![x.clone()]);
    }
    let kernel = kernel(cx)?;
    if let Some(factors) = repetitions(x, &shape, &all, kernel) {
        return Ok(vec![repeated(b, x, &shape, &factors)?]);
    }
    if matches!(kernel.mode, Mode::Nearest(_)) {
        return Ok(vec![joint(b, x, shape, &all, kernel)?]);
    }
    if kernel.mode == Mode::Linear && !kernel.antialias {
        return Ok(vec![joint(b, x, shape, &all, kernel)?]);
    }
    let mut result = x.clone();
    for (at, along) in all.iter().enumerate() {
        let to = if at + 1 == all.len() { x.dtype } else { wide(x.dtype) };
        let mut next = result.shape.clone();
        next[along.dim] = shape[along.dim].clone();
        result = if kernel.antialias {
            stretched(b, (&result, to), next, along, kernel)?
        } else {
            cubic(b, (&result, to), next, along, kernel)?
        };
    }
    Ok(vec![result])
}

/// How often each element is repeated along each dimension, where that is the result.
fn repetitions(x: &Operand, shape: &[Dim], all: &[Along], kernel: Kernel) -> Option<Vec<i64>> {
    let Mode::Nearest(rounding) = kernel.mode else { return None };
    let nearest: fn(f64) -> f64 = match rounding {
        Rounding::PreferFloor => |place| (place - 0.5).ceil(),
        Rounding::PreferCeil => |place| (place + 0.5).floor(),
        Rounding::Ceil => f64::ceil,
        Rounding::Floor | Rounding::ByScale => f64::floor,
    };
    let mut factors = vec![1; x.rank()];
    for along in all {
        let (factor, places) = along.whole_growth(&x.shape[along.dim], &shape[along.dim])?;
        if kernel.beyond.is_some() || places.into_iter().any(|place| nearest(place) != 0.0) {
            return None;
        }
        factors[along.dim] = factor;
    }
    Some(factors)
}

/// Each element that many times along each dimension: a broadcast, which fuses as a gather does not.
fn repeated<'c>(b: &mut Builder<'c>, x: &Operand<'c>, shape: &[Dim], factors: &[i64]) -> Result<Operand<'c>, Failure> {
    let apart = |each: &dyn Fn(i64) -> i64| -> Vec<Dim> {
        let dims = x.shape.iter().zip(factors);
        dims.flat_map(|(size, factor)| [Some(size.clone()), (*factor > 1).then(|| Dim::constant(each(*factor)))])
            .flatten()
            .collect()
    };
    let elements = b.reshaped(x, &apart(&|_| 1))?;
    let repeated = super::shapes::broadcast_to(b, &elements, apart(&|factor| factor))?;
    b.reshaped(&repeated, shape)
}

/// The number beyond the image where a coordinate is outside.
fn bounded<'c>(b: &mut Builder<'c>, value: Value<'c>, outside: &[Value<'c>], kernel: Kernel) -> Made<'c> {
    let Some(beyond) = kernel.beyond else { return Ok(value) };
    let beyond = like(b, value, beyond);
    outside.iter().try_fold(value, |value, outside| b.select(*outside, beyond, value))
}

/// One element per result, or the corners around it.
fn joint<'c>(
    b: &mut Builder<'c>,
    x: &Operand<'c>,
    shape: Vec<Dim>,
    all: &[Along<'c>],
    kernel: Kernel,
) -> Result<Operand<'c>, Failure> {
    let (source, dtype) = (b.value(x)?, x.dtype);
    let nearest = matches!(kernel.mode, Mode::Nearest(_));
    let sum = if nearest && kernel.beyond.is_none() { dtype } else { wide(dtype) };
    b.computed(dtype, &shape, |b, at| {
        // Places with their weights.
        let mut corners: Vec<(Vec<Value<'c>>, Option<Value<'c>>)> = vec![(at.to_vec(), None)];
        let mut outside = vec![];
        for along in all {
            let (place, beyond) = along.coordinate(b, at[along.dim])?;
            outside.extend(beyond);
            let taps = match kernel.mode {
                Mode::Nearest(rounding) => vec![(nearest_index(b, place, along, rounding)?, None)],
                _ => two_taps(b, place, along)?,
            };
            let mut next = vec![];
            for (corner, weight) in &corners {
                for (index, by) in &taps {
                    let mut corner = corner.clone();
                    corner[along.dim] = *index;
                    let weight = match (weight, by) {
                        (Some(weight), Some(by)) => Some(mul(b, *weight, *by)?),
                        _ => *by,
                    };
                    next.push((corner, weight));
                }
            }
            corners = next;
        }
        let value = weighted(b, (source, dtype), sum, &corners)?;
        let value = bounded(b, value, &outside, kernel)?;
        if sum == dtype { Ok(value) } else { narrowed(b, value, sum, dtype) }
    })
}

/// The sum of weighted elements.
fn weighted<'c>(
    b: &mut Builder<'c>,
    source: (Value<'c>, DataType),
    sum: DataType,
    corners: &[(Vec<Value<'c>>, Option<Value<'c>>)],
) -> Made<'c> {
    let mut total = None;
    for (corner, weight) in corners {
        let mut term = element(b, source, corner, sum)?;
        if let Some(weight) = weight {
            let weight = super::compare::convert(b, DataType::F32, sum, *weight)?;
            term = mul(b, term, weight)?;
        }
        total = Some(match total {
            Some(total) => add(b, total, term)?,
            None => term,
        });
    }
    total.ok_or_else(|| "there is nothing to sum".into())
}

fn nearest_index<'c>(b: &mut Builder<'c>, place: Value<'c>, along: &Along<'c>, rounding: Rounding) -> Made<'c> {
    let half = like(b, place, 0.5);
    let shrinks = along.scale.known().is_some_and(|scale| scale < 1.0);
    let rounded = match rounding {
        Rounding::PreferFloor => {
            let moved = sub(b, place, half)?;
            b.unary(ops::math::CEIL, moved)?
        }
        Rounding::PreferCeil => {
            let moved = add(b, place, half)?;
            b.unary(ops::math::FLOOR, moved)?
        }
        Rounding::Ceil => b.unary(ops::math::CEIL, place)?,
        Rounding::ByScale if shrinks => b.unary(ops::math::CEIL, place)?,
        Rounding::Floor | Rounding::ByScale => b.unary(ops::math::FLOOR, place)?,
    };
    let range = along.range(b, 0.0)?;
    let rounded = between(b, rounded, range)?;
    to_index(b, rounded)
}

/// An element and the next one, with their weights.
fn two_taps<'c>(
    b: &mut Builder<'c>,
    place: Value<'c>,
    along: &Along<'c>,
) -> Result<Vec<(Value<'c>, Option<Value<'c>>)>, Failure> {
    let range = along.range(b, 0.0)?;
    let taps = neighbours(b, place, range, along.size)?;
    Ok(taps.map(|(index, weight)| (index, Some(weight))).into())
}

/// The cubic kernel at a distance that is not negative.
pub(super) fn cubic_weight<'c>(b: &mut Builder<'c>, distance: Value<'c>, a: f64) -> Made<'c> {
    let mut n = |number: f64| like(b, distance, number);
    let (one, two, zero) = (n(1.0), n(2.0), n(0.0));
    let (near, far) = ([n(a + 2.0), n(-(a + 3.0)), zero, one], [n(a), n(-5.0 * a), n(8.0 * a), n(-4.0 * a)]);
    let mut polynomial = |factors: [Value<'c>; 4]| {
        factors[1..].iter().try_fold(factors[0], |sum, factor| {
            let product = mul(b, sum, distance)?;
            add(b, product, *factor)
        })
    };
    let (near, far) = (polynomial(near)?, polynomial(far)?);
    let is_far = b.compare(CmpF::Olt, distance, two)?;
    let is_near = b.compare(CmpF::Ole, distance, one)?;
    let far = b.select(is_far, far, zero)?;
    b.select(is_near, near, far)
}

/// The linear kernel at a distance that is not negative.
fn linear_weight<'c>(b: &mut Builder<'c>, distance: Value<'c>) -> Made<'c> {
    let (zero, one) = (like(b, distance, 0.0), like(b, distance, 1.0));
    let weight = sub(b, one, distance)?;
    super::scalars::most(b, weight, zero)
}

/// Four elements along an axis.
fn cubic<'c>(
    b: &mut Builder<'c>,
    (x, to): (&Operand<'c>, DataType),
    shape: Vec<Dim>,
    along: &Along<'c>,
    kernel: Kernel,
) -> Result<Operand<'c>, Failure> {
    let (source, sum) = (b.value(x)?, wide(x.dtype));
    b.computed(to, &shape, |b, at| {
        let (place, outside) = along.coordinate(b, at[along.dim])?;
        let range = along.range(b, 2.0)?;
        let place = between(b, place, range)?;
        let floor = b.unary(ops::math::FLOOR, place)?;
        let ratio = sub(b, place, floor)?;
        let first = to_index(b, floor)?;
        let (mut corners, mut weights) = (vec![], vec![]);
        for tap in -1..3 {
            let moved = like(b, first, f64::from(tap));
            let index = add(b, first, moved)?;
            let moved = like(b, ratio, f64::from(tap));
            let distance = sub(b, moved, ratio)?;
            let distance = b.unary(ops::math::ABSF, distance)?;
            let mut weight = cubic_weight(b, distance, kernel.a)?;
            if kernel.exclude_outside {
                let (inside, zero) = (is_inside(b, index, along.size)?, like(b, weight, 0.0));
                weight = b.select(inside, weight, zero)?;
            }
            weights.push(weight);
            let mut corner = at.to_vec();
            corner[along.dim] = clamped(b, index, along.size)?;
            corners.push(corner);
        }
        if kernel.exclude_outside {
            let total = weights[1..].iter().try_fold(weights[0], |total, weight| add(b, total, *weight))?;
            for weight in &mut weights {
                *weight = super::scalars::div(b, *weight, total)?;
            }
        }
        let corners: Vec<_> = corners.into_iter().zip(weights.into_iter().map(Some)).collect();
        let value = weighted(b, (source, x.dtype), sum, &corners)?;
        let value = bounded(b, value, outside.as_slice(), kernel)?;
        narrowed(b, value, sum, to)
    })
}

/// A kernel that is stretched where the image shrinks.
fn stretched<'c>(
    b: &mut Builder<'c>,
    (x, to): (&Operand<'c>, DataType),
    shape: Vec<Dim>,
    along: &Along<'c>,
    kernel: Kernel,
) -> Result<Operand<'c>, Failure> {
    let taps = along.taps(b, if kernel.mode == Mode::Cubic { 2.0 } else { 1.0 })?;
    let weights = weights(b, &[shape[along.dim].clone(), taps.clone()], along, kernel)?;
    let total = b.reduce(&weights, &[1], (DataType::F32, 0.0), |b, e, sum| add(b, sum, e))?;
    let (source, sum, rank, dtype) = (b.value(x)?, wide(x.dtype), shape.len(), x.dtype);
    let out = b.filled(sum, &shape, 0.0)?;
    let first = first_tap(b, &taps)?;
    let op = Structured {
        loops: (0..=rank).map(|d| if d < rank { LoopKind::Parallel } else { LoopKind::Reduction }).collect(),
        inputs: vec![
            (b.value(&weights)?, vec![Expr::Loop(along.dim), Expr::Loop(rank)]),
            (b.value(&total)?, vec![Expr::Loop(along.dim)]),
        ],
        outputs: vec![(out, (0..rank).map(Expr::Loop).collect())],
    };
    let value = b.structured(&op, |b, e| {
        let mut at = (0..=rank).map(|d| b.loop_index(d)).collect::<Result<Vec<_>, _>>()?;
        let (index, _) = tap(b, along, first, [at[along.dim], at[rank]])?;
        at[along.dim] = clamped(b, index, along.size)?;
        let read = element(b, (source, dtype), &at[..rank], sum)?;
        let weight = super::scalars::div(b, e[0], e[1])?;
        let weight = super::compare::convert(b, DataType::F32, sum, weight)?;
        let term = mul(b, read, weight)?;
        Ok(vec![add(b, e[2], term)?])
    })?[0];
    let result = Operand::value(sum, shape, value);
    if sum == to && kernel.beyond.is_none() {
        return Ok(result);
    }
    b.elementwise(&[&result], to, |b, e| {
        let at = b.loop_index(along.dim)?;
        let (_, outside) = along.coordinate(b, at)?;
        let value = bounded(b, e[0], outside.as_slice(), kernel)?;
        narrowed(b, value, sum, to)
    })
}

/// Weights of results and taps, not yet divided by their sum.
fn weights<'c>(b: &mut Builder<'c>, shape: &[Dim], along: &Along<'c>, kernel: Kernel) -> Result<Operand<'c>, Failure> {
    let first = first_tap(b, &shape[1])?;
    let shrink = along.shrink(b)?;
    b.computed(DataType::F32, shape, |b, at| {
        let (index, distance) = tap(b, along, first, [at[0], at[1]])?;
        let distance = mul(b, distance, shrink)?;
        let distance = b.unary(ops::math::ABSF, distance)?;
        let weight = match kernel.mode {
            Mode::Cubic => cubic_weight(b, distance, kernel.a)?,
            _ => linear_weight(b, distance)?,
        };
        if !kernel.exclude_outside {
            return Ok(weight);
        }
        let (inside, zero) = (is_inside(b, index, along.size)?, like(b, weight, 0.0));
        b.select(inside, weight, zero)
    })
}

/// The first of `2 - 2 * first` taps, from the element before a place on.
fn first_tap<'c>(b: &mut Builder<'c>, taps: &Dim) -> Made<'c> {
    let half = taps.floor_div(&Dim::constant(2)).unwrap_or_default();
    b.index(&Dim::constant(1).sub(&half))
}

/// The index of a tap, and its distance from the result's place.
fn tap<'c>(
    b: &mut Builder<'c>,
    along: &Along<'c>,
    first: Value<'c>,
    [at, tap]: [Value<'c>; 2],
) -> Result<(Value<'c>, Value<'c>), Failure> {
    let (place, _) = along.coordinate(b, at)?;
    let range = along.range(b, 2.0)?;
    let place = between(b, place, range)?;
    let floor = b.unary(ops::math::FLOOR, place)?;
    let (start, moved) = (to_index(b, floor)?, add(b, first, tap)?);
    let index = add(b, start, moved)?;
    let position = to_float(b, index, Type::f32(b.context()))?;
    Ok((index, sub(b, position, place)?))
}
