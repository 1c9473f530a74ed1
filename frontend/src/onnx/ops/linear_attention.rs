//! Attention as a recurrence: a state per head, `S = exp(decay) * S + k (x) v`, read by queries.

use super::compare::cast_to;
use super::recurrence::{at, for_each, with};
use crate::onnx::operand::Operand;
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, DataType, Expr, Failure, NodeContext, Registry, Results};
use monopour_ir::ops;

pub(super) fn register(registry: &mut Registry) {
    registry.op("LinearAttention", 27, linear_attention, "");
}

/// The operands by heads: `[batch, tokens, heads, ..]`.
struct Sequence<'c> {
    /// `[batch, tokens, heads, queries of a head, keys]`, scaled.
    q: Operand<'c>,
    /// `[batch, tokens, heads, keys]`.
    k: Operand<'c>,
    /// `[batch, tokens, heads, values]`.
    v: Operand<'c>,
    /// `[batch, tokens, heads, keys or 1]`.
    decay: Option<Operand<'c>>,
    /// `[batch, tokens, heads or 1]`.
    beta: Option<Operand<'c>>,
}

fn linear_attention<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let rule = cx.string("update_rule", "gated_delta")?;
    let (gated, delta) = match rule.as_str() {
        "linear" => (false, false),
        "gated" => (true, false),
        "delta" => (false, true),
        "gated_delta" => (true, true),
        other => return Err(format!("attribute 'update_rule' is '{other}'").into()),
    };
    if gated != cx.optional(4).is_some() || delta != cx.optional(5).is_some() {
        return Err(format!("its decay and rate are not those of the rule '{rule}'").into());
    }
    let given = cx.operand(0)?.dtype;
    // The state is kept as f32 at least.
    let dtype = if given == DataType::F64 { given } else { DataType::F32 };
    let sequence = sequence(b, cx, dtype)?;
    let [batch, tokens, heads, group, _] = &sequence.q.shape[..] else { return Err("it has no heads".into()) };
    let size = &sequence.v.shape[3];
    let state_shape = [batch.clone(), heads.clone(), sequence.k.shape[3].clone(), size.clone()];
    let (first, state_type) = match cx.optional(3) {
        Some(past) => (cast_to(b, past, dtype)?, past.dtype),
        None => (Operand::value(dtype, state_shape.to_vec(), b.filled(dtype, &state_shape, 0.0)?), given),
    };
    let shape = [batch.clone(), tokens.clone(), heads.clone(), group.clone(), size.clone()];
    let init = [b.value(&first)?, b.empty(dtype, &shape)?];
    let results = for_each(b, tokens, &init, |b, index, so_far| {
        let token = b.new_symbol(index);
        let state = Operand::value(dtype, state_shape.to_vec(), so_far[0]);
        let (state, y) = step(b, &sequence, &state, &token)?;
        let y = with(b, so_far[1], &y, 1, &token)?;
        Ok(vec![b.value(&state)?, y])
    })?;
    let y = Operand::value(dtype, shape.to_vec(), results[1]);
    let y = b.reshaped(&y, &[batch.clone(), tokens.clone(), heads.mul(group).mul(size)])?;
    let state = Operand::value(dtype, state_shape.to_vec(), results[0]);
    Ok(vec![cast_to(b, &y, given)?, cast_to(b, &state, state_type)?])
}

fn sequence<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>, dtype: DataType) -> Result<Sequence<'c>, Failure> {
    let (queries, heads) = (cx.int("q_num_heads", 0)?, cx.int("kv_num_heads", 0)?);
    if queries <= 0 || heads <= 0 || queries % heads != 0 {
        return Err(format!("{queries} query heads do not share {heads} heads").into());
    }
    let mut operand = |at: usize, heads: &[i64]| -> Result<Operand<'c>, Failure> {
        let x = cast_to(b, cx.operand(at)?, dtype)?;
        let [batch, tokens, hidden] = &x.shape[..] else { return Err("its operands are not of rank 3".into()) };
        let size = hidden.exact_quotient(&heads.iter().product::<i64>().into());
        let size = size.ok_or_else(|| format!("{hidden} are not {heads:?} heads"))?;
        let mut shape = vec![batch.clone(), tokens.clone()];
        shape.extend(heads.iter().map(|n| Dim::constant(*n)));
        shape.push(size);
        b.reshaped(&x, &shape)
    };
    let (q, k, v) = (operand(0, &[heads, queries / heads])?, operand(1, &[heads])?, operand(2, &[heads])?);
    let decay = cx.optional(4).map(|_| operand(4, &[heads])).transpose()?;
    let beta = cx.optional(5).map(|beta| cast_to(b, beta, dtype)).transpose()?;
    if beta.as_ref().is_some_and(|beta| beta.rank() != 3) || cx.optional(3).is_some_and(|past| past.rank() != 4) {
        return Err("its rate is not of rank 3, or its state not of rank 4".into());
    }
    let given = cx.float("scale", 0.0)?;
    let size = q.shape[4].as_constant().filter(|n| *n > 0);
    let scale = match (given, size) {
        (0.0, Some(size)) => 1.0 / (size as f64).sqrt(),
        (0.0, None) => return Err("the size of its heads is not a number".into()),
        _ => given,
    };
    let q = super::attention::scaled(b, &q, scale)?;
    Ok(Sequence { q, k, v, decay, beta })
}

