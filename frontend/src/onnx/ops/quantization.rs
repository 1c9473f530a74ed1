//! Quantisation: floats as scaled integers, and operations on these.

use super::block_weights::dequantised;
use super::compare::{cast_to, convert};
use super::convolution::{Windows, convolve, kernel};
use super::products::matmul;
use super::scalars::{add, between, bounds, div, like, mul, sub, wide};
use crate::onnx::Results;
use crate::onnx::operand::Operand;
use crate::onnx::predicate::CmpF;
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, DataType, Failure, Narrowing, NodeContext, Registry};
use monopour_ir::{Value, ops};

pub(super) fn register(registry: &mut Registry) {
    for domain in ["", "com.microsoft"] {
        let first = if domain.is_empty() { 10 } else { 1 };
        registry.add(
            domain,
            "QuantizeLinear",
            first..=i64::MAX,
            quantize_linear,
            "floats of less than 16 bits without saturation",
        );
        registry.add(domain, "DequantizeLinear", first..=i64::MAX, dequantize_linear, "");
    }
    registry.op("DynamicQuantizeLinear", 11, dynamic_quantize_linear, "");
    registry.op("MatMulInteger", 10, matmul_integer, "");
    registry.op("ConvInteger", 10, conv_integer, "");
    registry.op("QLinearMatMul", 10, qlinear_matmul, "");
    registry.op("QLinearConv", 10, qlinear_conv, "");
}

/// Where the numbers of a scale or zero point belong.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    /// Numbers of rank 1 are those of this dimension.
    pub axis: usize,
    pub rank: usize,
}

impl Layout {
    /// One number, or one for each index of the axis, so that it broadcasts.
    pub fn of<'c>(self, b: &mut Builder<'c>, x: &Operand<'c>) -> Result<Operand<'c>, Failure> {
        if x.elements().is(1) {
            return b.reshaped(x, &[]);
        }
        if x.rank() != 1 {
            return Ok(x.clone());
        }
        if self.axis >= self.rank {
            return Err(format!(
                "its scale of shape {} has no dimension to scale",
                crate::onnx::operand_shape(&x.shape)
            )
            .into());
        }
        let mut shape = vec![Dim::constant(1); self.rank - self.axis];
        let first = shape.first_mut().ok_or("its operand has one element, but its scale or zero point more")?;
        first.clone_from(&x.shape[0]);
        b.reshaped(x, &shape)
    }
}

/// An operand with its scale and zero point, all of shapes that broadcast.
struct Parts<'c> {
    x: Operand<'c>,
    scale: Operand<'c>,
    zero: Option<Operand<'c>>,
    /// The dimension that is blocks.
    blocks: Option<usize>,
}

fn parts<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Result<Parts<'c>, Failure> {
    let (x, scale, zero) = (cx.operand(0)?, cx.operand(1)?, cx.optional(2));
    let block = cx.int("block_size", 0)?;
    if block > 0 && scale.rank() == x.rank() && x.rank() > 0 {
        return blocked(b, cx, block);
    }
    let axis = if x.rank() < 2 { 0 } else { cx.axis_attribute(1, x.rank())? };
    let layout = Layout { axis, rank: x.rank() };
    let zero = zero.map(|zero| layout.of(b, zero)).transpose()?;
    Ok(Parts { x: x.clone(), scale: layout.of(b, scale)?, zero, blocks: None })
}

/// Blocks as a dimension of their own.
fn blocked<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>, block: i64) -> Result<Parts<'c>, Failure> {
    let (x, scale, zero) = (cx.operand(0)?, cx.operand(1)?, cx.optional(2));
    let axis = cx.axis_attribute(1, x.rank())?;
    let blocks = &scale.shape[axis];
    let apart = |first: Dim, second: Dim| {
        let mut shape = x.shape.clone();
        shape.splice(axis..=axis, [first, second]);
        shape
    };
    let whole = blocks.times(block);
    let padded = if whole == x.shape[axis] {
        x.clone()
    } else {
        let mut after = vec![Dim::default(); x.rank()];
        after[axis] = whole.sub(&x.shape[axis]);
        let element = b.element(x.dtype)?;
        let none = b.number(element, 0.0);
        b.padded(x, &vec![Dim::default(); x.rank()], &after, none)?
    };
    let one = Dim::constant(1);
    let x = b.reshaped(&padded, &apart(blocks.clone(), block.into()))?;
    let scale = b.reshaped(scale, &apart(blocks.clone(), one.clone()))?;
    let zero = zero.map(|zero| b.reshaped(zero, &apart(blocks.clone(), one.clone()))).transpose()?;
    Ok(Parts { x, scale, zero, blocks: Some(axis) })
}

