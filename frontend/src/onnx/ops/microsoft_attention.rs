//! Attention ops of com.microsoft, on those of `attention`.

use super::attention::{Heads, Mask, Place, Scores, attend, default_scale, joined_heads, past, split_heads, widened};
use super::elementwise::{ADD, compute};
use super::microsoft::DOMAIN;
use super::products::matmul;
use super::recurrence::{at, range};
use super::rotary::{Position, Rotation, rotated};
use super::scalars::{clamped, is_inside};
use super::slices::join;
use crate::onnx::operand::Operand;
use crate::onnx::predicate::CmpI;
use crate::onnx::structured::identity;
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, DataType, Expr, Failure, LoopKind, NodeContext, Registry, Results, Structured};
use monopour_ir::{Type, Value, ops};

pub(super) fn register(registry: &mut Registry) {
    let mut op = |name: &str, lowering, missing| registry.add(DOMAIN, name, 1..=i64::MAX, lowering, missing);
    op("Attention", attention, "rotary embeddings, masks of starts and ends, shared buffers of past keys");
    op(
        "MultiHeadAttention",
        multi_head,
        "masks of starts and ends, beams, shared buffers of past keys, biases of packed operands",
    );
    op("GroupQueryAttention", group_query, "smooth softmax, sinks, quantized caches");
}

/// Refuses attributes that are given and not 0.
fn refuse(cx: &NodeContext, names: &[&str]) -> Result<(), Failure> {
    for name in names {
        if cx.int(name, 0)? != 0 {
            return Err(format!("attribute '{name}' is not supported").into());
        }
    }
    Ok(())
}

/// Refuses operands that are given.
fn refuse_operands(cx: &NodeContext, from: usize) -> Result<(), Failure> {
    match (from..cx.num_operands()).find(|at| cx.optional(*at).is_some()) {
        Some(at) => Err(format!("operand {at} is not supported").into()),
        None => Ok(()),
    }
}

/// The scale, 0 and missing: by the size of a head.
fn scores(cx: &NodeContext, q: &Operand, cap: f64) -> Result<Scores, Failure> {
    let given = Some(cx.float("scale", 0.0)?).filter(|scale| *scale != 0.0);
    Ok(Scores { scale: default_scale(q, given)?, cap, precision: None, stage: None })
}

fn attention<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    refuse(cx, &["do_rotary", "past_present_share_buffer"])?;
    refuse_operands(cx, 6)?;
    let x = cx.operand(0)?;
    let heads = cx.int("num_heads", 0)?;
    let mut projected = matmul(b, x, cx.operand(1)?)?;
    if let Some(bias) = cx.optional(2) {
        projected = compute(b, &[&projected, bias], x.dtype, ADD)?;
    }
    let [_, _, hidden] = &projected.shape[..] else { return Err("its operand is not of rank 3".into()) };
    let sizes: Vec<Dim> = match cx.ints("qkv_hidden_sizes")? {
        Some(sizes) => sizes.into_iter().map(Dim::constant).collect(),
        None => vec![hidden.exact_quotient(&3.into()).ok_or("its weights are not three of one size")?; 3],
    };
    let (mut from, mut each) = (Dim::default(), vec![]);
    for size in &sizes {
        let part = range(b, &projected, 2, &from, size)?;
        each.push(split_heads(b, &part, heads)?);
        from = from.add(size);
    }
    let [q, mut k, mut v]: [Operand; 3] = each.try_into().map_err(|_| "it has not three sizes")?;
    let mut place = Place::Start;
    if let Some(past) = cx.optional(4) {
        let [_, _, _, tokens, _] = &past.shape[..] else {
            return Err("its past keys and values are not of rank 5".into());
        };
        place = Place::After(tokens.clone());
        let (past_k, past_v) = (at(b, past, 0, &0.into())?, at(b, past, 0, &1.into())?);
        (k, v) = (join(b, &[&past_k, &k], 2)?, join(b, &[&past_v, &v], 2)?);
    }
    let given = added(b, cx, (cx.optional(3), cx.optional(5)), &k.shape[2])?;
    let mask = Mask { given, causal: cx.flag("unidirectional", false)?, place, ..Mask::default() };
    let scores = scores(cx, &q, 0.0)?;
    let mut present = None;
    if cx.wants(1) {
        let shape = [&[Dim::constant(1)], &k.shape[..]].concat();
        let (k, v) = (b.reshaped(&k, &shape)?, b.reshaped(&v, &shape)?);
        present = Some(join(b, &[&k, &v], 0)?);
    }
    let (y, _) = attend(b, &Heads { q, k, v }, &mask, &scores)?;
    let mut results = vec![joined_heads(b, &y)?];
    results.extend(present);
    Ok(results)
}

