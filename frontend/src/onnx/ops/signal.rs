//! Discrete Fourier transforms, windows and mel filters.

use super::compare::{cast_to, convert};
use super::products::matmul;
use super::scalars::{Made, add, between, div, element, is_inside, like, most, mul, sub, to_float, wide};
use crate::onnx::operand::Operand;
use crate::onnx::predicate::{CmpF, CmpI};
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, DataType, Expr, Failure, LoopKind, NodeContext, Registry, Results, Structured};
use monopour_ir::{Value, ops};

pub(super) fn register(registry: &mut Registry) {
    registry.op("DFT", 17, dft, "");
    registry.op("STFT", 17, stft, "");
    registry.op("HannWindow", 17, |b, cx| window(b, cx, [0.5, 0.5, 0.0]), "");
    registry.op("HammingWindow", 17, |b, cx| window(b, cx, [25.0 / 46.0, 1.0 - 25.0 / 46.0, 0.0]), "");
    registry.op("BlackmanWindow", 17, |b, cx| window(b, cx, [0.42, 0.5, 0.08]), "");
    registry.op("MelWeightMatrix", 17, mel_weight_matrix, "");
}

/// Most elements of a transform's matrix; a longer transform computes its factors in place.
const MAX_MATRIX: i64 = 1 << 22;

/// A transform over `length` points.
#[derive(Clone)]
struct Transform {
    length: Dim,
    /// Numbers of points that are read and made.
    from: Dim,
    to: Dim,
    /// Parts of a number: 1 for real ones, 2 for complex ones.
    parts: [i64; 2],
    inverse: bool,
    /// Only one of each pair of conjugate frequencies is read.
    half: bool,
}

/// Cosines and sines of `2 * pi * i / length`, exact at multiples of a quarter.
fn circle<'c>(b: &mut Builder<'c>, length: &Dim, dtype: DataType) -> Result<Operand<'c>, Failure> {
    let (sum, size) = (wide(dtype), b.index(length)?);
    let ty = b.element(sum)?;
    b.computed(sum, &[length.clone(), Dim::constant(2)], |b, at| {
        let (one, two, three, four) = (like(b, size, 1.0), like(b, size, 2.0), like(b, size, 3.0), like(b, size, 4.0));
        let moved = mul(b, at[0], four)?;
        let (quarter, rest) = (div(b, moved, size)?, b.binary(ops::arith::REMSI, moved, size)?);
        // The sine is the cosine a quarter before.
        let back = mul(b, at[1], three)?;
        let quarter = add(b, quarter, back)?;
        let quarter = b.binary(ops::arith::REMSI, quarter, four)?;
        let (rest, length) = (to_float(b, rest, ty)?, to_float(b, size, ty)?);
        let part = div(b, rest, length)?;
        let angle = like(b, part, std::f64::consts::FRAC_PI_2);
        let angle = mul(b, part, angle)?;
        let (cos, sin) = (b.unary(ops::math::COS, angle)?, b.unary(ops::math::SIN, angle)?);
        let odd = b.binary(ops::arith::ANDI, quarter, one)?;
        let is_odd = b.compare(CmpI::Eq, odd, one)?;
        let value = b.select(is_odd, sin, cos)?;
        // Cosine, minus sine, minus cosine, sine.
        let negated = b.unary(ops::arith::NEGF, value)?;
        let next = add(b, quarter, one)?;
        let next = b.binary(ops::arith::ANDI, next, two)?;
        let is_negative = b.compare(CmpI::Eq, next, two)?;
        b.select(is_negative, negated, value)
    })
}

impl Transform {
    /// The factor of a part of a point in a part of a frequency.
    fn factor<'c>(
        &self,
        b: &mut Builder<'c>,
        circle: (Value<'c>, DataType),
        [n, part, k, made]: [Value<'c>; 4],
        length: Value<'c>,
    ) -> Made<'c> {
        let product = mul(b, n, k)?;
        let turn = b.binary(ops::arith::REMSI, product, length)?;
        let differs = b.binary(ops::arith::XORI, part, made)?;
        let value = element(b, circle, &[turn, differs], circle.1)?;
        // i * i is -1; forward, the sine of the imaginary part is negative.
        let negated = b.unary(ops::arith::NEGF, value)?;
        let negative = if self.inverse { part } else { made };
        let both = b.binary(ops::arith::ANDI, differs, negative)?;
        let one = like(b, both, 1.0);
        let is_negative = b.compare(CmpI::Eq, both, one)?;
        let mut value = b.select(is_negative, negated, value)?;
        if self.half {
            value = doubled(b, value, n, length)?;
        }
        if self.inverse {
            let length = to_float(b, length, value.ty())?;
            value = div(b, value, length)?;
        }
        Ok(value)
    }
    fn shape(&self) -> [Dim; 4] {
        [self.from.clone(), self.parts[0].into(), self.to.clone(), self.parts[1].into()]
    }
}