/// The state after a token, and what its queries read: `[batch, heads, queries of a head, values]`.
fn step<'c>(
    b: &mut Builder<'c>,
    sequence: &Sequence<'c>,
    state: &Operand<'c>,
    token: &Dim,
) -> Result<(Operand<'c>, Operand<'c>), Failure> {
    let dtype = state.dtype;
    let [batch, heads, keys, values] = &state.shape[..] else { return Err("its state is not of rank 4".into()) };
    let k = at(b, &sequence.k, 1, token)?;
    let v = at(b, &sequence.v, 1, token)?;
    let decay = sequence.decay.as_ref().map(|decay| at(b, decay, 1, token)).transpose()?;
    let beta = sequence.beta.as_ref().map(|beta| at(b, beta, 1, token)).transpose()?;
    let exprs = |dims: &[usize]| dims.iter().map(|d| Expr::Loop(*d)).collect::<Vec<_>>();
    let one = Dim::constant(1);
    let row = [batch.clone(), heads.clone(), one.clone(), values.clone()];
    // What the state holds for the key already.
    let held = match &beta {
        Some(_) => {
            let operands: Vec<&Operand> = [Some(&k), decay.as_ref()].into_iter().flatten().collect();
            let key = b.elementwise(&operands, dtype, |b, e| decayed(b, e[0], e.get(1).copied()))?;
            let operands = [(b.value(state)?, exprs(&[0, 1, 3, 2])), (b.value(&key)?, exprs(&[0, 1, 3]))];
            let held = b.products(operands, 4, dtype, (&[batch.clone(), heads.clone(), values.clone()], &[0, 1, 2]))?;
            Some(b.reshaped(&held, &row)?)
        }
        None => None,
    };
    let mut operands = vec![state.clone()];
    operands.push(b.reshaped(&k, &[batch.clone(), heads.clone(), keys.clone(), one.clone()])?);
    operands.push(b.reshaped(&v, &row)?);
    operands.extend(held);
    if let Some(beta) = &beta {
        let shape = [beta.shape[0].clone(), beta.shape[1].clone(), one.clone(), one.clone()];
        operands.push(b.reshaped(beta, &shape)?);
    }
    if let Some(decay) = &decay {
        let shape = [&decay.shape[..], &[one]].concat();
        operands.push(b.reshaped(decay, &shape)?);
    }
    let is_delta = beta.is_some();
    let all: Vec<&Operand> = operands.iter().collect();
    let state = b.elementwise_of_shape(&all, dtype, state.shape.clone(), |b, e| {
        let mut value = e[2];
        if is_delta {
            value = b.binary(ops::arith::SUBF, value, e[3])?;
            value = b.binary(ops::arith::MULF, value, e[4])?;
        }
        let old = decayed(b, e[0], e.get(if is_delta { 5 } else { 3 }).copied())?;
        let new = b.binary(ops::arith::MULF, e[1], value)?;
        b.binary(ops::arith::ADDF, old, new)
    })?;
    let q = at(b, &sequence.q, 1, token)?;
    let operands = [(b.value(&q)?, exprs(&[0, 1, 2, 4])), (b.value(&state)?, exprs(&[0, 1, 4, 3]))];
    let shape = [batch.clone(), heads.clone(), q.shape[2].clone(), values.clone()];
    let y = b.products(operands, 5, dtype, (&shape, &[0, 1, 2, 3]))?;
    Ok((state, y))
}

/// `x * exp(decay)`.
fn decayed<'c>(
    b: &mut Builder<'c>,
    x: monopour_ir::Value<'c>,
    decay: Option<monopour_ir::Value<'c>>,
) -> Result<monopour_ir::Value<'c>, Failure> {
    let Some(decay) = decay else { return Ok(x) };
    let factor = b.unary(ops::math::EXP, decay)?;
    b.binary(ops::arith::MULF, x, factor)
}
