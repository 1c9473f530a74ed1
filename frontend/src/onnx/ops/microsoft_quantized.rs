//! Quantised ops of com.microsoft.

use super::block_weights::{Blocks, Zeros, table};
use super::compare::convert;
use super::movement::gather_along;
use super::products::matmul;
use super::quantization::{columns, dynamic, rows, saturated, shifted};
use super::reductions::{kept, mean};
use super::scalars::{Made, add, div, like, mul, sub};
use crate::onnx::Results;
use crate::onnx::operand::Operand;
use crate::onnx::predicate::CmpF;
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, DataType, Expr, Failure, NodeContext, Registry, structured};
use monopour_contract::attributes;
use monopour_ir::{Value, ops};

/// `accuracy_level` of MatMulNBits: rows may be rounded to 8 bits.
const INT8_ROWS_LEVEL: i64 = 4;

pub(super) fn register(registry: &mut Registry) {
    let mut op = |name, lowering, missing| registry.add("com.microsoft", name, 1..=i64::MAX, lowering, missing);
    op("QLinearAdd", |b, cx| binary(b, cx, add), "");
    op("QLinearMul", |b, cx| binary(b, cx, mul), "");
    op("QLinearSigmoid", |b, cx| unary(b, cx, sigmoid), "");
    op("QLinearLeakyRelu", leaky_relu, "");
    op("QLinearGlobalAveragePool", global_average_pool, "");
    op("DynamicQuantizeMatMul", dynamic_quantize_matmul, "");
    op("MatMulIntegerToFloat", matmul_integer_to_float, "");
    op("MatMulNBits", matmul_n_bits, "group indices");
    op("GatherBlockQuantized", gather_block_quantized, "tables that are no constants, blocks that do not divide");
}

/// A scale or zero point of one element.
fn one<'c>(b: &mut Builder<'c>, x: &Operand<'c>) -> Result<Operand<'c>, Failure> {
    if !x.elements().is(1) {
        return Err("its scales and zero points are not one element each".into());
    }
    b.reshaped(x, &[])
}

/// An element as a float.
fn dequantised<'c>(
    b: &mut Builder<'c>,
    (x, dtype): (Value<'c>, DataType),
    scale: Value<'c>,
    zero: Option<Value<'c>>,
) -> Made<'c> {
    let mut x = convert(b, dtype, DataType::F32, x)?;
    if let Some(zero) = zero {
        let zero = convert(b, dtype, DataType::F32, zero)?;
        x = sub(b, x, zero)?;
    }
    mul(b, x, scale)
}

/// The operands from `first` on that are given, as scalars, with a place for each that is not.
fn scalars<'c>(
    b: &mut Builder<'c>,
    cx: &NodeContext<'_, 'c>,
    at: &[usize],
) -> Result<(Vec<Operand<'c>>, Vec<Option<usize>>), Failure> {
    let (mut given, mut places) = (vec![], vec![]);
    for at in at {
        places.push(match cx.optional(*at) {
            Some(operand) => {
                given.push(one(b, operand)?);
                Some(given.len() - 1)
            }
            None => None,
        });
    }
    Ok((given, places))
}

/// A function of two dequantised operands, quantised.
fn binary<'c>(
    b: &mut Builder<'c>,
    cx: &NodeContext<'_, 'c>,
    function: impl FnOnce(&mut Builder<'c>, Value<'c>, Value<'c>) -> Made<'c>,
) -> Results<'c> {
    let (x, y) = (cx.operand(0)?, cx.operand(3)?);
    let (given, place) = scalars(b, cx, &[1, 2, 4, 5, 6, 7])?;
    let (Some(x_scale), Some(y_scale), Some(scale)) = (place[0], place[2], place[4]) else {
        return Err("a scale is missing".into());
    };
    let shape = structured::broadcast(&[&x.shape, &y.shape])?;
    let operands: Vec<&Operand> = [x, y].into_iter().chain(&given).collect();
    let to = x.dtype;
    let result = b.elementwise_of_shape(&operands, to, shape, |b, e| {
        let at = |place: Option<usize>| place.map(|p| e[2 + p]);
        let left = dequantised(b, (e[0], x.dtype), e[2 + x_scale], at(place[1]))?;
        let right = dequantised(b, (e[1], y.dtype), e[2 + y_scale], at(place[3]))?;
        let value = function(b, left, right)?;
        let quotient = div(b, value, e[2 + scale])?;
        saturated(b, quotient, at(place[5]).map(|zero| (zero, to)), to)
    })?;
    Ok(vec![result])
}