/// Twice the factor of a frequency whose conjugate is not read.
fn doubled<'c>(b: &mut Builder<'c>, value: Value<'c>, n: Value<'c>, length: Value<'c>) -> Made<'c> {
    let (zero, two) = (like(b, n, 0.0), like(b, n, 2.0));
    let twice = mul(b, n, two)?;
    let (is_first, is_middle) = (b.compare(CmpI::Eq, n, zero)?, b.compare(CmpI::Eq, twice, length)?);
    let alone = b.binary(ops::arith::ORI, is_first, is_middle)?;
    let two = like(b, value, 2.0);
    let double = mul(b, value, two)?;
    b.select(alone, value, double)
}

/// The transform of rows: `x` is rows, points, parts.
fn transformed<'c>(b: &mut Builder<'c>, x: &Operand<'c>, transform: &Transform) -> Result<Operand<'c>, Failure> {
    let sum = wide(x.dtype);
    let circle = circle(b, &transform.length, x.dtype)?;
    let circle = (b.value(&circle)?, sum);
    let (length, rows, shape) = (b.index(&transform.length)?, x.shape[0].clone(), transform.shape());
    let x = cast_to(b, x, sum)?;
    let size = shape.iter().fold(Dim::constant(1), |n, d| n.mul(d));
    let result = [rows.clone(), transform.to.clone(), transform.parts[1].into()];
    if size.as_constant().is_some_and(|n| n <= MAX_MATRIX) {
        let matrix =
            b.computed(sum, &shape, |b, at| transform.factor(b, circle, [at[0], at[1], at[2], at[3]], length))?;
        let matrix = b.reshaped(&matrix, &[shape[0].mul(&shape[1]), shape[2].mul(&shape[3])])?;
        let flat = b.reshaped(&x, &[rows, shape[0].mul(&shape[1])])?;
        let product = matmul(b, &flat, &matrix)?;
        return b.reshaped(&product, &result);
    }
    let (value, out) = (b.value(&x)?, b.filled(sum, &result, 0.0)?);
    let op = Structured {
        loops: [[LoopKind::Parallel; 3].as_slice(), &[LoopKind::Reduction; 2]].concat(),
        inputs: vec![(value, [0, 3, 4].map(Expr::Loop).to_vec())],
        outputs: vec![(out, (0..3).map(Expr::Loop).collect())],
    };
    let value = b.structured(&op, |b, e| {
        let at = (0..5).map(|d| b.loop_index(d)).collect::<Result<Vec<_>, _>>()?;
        let factor = transform.factor(b, circle, [at[3], at[4], at[1], at[2]], length)?;
        let term = mul(b, e[0], factor)?;
        Ok(vec![add(b, e[1], term)?])
    })?[0];
    Ok(Operand::value(sum, result.to_vec(), value))
}

/// The one element of an operand as a size.
fn one_size<'c>(b: &mut Builder<'c>, x: &Operand<'c>) -> Result<Dim, Failure> {
    b.sizes_of(x)?.into_iter().next().ok_or_else(|| "an operand that is a size is empty".into())
}

fn dft<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    if x.rank() < 2 || !x.dtype.is_float() {
        return Err("its operand is not of floats and rank 2 or more".into());
    }
    let axis = match cx.optional(2) {
        Some(axis) => cx.known_ints(axis, "axis")?.first().copied().ok_or("its axis is empty")?,
        None => cx.int("axis", if cx.opset() < 20 { 1 } else { -2 })?,
    };
    let axis = cx.axis(axis, x.rank())?;
    let parts = x.shape[x.rank() - 1].as_constant().filter(|p| matches!(p, 1 | 2)).ok_or("its parts are not 1 or 2")?;
    if axis + 1 == x.rank() {
        return Err("its axis is that of the parts".into());
    }
    let (inverse, onesided) = (cx.flag("inverse", false)?, cx.flag("onesided", false)?);
    let half = inverse && onesided;
    let own = &x.shape[axis];
    let length = match cx.optional(1) {
        Some(length) => one_size(b, length)?,
        None if half => own.plus(-1).times(2),
        None => own.clone(),
    };
    let bins = length.floor_div(&2.into()).unwrap_or_default().plus(1);
    let from = own.at_most(if half { &bins } else { &length });
    let to = if onesided && !inverse { bins } else { length.clone() };
    let transform =
        Transform { length, from: from.clone(), to, parts: [parts, if half { 1 } else { 2 }], inverse, half };
    let result = along(b, x, axis, &transform)?;
    Ok(vec![cast_to(b, &result, x.dtype)?])
}