/// The result under the operand's shape, if it is in blocks along an axis.
fn joined<'c>(
    b: &mut Builder<'c>,
    result: &Operand<'c>,
    blocks: Option<usize>,
    x: &Operand<'c>,
) -> Result<Operand<'c>, Failure> {
    let Some(axis) = blocks else { return Ok(result.clone()) };
    let mut shape = x.shape.clone();
    shape[axis] = result.shape[axis].mul(&result.shape[axis + 1]);
    let whole = b.reshaped(result, &shape)?;
    if shape == x.shape {
        return Ok(whole);
    }
    b.slice(&whole, &vec![Dim::default(); x.rank()], &x.shape, &vec![1; x.rank()])
}

/// A float rounded to the nearest even integer, moved by the zero point, within the type's range.
pub(super) fn saturated<'c>(
    b: &mut Builder<'c>,
    x: Value<'c>,
    zero: Option<(Value<'c>, DataType)>,
    to: DataType,
) -> Result<Value<'c>, Failure> {
    let x = if x.ty().float_width() == Some(16) {
        b.op(ops::arith::EXTF, &[x], monopour_ir::Type::f32(b.context()))?
    } else {
        x
    };
    if to.is_narrow_float() {
        // The format rounds and saturates; its zero point is 0.
        return b.encode(to, x, Narrowing::default());
    }
    let bits = to.bits().filter(|_| to.is_integer()).ok_or_else(|| format!("results of {to} are not supported"))?;
    let mut rounded = b.unary(ops::math::ROUNDEVEN, x)?;
    if let Some((zero, dtype)) = zero {
        let float = if x.ty().float_width() == Some(64) { DataType::F64 } else { DataType::F32 };
        let zero = convert(b, dtype, float, zero)?;
        rounded = add(b, rounded, zero)?;
    }
    let (low, high) = bounds(bits, to.is_unsigned());
    let range = [like(b, rounded, low), like(b, rounded, high)];
    let inside = between(b, rounded, range)?;
    let float = if x.ty().float_width() == Some(64) { DataType::F64 } else { DataType::F32 };
    convert(b, float, to, inside)
}

fn quantize_linear<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let parts = parts(b, cx)?;
    let to = match &parts.zero {
        Some(zero) => zero.dtype,
        None => cx.data_type("output_dtype")?.unwrap_or(DataType::U8),
    };
    if to.is_narrow_float() && !cx.flag("saturate", true)? {
        return Err("rounding without saturation is not supported".into());
    }
    let (from, scale) = (parts.x.dtype, parts.scale.dtype);
    let by = cx.data_type("precision")?.unwrap_or(scale);
    let operands: Vec<&Operand> = [&parts.x, &parts.scale].into_iter().chain(&parts.zero).collect();
    let result = b.elementwise_of_shape(&operands, to, parts.x.shape.clone(), |b, e| {
        let (x, scale) = (convert(b, from, by, e[0])?, convert(b, scale, by, e[1])?);
        let quotient = div(b, x, scale)?;
        saturated(b, quotient, e.get(2).map(|zero| (*zero, to)), to)
    })?;
    Ok(vec![joined(b, &result, parts.blocks, cx.operand(0)?)?])
}