/// A function of a dequantised operand, quantised.
fn unary<'c>(
    b: &mut Builder<'c>,
    cx: &NodeContext<'_, 'c>,
    function: impl FnOnce(&mut Builder<'c>, Value<'c>) -> Made<'c>,
) -> Results<'c> {
    let x = cx.operand(0)?;
    let (given, place) = scalars(b, cx, &[1, 2, 3, 4])?;
    let (Some(x_scale), Some(scale)) = (place[0], place[2]) else { return Err("a scale is missing".into()) };
    let operands: Vec<&Operand> = [x].into_iter().chain(&given).collect();
    let to = x.dtype;
    let result = b.elementwise_of_shape(&operands, to, x.shape.clone(), |b, e| {
        let at = |place: Option<usize>| place.map(|p| e[1 + p]);
        let value = dequantised(b, (e[0], to), e[1 + x_scale], at(place[1]))?;
        let value = function(b, value)?;
        let quotient = div(b, value, e[1 + scale])?;
        saturated(b, quotient, at(place[3]).map(|zero| (zero, to)), to)
    })?;
    Ok(vec![result])
}

fn sigmoid<'c>(b: &mut Builder<'c>, x: Value<'c>) -> Made<'c> {
    let (one, minus) = (like(b, x, 1.0), b.unary(ops::arith::NEGF, x)?);
    let power = b.unary(ops::math::EXP, minus)?;
    let sum = add(b, one, power)?;
    div(b, one, sum)
}

fn leaky_relu<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let alpha = cx.float("alpha", f64::from(0.01f32))?;
    unary(b, cx, |b, x| {
        let (slope, zero) = (like(b, x, alpha), like(b, x, 0.0));
        let scaled = mul(b, x, slope)?;
        let below = b.compare(CmpF::Olt, x, zero)?;
        b.select(below, scaled, x)
    })
}

fn global_average_pool<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    let last = cx.flag("channels_last", false)?;
    let axes: Vec<usize> = if last { (1..x.rank().saturating_sub(1)).collect() } else { (2..x.rank()).collect() };
    let (given, place) = scalars(b, cx, &[1, 2, 3, 4])?;
    let (Some(x_scale), Some(scale)) = (place[0], place[2]) else { return Err("a scale is missing".into()) };
    let floats = super::compare::cast_to(b, x, DataType::F32)?;
    let average = mean(b, &floats, &axes)?;
    let operands: Vec<&Operand> = [&average].into_iter().chain(&given).collect();
    let to = x.dtype;
    let result = b.elementwise_of_shape(&operands, to, average.shape.clone(), |b, e| {
        let mut value = e[0];
        if let Some(zero) = place[1] {
            let zero = convert(b, to, DataType::F32, e[1 + zero])?;
            value = sub(b, value, zero)?;
        }
        let value = mul(b, value, e[1 + x_scale])?;
        let quotient = div(b, value, e[1 + scale])?;
        saturated(b, quotient, place[3].map(|p| (e[1 + p], to)), to)
    })?;
    Ok(vec![kept(b, &result, x, &axes)?])
}

/// A product of integers, scaled, with numbers of columns added.
fn scaled<'c>(
    b: &mut Builder<'c>,
    product: &Operand<'c>,
    scales: [&Operand<'c>; 2],
    bias: Option<&Operand<'c>>,
) -> Result<Operand<'c>, Failure> {
    let to = scales[0].dtype;
    let operands: Vec<&Operand> = [product, scales[0], scales[1]].into_iter().chain(bias).collect();
    b.elementwise_of_shape(&operands, to, product.shape.clone(), |b, e| {
        let x = convert(b, product.dtype, DataType::F32, e[0])?;
        let (left, right) = (convert(b, to, DataType::F32, e[1])?, convert(b, scales[1].dtype, DataType::F32, e[2])?);
        let factor = mul(b, left, right)?;
        let mut value = mul(b, x, factor)?;
        if let Some(bias) = e.get(3) {
            let bias = convert(b, to, DataType::F32, *bias)?;
            value = add(b, value, bias)?;
        }
        convert(b, DataType::F32, to, value)
    })
}