/// The transform along an axis.
fn along<'c>(b: &mut Builder<'c>, x: &Operand<'c>, axis: usize, transform: &Transform) -> Result<Operand<'c>, Failure> {
    let rank = x.rank();
    let mut part = x.clone();
    if transform.from != x.shape[axis] {
        let mut shape = x.shape.clone();
        shape[axis] = transform.from.clone();
        part = b.slice(x, &vec![Dim::default(); rank], &shape, &vec![1; rank])?;
    }
    let others: Vec<usize> = (0..rank - 1).filter(|d| *d != axis).collect();
    let order = [&others[..], &[axis, rank - 1]].concat();
    let moved = b.permuted(&part, &order)?;
    let rows = others.iter().fold(Dim::constant(1), |n, d| n.mul(&x.shape[*d]));
    let flat = b.reshaped(&moved, &[rows, transform.from.clone(), transform.parts[0].into()])?;
    let made = transformed(b, &flat, transform)?;
    let mut shape: Vec<Dim> = others.iter().map(|d| x.shape[*d].clone()).collect();
    shape.extend([transform.to.clone(), transform.parts[1].into()]);
    let made = b.reshaped(&made, &shape)?;
    let place = |d: usize| order.iter().position(|o| *o == d).unwrap_or(d);
    b.permuted(&made, &(0..rank).map(place).collect::<Vec<_>>())
}

fn stft<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (x, weights) = (cx.operand(0)?, cx.optional(2));
    let [batch, points, parts] = match &x.shape[..] {
        [batch, points] => [batch.clone(), points.clone(), Dim::constant(1)],
        [batch, points, parts] => [batch.clone(), points.clone(), parts.clone()],
        _ => return Err("its signal is not of rank 3".into()),
    };
    let step = one_size(b, cx.operand(1)?)?;
    let length = match (cx.optional(3), weights) {
        (Some(length), _) => one_size(b, length)?,
        (None, Some(weights)) => weights.elements(),
        (None, None) => return Err("it has neither a window nor a frame length".into()),
    };
    let parts = parts.as_constant().filter(|p| matches!(p, 1 | 2)).ok_or("its parts are not 1 or 2")?;
    let frames = points.sub(&length).floor_div(&step).ok_or("its step is 0")?.plus(1);
    let x = b.reshaped(x, &[batch.clone(), points, parts.into()])?;
    let (source, by) = ((b.value(&x)?, x.dtype), b.index(&step)?);
    if weights.is_some_and(|w| w.rank() != 1) {
        return Err("its window is not of rank 1".into());
    }
    // Beyond a window weights are 0.
    let weights = weights.map(|w| Ok::<_, Failure>((b.value(w)?, w.dtype, b.index(&w.shape[0])?))).transpose()?;
    let sum = wide(x.dtype);
    let shape = vec![batch.clone(), frames.clone(), length.clone(), parts.into()];
    let framed = b.computed(sum, &shape, |b, at| {
        let first = mul(b, at[1], by)?;
        let place = add(b, first, at[2])?;
        let value = element(b, source, &[at[0], place, at[3]], sum)?;
        let Some(weights) = weights else { return Ok(value) };
        let weight = element(b, (weights.0, weights.1), &at[2..3], sum)?;
        let weighted = mul(b, value, weight)?;
        let (inside, zero) = (is_inside(b, at[2], weights.2)?, like(b, weighted, 0.0));
        b.select(inside, weighted, zero)
    })?;
    let bins = length.floor_div(&2.into()).unwrap_or_default().plus(1);
    let to = if cx.flag("onesided", true)? { bins } else { length.clone() };
    let transform =
        Transform { from: length.clone(), length, to: to.clone(), parts: [parts, 2], inverse: false, half: false };
    let flat = b.reshaped(&framed, &[batch.mul(&frames), transform.from.clone(), parts.into()])?;
    let made = transformed(b, &flat, &transform)?;
    let made = b.reshaped(&made, &[batch, frames, to, 2.into()])?;
    Ok(vec![cast_to(b, &made, x.dtype)?])
}

