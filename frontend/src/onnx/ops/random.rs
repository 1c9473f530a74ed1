//! Random numbers, which follow from a seed and the place of an element: the same in each run, on every device.
//!
//! The bits are a hash of the place and of the node's key: `lowbias32` (C. Wellons, hash-prospector), which changes each bit of
//! its result with nearly half of the inputs' ones. Normal numbers are those of Box and Muller. The key is the attribute `seed`,
//! or the name of the result.

use super::compare::convert;
use super::scalars::{Made, add, like, mul};
use crate::onnx::graph::Attribute;
use crate::onnx::predicate::CmpF;
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, DataType, Failure, NodeContext, Registry, Results};
use monopour_ir::{Value, ops};

/// What the numbers do not have.
const LEFT_OUT: &str = "other numbers in each run";

pub(super) fn register(registry: &mut Registry) {
    registry.op("RandomNormal", 1, |b, cx| random(b, cx, Kind::Normal), LEFT_OUT);
    registry.op("RandomNormalLike", 1, |b, cx| random(b, cx, Kind::Normal), LEFT_OUT);
    registry.op("RandomUniform", 1, |b, cx| random(b, cx, Kind::Uniform), LEFT_OUT);
    registry.op("RandomUniformLike", 1, |b, cx| random(b, cx, Kind::Uniform), LEFT_OUT);
    registry.op("Bernoulli", 15, bernoulli, LEFT_OUT);
}

/// How numbers are distributed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Normal,
    Uniform,
}

/// Bits of a float's fraction that are drawn.
const DRAWN_BITS: i64 = 24;

fn random<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>, kind: Kind) -> Results<'c> {
    let (dtype, shape) = match cx.ints("shape")? {
        Some(shape) if shape.iter().any(|size| *size < 0) => {
            return Err(format!("attribute 'shape' is {shape:?}").into());
        }
        Some(shape) => (None, shape.into_iter().map(Dim::constant).collect()),
        None => (Some(cx.operand(0)?.dtype), cx.operand(0)?.shape.clone()),
    };
    let dtype = cx.data_type("dtype")?.or(dtype.filter(|dtype| dtype.is_float())).unwrap_or(DataType::F32);
    if !dtype.is_float() {
        return Err(format!("random numbers of type {dtype}").into());
    }
    let (first, second) = match kind {
        Kind::Normal => (cx.float("mean", 0.0)?, cx.float("scale", 1.0)?),
        Kind::Uniform => (cx.float("low", 0.0)?, cx.float("high", 1.0)?),
    };
    let key = key(cx)?;
    let sizes: Vec<Value> = shape.iter().map(|size| b.index(size)).collect::<Result<_, _>>()?;
    let result = b.computed(dtype, &shape, |b, at| {
        let (number, factor) = match kind {
            Kind::Uniform => (uniform(b, at, &sizes, key)?, second - first),
            Kind::Normal => (normal(b, at, &sizes, key)?, second),
        };
        let number = scaled(b, number, first, factor)?;
        convert(b, DataType::F32, dtype, number)
    })?;
    Ok(vec![result])
}

/// 1 with the probability that an element is, else 0.
fn bernoulli<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    if !x.dtype.is_float() {
        return Err(format!("probabilities of type {}", x.dtype).into());
    }
    let (dtype, key) = (cx.data_type("dtype")?.unwrap_or(x.dtype), key(cx)?);
    let sizes: Vec<Value> = x.shape.iter().map(|size| b.index(size)).collect::<Result<_, _>>()?;
    let result = b.elementwise(&[x], dtype, |b, e| {
        let at: Vec<Value> = (0..sizes.len()).map(|d| b.loop_index(d)).collect::<Result<_, _>>()?;
        let (number, probability) = (uniform(b, &at, &sizes, key)?, convert(b, x.dtype, DataType::F32, e[0])?);
        let is_one = b.compare(CmpF::Olt, number, probability)?;
        convert(b, DataType::Bool, dtype, is_one)
    })?;
    Ok(vec![result])
}

