//! Ops of com.microsoft that runtimes fuse: products, activations, normalizations.

use super::activations::{gelu_erf, gelu_tanh, swish_of};
use super::attention::scaled;
use super::compare::cast_to;
use super::movement::gather_rows;
use super::normalization::{normalized, rms, rms_norm, stash_type};
use super::products::matmul_transposed;
use super::reductions::{Kind, over};
use crate::onnx::operand::Operand;
use crate::onnx::{Builder, DataType, Failure, NodeContext, Registry, Results};
use monopour_ir::{Value, ops};

/// The domain.
pub(super) const DOMAIN: &str = "com.microsoft";

pub(super) fn register(registry: &mut Registry) {
    let mut op = |name: &str, lowering, missing| registry.add(DOMAIN, name, 1..=i64::MAX, lowering, missing);
    op("FusedMatMul", fused_matmul, "batches that are transposed");
    op("Gelu", |b, cx| with_bias(b, cx, |b, x| gelu_erf(b, x)), "");
    op("BiasGelu", |b, cx| with_bias(b, cx, |b, x| gelu_erf(b, x)), "");
    op("FastGelu", |b, cx| with_bias(b, cx, |b, x| gelu_tanh(b, x)), "");
    op("QuickGelu", quick_gelu, "");
    op("SkipLayerNormalization", |b, cx| skip_norm(b, cx, false), "");
    op("SkipSimplifiedLayerNormalization", |b, cx| skip_norm(b, cx, true), "");
    op("SimplifiedLayerNormalization", rms_norm, "");
    op("EmbedLayerNormalization", embed_norm, "");
    // Exported under this domain too.
    registry.op("SimplifiedLayerNormalization", 1, rms_norm, "");
}

fn fused_matmul<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    if cx.flag("transBatchA", false)? || cx.flag("transBatchB", false)? {
        return Err("batches that are transposed are not supported".into());
    }
    let transposed = [cx.flag("transA", false)?, cx.flag("transB", false)?];
    let y = matmul_transposed(b, [cx.operand(0)?, cx.operand(1)?], transposed)?;
    Ok(vec![scaled(b, &y, cx.float("alpha", 1.0)?)?])
}

/// An activation of the operand plus a bias, if there is one.
fn with_bias<'c>(
    b: &mut Builder<'c>,
    cx: &NodeContext<'_, 'c>,
    activation: fn(&mut Builder<'c>, Value<'c>) -> Result<Value<'c>, Failure>,
) -> Results<'c> {
    let x = cx.operand(0)?;
    let operands: Vec<&Operand> = [Some(x), cx.optional(1)].into_iter().flatten().collect();
    let result = b.elementwise(&operands, x.dtype, |b, e| {
        let sum = match e {
            [x, bias] => b.binary(ops::arith::ADDF, *x, *bias)?,
            _ => e[0],
        };
        activation(b, sum)
    })?;
    Ok(vec![result])
}

fn quick_gelu<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (x, alpha) = (cx.operand(0)?, cx.float("alpha", f64::from(1.702f32))?);
    Ok(vec![b.elementwise(&[x], x.dtype, |b, e| swish_of(b, e[0], alpha))?])
}

/// The sum of operands that broadcast to the first one.
fn sum<'c>(b: &mut Builder<'c>, operands: &[&Operand<'c>]) -> Result<Operand<'c>, Failure> {
    if operands.iter().any(|o| o.rank() > operands[0].rank()) {
        return Err("an operand does not broadcast to the first one".into());
    }
    b.elementwise_of_shape(operands, operands[0].dtype, operands[0].shape.clone(), |b, e| {
        e[1..].iter().try_fold(e[0], |sum, part| b.binary(ops::arith::ADDF, sum, *part))
    })
}

/// Normalizes the sum of the operand, what was skipped, and a bias; the sum is the last result.
fn skip_norm<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>, simplified: bool) -> Results<'c> {
    let (x, skip, scale) = (cx.operand(0)?, cx.operand(1)?, cx.operand(2)?);
    let bias = cx.optional(if simplified { 3 } else { 4 });
    let parts: Vec<&Operand> = [Some(x), Some(skip), bias].into_iter().flatten().collect();
    let sum = sum(b, &parts)?;
    let epsilon = cx.float("epsilon", f64::from(1e-12f32))?;
    let wide = cast_to(b, &sum, stash_type(cx, x.dtype)?)?;
    let axis = wide.rank().checked_sub(1).ok_or("its operand has no dimensions")?;
    if simplified {
        let [y, inverse] = rms(b, &wide, axis, scale, epsilon)?;
        // Without a mean to subtract, its place is not used.
        return Ok(vec![cast_to(b, &y, x.dtype)?, inverse.clone(), inverse, sum]);
    }
    let [y, average, inverse] = normalized(b, &wide, axis, (scale, cx.optional(3)), epsilon)?;
    Ok(vec![cast_to(b, &y, x.dtype)?, average, inverse, sum])
}

/// The normalized sum of a word's, its place's and its segment's embeddings, and the number of words that are no padding.
fn embed_norm<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (words, table) = (cx.operand(0)?, cx.operand(2)?);
    let tables = [2, 3, 4].iter().filter_map(|at| cx.optional(*at));
    let rows = [0, 1, 7, 8].iter().filter_map(|at| cx.optional(*at));
    if tables.chain(rows).any(|o| o.rank() != 2) {
        return Err("its words, segments, mask or tables are not of rank 2".into());
    }
    let mut parts = vec![gather_rows(b, table, words)?];
    parts.push(match cx.optional(8) {
        Some(places) => gather_rows(b, cx.operand(3)?, places)?,
        None => {
            let table = cx.operand(3)?;
            let shape = [words.shape[1].clone(), table.shape[1].clone()];
            b.slice(table, &[0.into(), 0.into()], &shape, &[1, 1])?
        }
    });
    if let (Some(segments), Some(table)) = (cx.optional(1), cx.optional(4)) {
        parts.push(gather_rows(b, table, segments)?);
    }
    let sum = sum(b, &parts.iter().collect::<Vec<_>>())?;
    let wide = cast_to(b, &sum, stash_type(cx, sum.dtype)?)?;
    let factors = (cx.operand(5)?, Some(cx.operand(6)?));
    let [y, _, _] = normalized(b, &wide, 2, factors, cx.float("epsilon", f64::from(1e-12f32))?)?;
    let count = match cx.optional(7) {
        Some(mask) => over(b, mask, &[1], Kind::Sum)?,
        None => {
            let shape = vec![words.shape[0].clone()];
            let zero = b.filled(DataType::I32, &shape, 0.0)?;
            Operand::value(DataType::I32, shape, zero)
        }
    };
    Ok(vec![cast_to(b, &y, sum.dtype)?, count, sum])
}