/// `a - b * cos(x) + c * cos(2 * x)` of a turn in steps.
fn window<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>, factors: [f64; 3]) -> Results<'c> {
    let size = one_size(b, cx.operand(0)?)?;
    let dtype = cx.data_type("output_datatype")?.unwrap_or(DataType::F32);
    let steps = if cx.flag("periodic", true)? { size.clone() } else { size.plus(-1).at_least(&1.into()) };
    let (sum, steps) = (wide(dtype), b.index(&steps)?);
    let ty = b.element(sum)?;
    let result = b.computed(dtype, &[size], |b, at| {
        let (at, steps) = (to_float(b, at[0], ty)?, to_float(b, steps, ty)?);
        let turn = like(b, at, std::f64::consts::TAU);
        let scaled = mul(b, at, turn)?;
        let angle = div(b, scaled, steps)?;
        let [first, second, third] = factors.map(|f| like(b, angle, f));
        let cosine = b.unary(ops::math::COS, angle)?;
        let term = mul(b, cosine, second)?;
        let mut value = sub(b, first, term)?;
        if factors[2] != 0.0 {
            let twice = add(b, angle, angle)?;
            let cosine = b.unary(ops::math::COS, twice)?;
            let term = mul(b, cosine, third)?;
            value = add(b, value, term)?;
        }
        convert(b, sum, dtype, value)
    })?;
    Ok(vec![result])
}

/// A scalar operand as a float in the body's type.
fn number<'c>(b: &mut Builder<'c>, x: &Operand<'c>, ty: DataType) -> Made<'c> {
    let value = super::shapes::scalar(b, x)?;
    convert(b, x.dtype, ty, value)
}

fn mel_weight_matrix<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (bins, length) = (one_size(b, cx.operand(0)?)?, one_size(b, cx.operand(1)?)?);
    let dtype = cx.data_type("output_datatype")?.unwrap_or(DataType::F32);
    let sum = wide(dtype);
    let mut edges = vec![];
    for at in 1..5 {
        edges.push(number(b, cx.operand(at)?, sum)?);
    }
    let rows = length.floor_div(&2.into()).unwrap_or_default().plus(1);
    let count = b.index(&bins)?;
    let points = b.computed(sum, &[bins.plus(2)], |b, at| mel_point(b, at[0], &edges, count))?;
    let points = (b.value(&points)?, sum);
    let ty = b.element(sum)?;
    let result = b.computed(dtype, &[rows, bins], |b, at| {
        let row = to_float(b, at[0], ty)?;
        let (zero, one) = (like(b, row, 0.0), like(b, row, 1.0));
        let mut point = |by: f64| {
            let by = like(b, at[1], by);
            let at = add(b, at[1], by)?;
            element(b, points, &[at], sum)
        };
        let (low, center, high) = (point(0.0)?, point(1.0)?, point(2.0)?);
        let mut slope = |from: Value<'c>, to: Value<'c>, over: [Value<'c>; 2]| {
            let (rise, run) = (sub(b, to, from)?, sub(b, over[1], over[0])?);
            let run = most(b, run, one)?;
            div(b, rise, run)
        };
        let (up, down) = (slope(low, row, [low, center])?, slope(row, high, [center, high])?);
        let (after, before) = (b.compare(CmpF::Ole, low, row)?, b.compare(CmpF::Ole, row, center)?);
        let rises = super::scalars::both(b, after, before)?;
        // Points that fall together.
        let is_steep = b.compare(CmpF::Oeq, low, center)?;
        let up = b.select(is_steep, one, up)?;
        let value = b.select(rises, up, zero)?;
        let (after, before) = (b.compare(CmpF::Ole, center, row)?, b.compare(CmpF::Olt, row, high)?);
        let falls = super::scalars::both(b, after, before)?;
        let value = b.select(falls, down, value)?;
        let range = [zero, one];
        let value = between(b, value, range)?;
        convert(b, sum, dtype, value)
    })?;
    Ok(vec![result])
}

/// The spectrum's bin of a point on the mel scale; edges: length, rate, lowest and highest frequency.
fn mel_point<'c>(b: &mut Builder<'c>, at: Value<'c>, edges: &[Value<'c>], count: Value<'c>) -> Made<'c> {
    let at = to_float(b, at, edges[0].ty())?;
    let [length, rate, low, high] = [edges[0], edges[1], edges[2], edges[3]];
    let (hertz, factor, one) = (like(b, at, 700.0), like(b, at, 2595.0 / std::f64::consts::LN_10), like(b, at, 1.0));
    let mut mel = |frequency: Value<'c>| {
        let part = div(b, frequency, hertz)?;
        let log = b.unary(ops::math::LOG1P, part)?;
        mul(b, log, factor)
    };
    let (low, high) = (mel(low)?, mel(high)?);
    let (count, two) = (to_float(b, count, at.ty())?, like(b, at, 2.0));
    let steps = add(b, count, two)?;
    let span = sub(b, high, low)?;
    let step = div(b, span, steps)?;
    let moved = mul(b, at, step)?;
    let place = add(b, moved, low)?;
    let power = div(b, place, factor)?;
    let power = b.unary(ops::math::EXPM1, power)?;
    let frequency = mul(b, power, hertz)?;
    let points = add(b, length, one)?;
    let scaled = mul(b, points, frequency)?;
    let place = div(b, scaled, rate)?;
    b.unary(ops::math::FLOOR, place)
}