/// What is added to scores: a number where an integer mask hides a key, and the bias. `total` keys.
fn added<'c>(
    b: &mut Builder<'c>,
    cx: &NodeContext<'_, 'c>,
    (mask, bias): (Option<&Operand<'c>>, Option<&Operand<'c>>),
    total: &Dim,
) -> Result<Option<Operand<'c>>, Failure> {
    let Some(mask) = mask else { return Ok(bias.cloned()) };
    let (dtype, filter) = (cx.operand(0)?.dtype, cx.float("mask_filter_value", -10000.0)?);
    let one = Dim::constant(1);
    let hidden = match mask.rank() {
        1 => by_length(b, cx, mask, total, filter)?,
        2 | 3 => {
            let shape = match &mask.shape[..] {
                [batch, keys] => vec![batch.clone(), one.clone(), one, keys.clone()],
                shape => [&shape[..1], &[one], &shape[1..]].concat(),
            };
            let mask = b.reshaped(mask, &shape)?;
            let element = b.element(dtype)?;
            b.elementwise(&[&mask], dtype, |b, e| {
                let zero = b.int(e[0].ty(), 0);
                let hides = b.compare(CmpI::Eq, e[0], zero)?;
                let (filter, none) = (b.number(element, filter), b.number(element, 0.0));
                b.select(hides, filter, none)
            })?
        }
        rank => return Err(format!("a mask of rank {rank} is not supported").into()),
    };
    match bias {
        Some(bias) => Ok(Some(compute(b, &[bias, &hidden], dtype, ADD)?)),
        None => Ok(Some(hidden)),
    }
}

/// The mask of keys after the first ones, as many as a number per batch says.
fn by_length<'c>(
    b: &mut Builder<'c>,
    cx: &NodeContext<'_, 'c>,
    lengths: &Operand<'c>,
    total: &Dim,
    filter: f64,
) -> Result<Operand<'c>, Failure> {
    let x = cx.operand(0)?;
    if lengths.shape[0] != x.shape[0] {
        return Err(format!("a mask of {} numbers is not one for each batch", lengths.shape[0]).into());
    }
    let shape = vec![x.shape[0].clone(), 1.into(), 1.into(), total.clone()];
    let flat = [shape[0].clone(), total.clone()];
    let (input, out, element) = (b.value(lengths)?, b.empty(x.dtype, &flat)?, b.element(x.dtype)?);
    let op = Structured {
        loops: vec![LoopKind::Parallel; 2],
        inputs: vec![(input, vec![Expr::Loop(0)])],
        outputs: vec![(out, identity(2))],
    };
    let value = b.structured(&op, |b, e| {
        let length = b.op(ops::arith::INDEX_CAST, &[e[0]], Type::index(b.context()))?;
        let key = b.loop_index(1)?;
        let seen = b.compare(CmpI::Slt, key, length)?;
        let (filter, none) = (b.number(element, filter), b.number(element, 0.0));
        Ok(vec![b.select(seen, none, filter)?])
    })?[0];
    b.reshaped(&Operand::value(x.dtype, flat.to_vec(), value), &shape)
}