fn dynamic_quantize_matmul<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (x, y) = (cx.operand(0)?, cx.operand(1)?);
    let [quantised, scale, zero] = dynamic(b, x)?;
    let right = columns(y.rank());
    let left = shifted(b, &quantised, Some(&zero), rows(x.rank()))?;
    let weights = shifted(b, y, cx.optional(3), right)?;
    let product = matmul(b, &left, &weights)?;
    let by = right.of(b, cx.operand(2)?)?;
    Ok(vec![scaled(b, &product, [&scale, &by], cx.optional(4))?])
}

fn matmul_integer_to_float<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (x, y) = (cx.operand(0)?, cx.operand(1)?);
    let (left, right) = (rows(x.rank()), columns(y.rank()));
    let (x_scale, y_scale) = (left.of(b, cx.operand(2)?)?, right.of(b, cx.operand(3)?)?);
    let x = shifted(b, x, cx.optional(4), left)?;
    let y = shifted(b, y, cx.optional(5), right)?;
    let product = matmul(b, &x, &y)?;
    Ok(vec![scaled(b, &product, [&x_scale, &y_scale], cx.optional(6))?])
}

fn matmul_n_bits<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (x, packed) = (cx.operand(0)?, cx.operand(1)?);
    let layout = Blocks {
        columns: cx.int("N", 0)?,
        depth: cx.int("K", 0)?,
        bits: cx.int("bits", 4)?,
        block: cx.int("block_size", 0)?,
        signed: false,
    };
    let right = matches!(layout.bits, 2 | 4 | 8) && layout.block > 0 && layout.block % layout.per_byte() == 0;
    if !right || layout.columns < 1 || layout.depth < 1 || packed.dtype != DataType::U8 {
        return Err(format!("weights of {} bits in blocks of {} are not supported", layout.bits, layout.block).into());
    }
    if cx.optional(4).is_some() {
        return Err("group indices are not supported".into());
    }
    // Zero points are packed too, or floats.
    let zeros = match cx.optional(3) {
        Some(zeros) if zeros.dtype == DataType::U8 => layout.zeros(zeros),
        Some(zeros) => Zeros::Each(zeros.clone()),
        None => Zeros::All(2f64.powi(layout.bits as i32 - 1)),
    };
    let weights = layout.floats(b, [packed, cx.operand(2)?], &zeros, x.dtype)?;
    let depth = [Dim::constant(layout.columns), Dim::constant(layout.depth)];
    let weights = if weights.shape[1] == depth[1] {
        weights
    } else {
        b.slice(&weights, &[Dim::default(), Dim::default()], &depth, &[1, 1])?
    };
    // Loops: those of the rows, the columns, the depth.
    let lead = x.rank().checked_sub(1).ok_or("its operand has no dimensions")?;
    if x.shape[lead].as_constant().is_some_and(|depth| depth != layout.depth) {
        return Err(format!("a product over {} and {} elements", x.shape[lead], layout.depth).into());
    }
    let loops = |all: Vec<usize>| all.into_iter().map(Expr::Loop).collect::<Vec<_>>();
    let left = (b.value(x)?, loops((0..lead).chain([lead + 1]).collect()));
    let right = (b.value(&weights)?, loops(vec![lead, lead + 1]));
    let shape = [&x.shape[..lead], &[Dim::constant(layout.columns)]].concat();
    let result: Vec<usize> = (0..=lead).collect();
    let product = b.products([left, right], lead + 2, x.dtype, (&shape, &result))?;
    if cx.int("accuracy_level", 0)? == INT8_ROWS_LEVEL {
        b.mark_product(&product, attributes::ROUNDED_ROWS);
    }
    let Some(bias) = cx.optional(5) else { return Ok(vec![product]) };
    Ok(vec![b.elementwise_of_shape(&[&product, bias], x.dtype, shape, |b, e| add(b, e[0], e[1]))?])
}

fn gather_block_quantized<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let table = table(b, cx)?;
    let axis = cx.axis(cx.int("gather_axis", 0)?, table.rank())?;
    Ok(vec![gather_along(b, &table, cx.operand(1)?, axis)?])
}