fn dequantize_linear<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (x, scale) = (cx.operand(0)?, cx.operand(1)?);
    let to = cx.data_type("output_dtype")?.unwrap_or(scale.dtype);
    if wide(scale.dtype) == DataType::F32 && x.rank() > 1 {
        let block = if scale.rank() == x.rank() { cx.int("block_size", 0)?.max(0) } else { 0 };
        if let Some(weights) = dequantised(b, cx, (cx.axis_attribute(1, x.rank())?, block), to)? {
            return Ok(vec![weights]);
        }
    }
    let parts = parts(b, cx)?;
    let (from, scale) = (parts.x.dtype, parts.scale.dtype);
    let sum = wide(scale);
    let operands: Vec<&Operand> = [&parts.x, &parts.scale].into_iter().chain(&parts.zero).collect();
    let result = b.elementwise_of_shape(&operands, to, parts.x.shape.clone(), |b, e| {
        let mut x = convert(b, from, sum, e[0])?;
        if let Some(zero) = e.get(2) {
            let zero = convert(b, from, sum, *zero)?;
            x = sub(b, x, zero)?;
        }
        let scale = convert(b, scale, sum, e[1])?;
        let product = mul(b, x, scale)?;
        convert(b, sum, to, product)
    })?;
    Ok(vec![joined(b, &result, parts.blocks, cx.operand(0)?)?])
}

/// The scale and zero point of u8 for the range of a tensor's elements and 0, then the quantised tensor.
pub(super) fn dynamic<'c>(b: &mut Builder<'c>, x: &Operand<'c>) -> Result<[Operand<'c>; 3], Failure> {
    if x.dtype != DataType::F32 {
        return Err(format!("operands of {} are not supported", x.dtype).into());
    }
    let axes: Vec<usize> = (0..x.rank()).collect();
    let low = b.reduce(x, &axes, (DataType::F32, 0.0), |b, e, least| b.binary(ops::arith::MINIMUMF, least, e))?;
    let high = b.reduce(x, &axes, (DataType::F32, 0.0), |b, e, most| b.binary(ops::arith::MAXIMUMF, most, e))?;
    let scale = b.elementwise(&[&low, &high], DataType::F32, |b, e| {
        let span = sub(b, e[1], e[0])?;
        let (steps, zero, one) = (like(b, span, 255.0), like(b, span, 0.0), like(b, span, 1.0));
        let scale = div(b, span, steps)?;
        let is_zero = b.compare(CmpF::Oeq, span, zero)?;
        b.select(is_zero, one, scale)
    })?;
    let zero = b.elementwise(&[&low, &scale], DataType::U8, |b, e| {
        let none = like(b, e[0], 0.0);
        let steps = div(b, e[0], e[1])?;
        let steps = sub(b, none, steps)?;
        saturated(b, steps, None, DataType::U8)
    })?;
    let quantised = b.elementwise_of_shape(&[x, &scale, &zero], DataType::U8, x.shape.clone(), |b, e| {
        let quotient = div(b, e[0], e[1])?;
        saturated(b, quotient, Some((e[2], DataType::U8)), DataType::U8)
    })?;
    Ok([quantised, scale, zero])
}

fn dynamic_quantize_linear<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    Ok(dynamic(b, cx.operand(0)?)?.into())
}

/// The operand as i32, less its zero point.
pub(super) fn shifted<'c>(
    b: &mut Builder<'c>,
    x: &Operand<'c>,
    zero: Option<&Operand<'c>>,
    layout: Layout,
) -> Result<Operand<'c>, Failure> {
    let from = x.dtype;
    let Some(zero) = zero else { return cast_to(b, x, DataType::I32) };
    let zero = layout.of(b, zero)?;
    b.elementwise_of_shape(&[x, &zero], DataType::I32, x.shape.clone(), |b, e| {
        let (x, zero) = (convert(b, from, DataType::I32, e[0])?, convert(b, from, DataType::I32, e[1])?);
        sub(b, x, zero)
    })
}

/// Numbers of rows, and of columns, of a matrix of that rank.
pub(super) fn rows(rank: usize) -> Layout {
    Layout { axis: rank.saturating_sub(2), rank }
}
pub(super) fn columns(rank: usize) -> Layout {
    Layout { axis: rank.saturating_sub(1), rank }
}