/// Queries, keys and values with their biases, by heads.
fn projections<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>, heads: i64) -> Result<Heads<'c>, Failure> {
    let query = cx.operand(0)?;
    let given = [Some(query), cx.optional(1), cx.optional(2)];
    if given.iter().flatten().any(|x| !(3..=5).contains(&x.rank())) {
        return Err("its operands are not of rank 3, 4 or 5".into());
    }
    // Keys and values by heads have theirs already.
    if cx.optional(3).is_some() && (query.rank() != 3 || given.iter().flatten().any(|x| x.rank() == 5)) {
        return Err("a bias of packed operands is not supported".into());
    }
    let packed = |b: &mut Builder<'c>, x: &Operand<'c>, part: i64| {
        let part = at(b, x, 3, &part.into())?;
        b.permuted(&part, &[0, 2, 1, 3])
    };
    let (mut each, mut from) = (vec![], Dim::default());
    for (number, x) in given.into_iter().enumerate() {
        let number = number as i64;
        // Keys and values may lie beside each other, with queries or without.
        let x = match x {
            Some(x) if x.rank() == 5 => packed(b, x, if number == 0 { 0 } else { number - 1 })?,
            None if query.rank() == 5 => packed(b, query, number)?,
            None => packed(b, cx.operand(1)?, number - 1)?,
            Some(x) if x.rank() == 4 => x.clone(),
            Some(x) => {
                let mut x = x.clone();
                let hidden = x.shape.get(2).ok_or("its operand is not of rank 3")?.clone();
                if let Some(bias) = cx.optional(3) {
                    let part = range(b, bias, 0, &from, &hidden)?;
                    x = compute(b, &[&x, &part], x.dtype, ADD)?;
                }
                from = from.add(&hidden);
                split_heads(b, &x, heads)?
            }
        };
        each.push(x);
    }
    let [q, k, v]: [Operand; 3] = each.try_into().map_err(|_| "it lacks operands")?;
    Ok(Heads { q, k, v })
}

fn multi_head<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    refuse_operands(cx, 8)?;
    let Heads { q, mut k, mut v } = projections(b, cx, cx.int("num_heads", 0)?)?;
    let mut place = Place::Start;
    if let Some([past_k, past_v]) = past([cx.optional(6), cx.optional(7)])? {
        place = Place::After(past_k.shape[2].clone());
        (k, v) = (join(b, &[past_k, &k], 2)?, join(b, &[past_v, &v], 2)?);
    }
    let given = added(b, cx, (cx.optional(4), cx.optional(5)), &k.shape[2])?;
    let mask = Mask { given, causal: cx.flag("unidirectional", false)?, place, ..Mask::default() };
    let scores = scores(cx, &q, 0.0)?;
    let heads = Heads { q, k, v };
    let (y, _) = attend(b, &heads, &mask, &scores)?;
    Ok(vec![joined_heads(b, &y)?, heads.k, heads.v])
}

fn group_query<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    refuse(cx, &["smooth_softmax", "kv_cache_bit_width", "qk_output"])?;
    refuse_operands(cx, 11)?;
    let (queries, heads) = (cx.int("num_heads", 0)?, cx.int("kv_num_heads", 0)?);
    let query = cx.operand(0)?;
    let has_rank = |at: usize, rank: usize| cx.optional(at).is_none_or(|o| o.rank() == rank);
    if query.rank() != 3 || ![(3, 4), (4, 4), (7, 2), (8, 2)].iter().all(|(at, rank)| has_rank(*at, *rank)) {
        return Err("its queries are not of rank 3, its past not of rank 4, or its tables not of rank 2".into());
    }
    let mut each = vec![];
    if cx.optional(1).is_some() {
        for (number, heads) in [queries, heads, heads].into_iter().enumerate() {
            each.push(split_heads(b, cx.operand(number)?, heads)?);
        }
    } else {
        let [_, _, hidden] = &query.shape[..] else { return Err("its operand is not of rank 3".into()) };
        let all = hidden.exact_quotient(&(queries + 2 * heads).into());
        let size = all.ok_or("its packed operand is not queries, keys and values")?;
        let mut from = Dim::default();
        for heads in [queries, heads, heads] {
            let part = range(b, query, 2, &from, &size.times(heads))?;
            each.push(split_heads(b, &part, heads)?);
            from = from.add(&size.times(heads));
        }
    }
    let [q, k, v]: [Operand; 3] = each.try_into().map_err(|_| "it lacks operands")?;
    let [valid, place] = cache_places(b, cx.operand(5)?, &q.shape[2])?;
    let (q, k) = if cx.flag("do_rotary", false)? {
        let tables = [cx.operand(7)?, cx.operand(8)?];
        if tables.iter().any(|table| table.rank() != 2) {
            return Err("its sines and cosines are not of rank 2".into());
        }
        let position = cx.optional(9).map_or(Position::From(&place), Position::Rows);
        let rotation = Rotation { tables, position, interleaved: cx.flag("rotary_interleaved", false)? };
        let turned = tables[0].shape[1].times(2);
        (rotated(b, &q, 2, turned.clone(), &rotation)?, rotated(b, &k, 2, turned, &rotation)?)
    } else {
        (q, k)
    };
    let caches = [cx.optional(3), cx.optional(4)];
    past(caches)?;
    let total = b.sizes_of(cx.operand(6)?)?.into_iter().next().ok_or("its number of keys is missing")?;
    let total = caches[0].map_or_else(|| total.clone(), |past| past.shape[2].at_least(&total));
    let k = appended(b, caches[0], &k, &place, &total)?;
    let v = appended(b, caches[1], &v, &place, &total)?;
    let window = Some(cx.int("local_window_size", -1)?).filter(|n| *n > 0).map(|n| n - 1);
    let given = cx.optional(10).map(|bias| widened(b, bias, &total, true)).transpose()?;
    let mask =
        Mask { given, causal: true, left: window, place: Place::Given(place), valid: Some(valid), ..Mask::default() };
    let scores = scores(cx, &q, cx.float("softcap", 0.0)?)?;
    let heads = Heads { q, k, v };
    let (y, _) = attend(b, &heads, &mask, &scores)?;
    Ok(vec![joined_heads(b, &y)?, heads.k, heads.v])
}