/// What tells the numbers of one node from those of another.
fn key(cx: &NodeContext) -> Result<u32, Failure> {
    let given = matches!(cx.node.attributes.get("seed"), Some(Attribute::Float(_)));
    if given {
        return Ok((cx.float("seed", 0.0)? as f32).to_bits());
    }
    // FNV-1a.
    let name = cx.node.outputs.first().map_or("", String::as_str);
    Ok(name.bytes().fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)))
}

fn scaled<'c>(b: &mut Builder<'c>, x: Value<'c>, offset: f64, factor: f64) -> Made<'c> {
    let (offset, factor) = (like(b, x, offset), like(b, x, factor));
    let product = mul(b, x, factor)?;
    add(b, product, offset)
}

/// Numbers of 24 bits in [0, 1).
fn uniform<'c>(b: &mut Builder<'c>, at: &[Value<'c>], sizes: &[Value<'c>], key: u32) -> Made<'c> {
    let bits = bits(b, at, sizes, key)?;
    fraction(b, bits)
}

/// Numbers of the normal distribution of mean 0 and deviation 1.
fn normal<'c>(b: &mut Builder<'c>, at: &[Value<'c>], sizes: &[Value<'c>], key: u32) -> Made<'c> {
    let first = bits(b, at, sizes, key)?;
    let second = hashed(b, first, key ^ 0x9e37_79b9)?;
    let (first, second) = (fraction(b, first)?, fraction(b, second)?);
    // The logarithm is of no zero.
    let half = like(b, first, 0.5 / (1 << DRAWN_BITS) as f64);
    let inside = add(b, first, half)?;
    let logarithm = b.unary(ops::math::LOG, inside)?;
    let minus_two = like(b, logarithm, -2.0);
    let squared = mul(b, logarithm, minus_two)?;
    let radius = b.unary(ops::math::SQRT, squared)?;
    let turn = like(b, second, std::f64::consts::TAU);
    let angle = mul(b, second, turn)?;
    let cosine = b.unary(ops::math::COS, angle)?;
    mul(b, radius, cosine)
}

/// The upper bits of a word as a fraction.
fn fraction<'c>(b: &mut Builder<'c>, bits: Value<'c>) -> Made<'c> {
    let (float, by) = (b.element(DataType::F32)?, b.int(bits.ty(), 32 - DRAWN_BITS));
    let upper = b.binary(ops::arith::SHRUI, bits, by)?;
    let number = b.op(ops::arith::UITOFP, &[upper], float)?;
    let unit = like(b, number, 1.0 / (1 << DRAWN_BITS) as f64);
    mul(b, number, unit)
}

/// 32 bits of an element: those of its place, row by row.
fn bits<'c>(b: &mut Builder<'c>, at: &[Value<'c>], sizes: &[Value<'c>], key: u32) -> Made<'c> {
    let word = b.element(DataType::I32)?;
    let mut place = b.int(word, 0);
    for (d, index) in at.iter().enumerate() {
        let [size, index] =
            [b.op(ops::arith::INDEX_CAST, &[sizes[d]], word)?, b.op(ops::arith::INDEX_CAST, &[*index], word)?];
        let rows = b.binary(ops::arith::MULI, place, size)?;
        place = b.binary(ops::arith::ADDI, rows, index)?;
    }
    let first = hashed(b, place, key)?;
    hashed(b, first, key.rotate_left(16))
}

/// `lowbias32` of a word and a key.
fn hashed<'c>(b: &mut Builder<'c>, word: Value<'c>, key: u32) -> Made<'c> {
    let number = |b: &mut Builder<'c>, value: u32| b.int(word.ty(), i64::from(value.cast_signed()));
    let key = number(b, key);
    let mut word = b.binary(ops::arith::XORI, word, key)?;
    for (shift, factor) in [(16, Some(0x7feb_352d_u32)), (15, Some(0x846c_a68b)), (16, None)] {
        let by = number(b, shift);
        let upper = b.binary(ops::arith::SHRUI, word, by)?;
        word = b.binary(ops::arith::XORI, word, upper)?;
        if let Some(factor) = factor {
            let factor = number(b, factor);
            word = b.binary(ops::arith::MULI, word, factor)?;
        }
    }
    Ok(word)
}