fn matmul_integer<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (x, y) = (cx.operand(0)?, cx.operand(1)?);
    let x = shifted(b, x, cx.optional(2), rows(x.rank()))?;
    let y = shifted(b, y, cx.optional(3), columns(y.rank()))?;
    Ok(vec![matmul(b, &x, &y)?])
}

/// Integers as floats times a factor, quantised.
fn requantised<'c>(
    b: &mut Builder<'c>,
    sum: &Operand<'c>,
    scales: [&Operand<'c>; 3],
    zero: &Operand<'c>,
) -> Result<Operand<'c>, Failure> {
    let to = zero.dtype;
    let types = scales.map(|s| s.dtype);
    let zero = Layout { axis: 0, rank: 1 }.of(b, zero)?;
    let operands = [sum, scales[0], scales[1], scales[2], &zero];
    b.elementwise_of_shape(&operands, to, sum.shape.clone(), |b, e| {
        let mut scale = vec![];
        for (value, from) in e[1..4].iter().zip(types) {
            scale.push(convert(b, from, DataType::F32, *value)?);
        }
        let product = mul(b, scale[0], scale[1])?;
        let factor = div(b, product, scale[2])?;
        let x = convert(b, sum.dtype, DataType::F32, e[0])?;
        let scaled = mul(b, x, factor)?;
        saturated(b, scaled, Some((e[4], to)), to)
    })
}

fn qlinear_matmul<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (x, y) = (cx.operand(0)?, cx.operand(3)?);
    let (left, right) = (rows(x.rank()), columns(y.rank()));
    let (x, y) = (shifted(b, x, cx.optional(2), left)?, shifted(b, y, cx.optional(5), right)?);
    let (x_scale, y_scale) = (left.of(b, cx.operand(1)?)?, right.of(b, cx.operand(4)?)?);
    let out_scale = Layout { axis: 0, rank: 1 }.of(b, cx.operand(6)?)?;
    let product = matmul(b, &x, &y)?;
    Ok(vec![requantised(b, &product, [&x_scale, &y_scale, &out_scale], cx.operand(7)?)?])
}

/// The sums of products of a convolution of integers, less their zero points.
fn convolved<'c>(
    b: &mut Builder<'c>,
    cx: &NodeContext<'_, 'c>,
    (x, x_zero): (&Operand<'c>, Option<&Operand<'c>>),
    (w, w_zero): (&Operand<'c>, Option<&Operand<'c>>),
) -> Result<Operand<'c>, Failure> {
    if x.rank() < 3 || w.rank() != x.rank() {
        return Err("its image and filter are not of one rank, at least 3".into());
    }
    let windows = Windows::of(cx, kernel(cx, w)?, &x.shape[2..])?;
    let first = Layout { axis: 0, rank: x.rank() };
    let (x, w) = (shifted(b, x, x_zero, first)?, shifted(b, w, w_zero, first)?);
    let padded = windows.pad(b, &x, 0.0)?;
    convolve(b, &padded, &w, &windows, cx.int("group", 1)?)
}

fn conv_integer<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    Ok(vec![convolved(b, cx, (cx.operand(0)?, cx.optional(2)), (cx.operand(1)?, cx.optional(3)))?])
}

fn qlinear_conv<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let mut sum = convolved(b, cx, (cx.operand(0)?, cx.optional(2)), (cx.operand(3)?, cx.optional(5)))?;
    let channels = Layout { axis: 1, rank: sum.rank() };
    if let Some(bias) = cx.optional(8) {
        let bias = channels.of(b, bias)?;
        sum = b.elementwise_of_shape(&[&sum, &bias], DataType::I32, sum.shape.clone(), |b, e| add(b, e[0], e[1]))?;
    }
    let (x_scale, w_scale) = (channels.of(b, cx.operand(1)?)?, channels.of(b, cx.operand(4)?)?);
    let out_scale = Layout { axis: 0, rank: 1 }.of(b, cx.operand(6)?)?;
    Ok(vec![requantised(b, &sum, [&x_scale, &w_scale, &out_scale], cx.operand(7)?)?])
}