/// Number of valid keys in each batch, and the place of the first new one; `last` is that of the last one.
fn cache_places<'c>(b: &mut Builder<'c>, last: &Operand<'c>, new: &Dim) -> Result<[Operand<'c>; 2], Failure> {
    let last = b.reshaped(last, &[last.elements()])?;
    let valid = b.elementwise(&[&last], DataType::I64, |b, e| {
        let last = super::compare::convert(b, last.dtype, DataType::I64, e[0])?;
        let one = b.int(last.ty(), 1);
        b.binary(ops::arith::ADDI, last, one)
    })?;
    let i64 = b.element(DataType::I64)?;
    let new = b.index(new)?;
    let new = b.op(ops::arith::INDEX_CAST, &[new], i64)?;
    let place = b.elementwise(&[&valid], DataType::I64, |b, e| {
        let first = b.binary(ops::arith::SUBI, e[0], new)?;
        // A prompt that is padded starts at the first place.
        let zero = b.int(first.ty(), 0);
        b.binary(ops::arith::MAXSI, first, zero)
    })?;
    Ok([valid, place])
}

/// A cache of `total` places, with new tokens from `place` on in each batch; the places behind stay.
fn appended<'c>(
    b: &mut Builder<'c>,
    past: Option<&Operand<'c>>,
    new: &Operand<'c>,
    place: &Operand<'c>,
    total: &Dim,
) -> Result<Operand<'c>, Failure> {
    let mut shape = new.shape.clone();
    let count = b.index(&shape[2])?;
    shape[2] = total.clone();
    let mut inputs = vec![(b.value(place)?, vec![Expr::Loop(0)])];
    if let Some(past) = past.filter(|past| !past.shape[2].is(0)) {
        let element = b.element(past.dtype)?;
        let zero = b.number(element, 0.0);
        let missing = total.sub(&past.shape[2]);
        let before = vec![Dim::default(); 4];
        let mut after = before.clone();
        after[2] = missing.clone();
        let past = if missing.is(0) { past.clone() } else { b.padded(past, &before, &after, zero)? };
        inputs.push((b.value(&past)?, identity(4)));
    }
    let (source, out) = (b.value(new)?, b.empty(new.dtype, &shape)?);
    let op = Structured { loops: vec![LoopKind::Parallel; 4], inputs, outputs: vec![(out, identity(4))] };
    let has_past = op.inputs.len() == 2;
    let value = b.structured(&op, |b, e| {
        let at: Vec<Value> = (0..4).map(|d| b.loop_index(d)).collect::<Result<_, _>>()?;
        let index = at[2].ty();
        let place = b.op(ops::arith::INDEX_CAST, &[e[0]], index)?;
        let token = b.binary(ops::arith::SUBI, at[2], place)?;
        let is_new = is_inside(b, token, count)?;
        let token = clamped(b, token, count)?;
        let new = b.read(source, &[at[0], at[1], token, at[3]])?;
        let old = if has_past { e[1] } else { b.number(new.ty(), 0.0) };
        Ok(vec![b.select(is_new, new, old)?])
    })?[0];
    Ok(Operand::value(new.dtype, shape, value))
}
