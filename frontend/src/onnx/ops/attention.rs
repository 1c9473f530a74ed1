//! Attention: products of queries, keys and values around a masked softmax.
//!
//! ```text
//! scores = cap(scale * Q K^T) + mask     one product, one elementwise op
//! Y = softmax(scores) V                  row operations, one product
//! ```
//!
//! Query heads that share a head of keys are rows of one matrix, so that keys and values are read where they lie.

use super::compare::{cast_to, convert};
use super::normalization::softmax_over;
use super::reductions::{Kind, kept, over};
use super::slices::join;
use crate::onnx::operand::Operand;
use crate::onnx::predicate::{CmpF, CmpI};
use crate::onnx::structured::identity;
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, DataType, Expr, Failure, LoopKind, NodeContext, Registry, Results, Structured};
use monopour_ir::{Type, Value, ops};

pub(super) fn register(registry: &mut Registry) {
    registry.op("Attention", 23, attention, "");
    registry.add("ai.onnx.preview", "FlexAttention", 1..=i64::MAX, flex_attention, "");
}

/// Queries, keys and values by heads: `[batch, heads, tokens, size]`.
pub(super) struct Heads<'c> {
    pub q: Operand<'c>,
    pub k: Operand<'c>,
    pub v: Operand<'c>,
}

/// Which keys a query sees, and what is added to their scores.
#[derive(Default)]
pub(super) struct Mask<'c> {
    /// Truth values, or numbers to add; broadcast to the scores.
    pub given: Option<Operand<'c>>,
    /// No keys after the query's own place.
    pub causal: bool,
    /// Most keys before the query's own place, if bounded.
    pub left: Option<i64>,
    /// Most keys after it, if bounded.
    pub right: Option<i64>,
    /// The first query's place among the keys.
    pub place: Place<'c>,
    /// Number of keys in each batch that are no padding, integers `[batch]`.
    pub valid: Option<Operand<'c>>,
}

/// The place of the first query among the keys.
#[derive(Default)]
pub(super) enum Place<'c> {
    /// The first.
    #[default]
    Start,
    /// The same in every batch.
    After(Dim),
    /// As many places before the last valid key as there are queries before the last one.
    BeforeValid,
    /// Integers `[batch]`.
    Given(Operand<'c>),
}

impl Mask<'_> {
    /// Whether a query may see no key at all.
    fn may_hide_all(&self) -> bool {
        // The keys before a query, of which a window takes the last ones, may all be none of those there are.
        let by_place = self.left.is_some() || matches!(self.place, Place::BeforeValid | Place::Given(_));
        by_place || self.given.is_some() || self.valid.is_some()
    }
    fn is_none(&self) -> bool {
        let places = self.causal || self.left.is_some() || self.right.is_some();
        self.given.is_none() && self.valid.is_none() && !places
    }
}

/// How scores become weights.
pub(super) struct Scores {
    /// Factor of the products.
    pub scale: f64,
    /// Bound of the scores, 0: none.
    pub cap: f64,
    /// Type of the softmax.
    pub precision: Option<DataType>,
    /// The stage of the scores that is wanted as a result.
    pub stage: Option<Stage>,
}

/// A stage of the scores.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Stage {
    /// Products of queries and keys.
    Products,
    /// With the bound.
    Capped,
    /// With the mask.
    Masked,
    /// After the softmax.
    Weights,
}

fn attention<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let packed = cx.operand(0)?.rank() == 3;
    let count = |name: &str| -> Result<i64, Failure> {
        cx.int_given(name)?.filter(|n| *n > 0 || !packed).ok_or_else(|| format!("attribute '{name}' is missing").into())
    };
    let mut each = vec![];
    for (at, name) in ["q_num_heads", "kv_num_heads", "kv_num_heads"].into_iter().enumerate() {
        let x = cx.operand(at)?;
        each.push(if packed { split_heads(b, x, count(name)?)? } else { x.clone() });
    }
    let [q, mut k, mut v]: [Operand; 3] = each.try_into().map_err(|_| "it lacks operands")?;
    let valid = cx.optional(6).cloned();
    let mut place = if valid.is_some() { Place::BeforeValid } else { Place::Start };
    if [&q, &k, &v].iter().any(|x| x.rank() != 4) {
        return Err("its queries, keys and values are not all of rank 3 or all of rank 4".into());
    }
    if let Some([past_k, past_v]) = past([cx.optional(4), cx.optional(5)])? {
        place = Place::After(past_k.shape[2].clone());
        (k, v) = (join(b, &[past_k, &k], 2)?, join(b, &[past_v, &v], 2)?);
    }
    let window = |name: &str| -> Result<Option<i64>, Failure> { Ok(Some(cx.int(name, -1)?).filter(|n| *n >= 0)) };
    let total = k.shape[2].clone();
    let mask = Mask {
        given: cx.optional(3).map(|mask| widened(b, mask, &total, false)).transpose()?,
        causal: cx.flag("is_causal", false)?,
        left: window("left_window_size")?,
        right: window("right_window_size")?,
        place,
        valid,
    };
    let stage = match cx.int("qk_matmul_output_mode", 0)? {
        0 => Stage::Products,
        1 => Stage::Capped,
        2 => Stage::Masked,
        3 => Stage::Weights,
        other => return Err(format!("attribute 'qk_matmul_output_mode' is {other}").into()),
    };
    let scale = cx.node.attributes.contains_key("scale").then(|| cx.float("scale", 1.0)).transpose()?;
    let scores = Scores {
        scale: default_scale(&q, scale)?,
        cap: cx.float("softcap", 0.0)?,
        precision: cx.data_type("softmax_precision")?,
        stage: cx.wants(3).then_some(stage),
    };
    let heads = Heads { q, k, v };
    let (y, stage) = attend(b, &heads, &mask, &scores)?;
    let y = if packed { joined_heads(b, &y)? } else { y };
    let mut results = vec![y, heads.k, heads.v];
    results.extend(stage);
    Ok(results)
}

/// Whether queries, keys and values, given ones and past ones, are `[batch, heads, tokens, size]`.
fn check_ranks<const N: usize>(operands: [Option<&Operand>; N]) -> Result<(), Failure> {
    let fits = operands.iter().flatten().all(|x| x.rank() == 4);
    fits.then_some(()).ok_or_else(|| "its queries, keys and values are not of rank 3 or 4".into())
}

/// Attention with graphs that change the scores and the weights.
fn flex_attention<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let heads = Heads { q: cx.operand(0)?.clone(), k: cx.operand(1)?.clone(), v: cx.operand(2)?.clone() };
    check_ranks([&heads.q, &heads.k, &heads.v].map(Some))?;
    let scale = cx.node.attributes.contains_key("scale").then(|| cx.float("scale", 1.0)).transpose()?;
    let default = if heads.q.dtype == DataType::F64 { DataType::F64 } else { DataType::F32 };
    let precision = cx.data_type("softmax_precision")?.unwrap_or(default);
    let changed = |b: &mut Builder<'c>, x: Operand<'c>, name: &str| -> Result<Operand<'c>, Failure> {
        if !cx.node.attributes.contains_key(name) {
            return Ok(x);
        }
        let results = b.graph(&*cx.graph(name)?, vec![x])?;
        results.into_iter().next().ok_or_else(|| format!("the graph '{name}' has no result").into())
    };
    let scores = scaled_products(b, &heads, default_scale(&heads.q, scale)?)?;
    let scores = cast_to(b, &scores, precision)?;
    let scores = changed(b, scores, "score_mod")?;
    let weights = softmax_over(b, &scores, &[3], false)?;
    let weights = changed(b, weights, "prob_mod")?;
    let weights = cast_to(b, &weights, heads.q.dtype)?;
    Ok(vec![weighted(b, &weights, &heads)?])
}

/// `1 / sqrt(size of a head)` unless given.
pub(super) fn default_scale(q: &Operand, given: Option<f64>) -> Result<f64, Failure> {
    if let Some(scale) = given {
        return Ok(scale);
    }
    let size = q.shape.get(3).and_then(Dim::as_constant).ok_or("the size of its heads is not a number")?;
    Ok(1.0 / (size as f64).sqrt())
}

/// `[batch, tokens, heads * size]` as `[batch, heads, tokens, size]`.
pub(super) fn split_heads<'c>(b: &mut Builder<'c>, x: &Operand<'c>, heads: i64) -> Result<Operand<'c>, Failure> {
    let [batch, tokens, hidden] = &x.shape[..] else { return Err("its operand is not of rank 3".into()) };
    let size = hidden.exact_quotient(&heads.into()).ok_or_else(|| format!("{hidden} are not {heads} heads"))?;
    let apart = b.reshaped(x, &[batch.clone(), tokens.clone(), heads.into(), size])?;
    b.permuted(&apart, &[0, 2, 1, 3])
}

/// `[batch, heads, tokens, size]` as `[batch, tokens, heads * size]`.
pub(super) fn joined_heads<'c>(b: &mut Builder<'c>, x: &Operand<'c>) -> Result<Operand<'c>, Failure> {
    let y = b.permuted(x, &[0, 2, 1, 3])?;
    let shape = [y.shape[0].clone(), y.shape[1].clone(), y.shape[2].mul(&y.shape[3])];
    b.reshaped(&y, &shape)
}

/// Keys and values of tokens before, `[batch, heads, tokens, size]`: both or none.
pub(super) fn past<'a, 'c>(given: [Option<&'a Operand<'c>>; 2]) -> Result<Option<[&'a Operand<'c>; 2]>, Failure> {
    match given {
        [None, None] => Ok(None),
        [Some(k), Some(v)] if k.rank() == 4 && v.rank() == 4 => Ok(Some([k, v])),
        [Some(_), Some(_)] => Err("its past keys and values are not of rank 4".into()),
        _ => Err("it has past keys or past values, not both".into()),
    }
}

/// A mask of fewer keys than there are hides the others; that of one key may stand for all.
pub(super) fn widened<'c>(
    b: &mut Builder<'c>,
    mask: &Operand<'c>,
    total: &Dim,
    one_for_all: bool,
) -> Result<Operand<'c>, Failure> {
    let Some(own) = mask.shape.last() else { return Ok(mask.clone()) };
    let missing = total.sub(own).at_least(&0.into());
    if (one_for_all && own.is(1)) || missing.as_constant() == Some(0) {
        return Ok(mask.clone());
    }
    let element = b.element(mask.dtype)?;
    let hidden = b.number(element, if mask.dtype == DataType::Bool { 0.0 } else { f64::NEG_INFINITY });
    let before = vec![Dim::default(); mask.rank()];
    let mut after = before.clone();
    after[mask.rank() - 1] = missing;
    b.padded(mask, &before, &after, hidden)
}

/// The weighted sums of values, `[batch, heads, queries, size]`, and the stage of the scores that is wanted.
pub(super) fn attend<'c>(
    b: &mut Builder<'c>,
    heads: &Heads<'c>,
    mask: &Mask<'c>,
    scores: &Scores,
) -> Result<(Operand<'c>, Option<Operand<'c>>), Failure> {
    let products = scaled_products(b, heads, scores.scale)?;
    let capped = capped(b, &products, scores.cap)?;
    let masked = masked(b, &capped, mask)?;
    let weights = weights(b, &masked, scores.precision.unwrap_or(heads.q.dtype), mask.may_hide_all())?;
    let weights = cast_to(b, &weights, heads.q.dtype)?;
    let y = weighted(b, &weights, heads)?;
    let stage = scores.stage.map(|stage| match stage {
        Stage::Products => products,
        Stage::Capped => capped,
        Stage::Masked => masked,
        Stage::Weights => weights,
    });
    Ok((y, stage))
}

/// The products of queries and keys with a factor, `[batch, heads, queries, keys]`.
pub(super) fn scaled_products<'c>(
    b: &mut Builder<'c>,
    Heads { q, k, v }: &Heads<'c>,
    scale: f64,
) -> Result<Operand<'c>, Failure> {
    if [q, k, v].iter().any(|x| x.rank() != 4) || q.dtype != k.dtype {
        return Err("its queries, keys and values are not of rank 3 or 4 and one type".into());
    }
    let group = if q.shape[1] == k.shape[1] { Some(Dim::constant(1)) } else { q.shape[1].exact_quotient(&k.shape[1]) };
    let group = group.ok_or_else(|| format!("{} query heads do not share {} heads", q.shape[1], k.shape[1]))?;
    let narrow = matches!(q.dtype, DataType::F16 | DataType::Bf16);
    // Products of halves may overflow: queries are scaled before them.
    let q = if narrow { scaled(b, q, scale)? } else { q.clone() };
    let rows = group.mul(&q.shape[2]);
    let matrix = [q.shape[0].clone(), k.shape[1].clone(), rows, q.shape[3].clone()];
    let left = b.reshaped(&q, &matrix)?;
    let products = product(b, &left, k, true)?;
    let shape = [q.shape[0].clone(), q.shape[1].clone(), q.shape[2].clone(), k.shape[2].clone()];
    let products = b.reshaped(&products, &shape)?;
    if narrow { Ok(products) } else { scaled(b, &products, scale) }
}

/// The values with the weights `[batch, heads, queries, keys]`, in the type of the weights.
pub(super) fn weighted<'c>(
    b: &mut Builder<'c>,
    weights: &Operand<'c>,
    Heads { q, k, v }: &Heads<'c>,
) -> Result<Operand<'c>, Failure> {
    let group = q.shape[1].exact_quotient(&k.shape[1]).unwrap_or_else(|| Dim::constant(1));
    let rows = group.mul(&q.shape[2]);
    let matrix = [q.shape[0].clone(), k.shape[1].clone(), rows, k.shape[2].clone()];
    let left = b.reshaped(weights, &matrix)?;
    let y = if weights.dtype == v.dtype {
        product(b, &left, v, false)?
    } else {
        let either = [weights.dtype, v.dtype].contains(&DataType::F64);
        let wide = if either { DataType::F64 } else { DataType::F32 };
        let (left, right) = (cast_to(b, &left, wide)?, cast_to(b, v, wide)?);
        let y = product(b, &left, &right, false)?;
        cast_to(b, &y, weights.dtype)?
    };
    let shape = [q.shape[0].clone(), q.shape[1].clone(), q.shape[2].clone(), v.shape[3].clone()];
    b.reshaped(&y, &shape)
}

/// Products of matrices in two batch dimensions, the second one transposed or not.
fn product<'c>(
    b: &mut Builder<'c>,
    x: &Operand<'c>,
    y: &Operand<'c>,
    transposed: bool,
) -> Result<Operand<'c>, Failure> {
    let exprs = |dims: [usize; 4]| dims.into_iter().map(Expr::Loop).collect::<Vec<_>>();
    let (right, columns) = if transposed { ([0, 1, 3, 4], 2) } else { ([0, 1, 4, 3], 3) };
    let shape = [x.shape[0].clone(), x.shape[1].clone(), x.shape[2].clone(), y.shape[columns].clone()];
    let operands = [(b.value(x)?, exprs([0, 1, 2, 4])), (b.value(y)?, exprs(right))];
    b.products(operands, 5, x.dtype, (&shape, &[0, 1, 2, 3]))
}

pub(super) fn scaled<'c>(b: &mut Builder<'c>, x: &Operand<'c>, by: f64) -> Result<Operand<'c>, Failure> {
    if by == 1.0 {
        return Ok(x.clone());
    }
    b.elementwise(&[x], x.dtype, |b, e| {
        let by = b.number(e[0].ty(), by);
        b.binary(ops::arith::MULF, e[0], by)
    })
}

/// `cap * tanh(x / cap)`.
fn capped<'c>(b: &mut Builder<'c>, x: &Operand<'c>, cap: f64) -> Result<Operand<'c>, Failure> {
    if cap <= 0.0 {
        return Ok(x.clone());
    }
    b.elementwise(&[x], x.dtype, |b, e| {
        let cap = b.number(e[0].ty(), cap);
        let part = b.binary(ops::arith::DIVF, e[0], cap)?;
        let part = b.unary(ops::math::TANH, part)?;
        b.binary(ops::arith::MULF, part, cap)
    })
}

/// Loops of the scores.
const BATCH: usize = 0;
const QUERY: usize = 2;
const KEY: usize = 3;

/// The scores with the mask; keys that are hidden have the score negative infinity.
fn masked<'c>(b: &mut Builder<'c>, scores: &Operand<'c>, mask: &Mask<'c>) -> Result<Operand<'c>, Failure> {
    if mask.is_none() {
        return Ok(scores.clone());
    }
    let shape = &scores.shape;
    let mut inputs = vec![(b.value(scores)?, identity(4))];
    if let Some(given) = &mask.given {
        inputs.push(b.broadcast_view(given, shape)?);
    }
    let own_place = match &mask.place {
        Place::Given(place) => Some(place),
        _ => None,
    };
    for per_batch in [mask.valid.as_ref(), own_place].into_iter().flatten() {
        let flat = b.reshaped(per_batch, &[per_batch.elements()])?;
        inputs.push((b.value(&flat)?, vec![Expr::Loop(BATCH)]));
    }
    let past = match &mask.place {
        Place::After(past) => Some(b.index(past)?),
        Place::BeforeValid => Some(b.index(&shape[QUERY])?),
        _ => None,
    };
    let out = b.empty(scores.dtype, shape)?;
    let op = Structured { loops: vec![LoopKind::Parallel; 4], inputs, outputs: vec![(out, identity(4))] };
    let value = b.structured(&op, |b, e| {
        let mut rest = e[1..].iter().copied();
        let mut score = e[0];
        let hidden = b.number(score.ty(), f64::NEG_INFINITY);
        if let Some(given) = &mask.given {
            let element = rest.next().expect("invariant: the mask is an operand");
            score = if given.dtype == DataType::Bool {
                b.select(element, score, hidden)?
            } else {
                let added = convert(b, given.dtype, scores.dtype, element)?;
                b.binary(ops::arith::ADDF, score, added)?
            };
        }
        let seen = seen(b, mask, past, rest)?;
        Ok(vec![match seen {
            Some(seen) => b.select(seen, score, hidden)?,
            None => score,
        }])
    })?[0];
    Ok(Operand::value(scores.dtype, shape.clone(), value))
}

/// In the body of the mask: whether the key is one that the query sees, where that depends on their places.
fn seen<'c>(
    b: &mut Builder<'c>,
    mask: &Mask<'c>,
    past: Option<Value<'c>>,
    mut per_batch: impl Iterator<Item = Value<'c>>,
) -> Result<Option<Value<'c>>, Failure> {
    let index = Type::index(b.context());
    let key = b.loop_index(KEY)?;
    let mut tests = vec![];
    let valid = match &mask.valid {
        Some(_) => {
            let count = per_batch.next().expect("invariant: the number of keys is an operand");
            let count = b.op(ops::arith::INDEX_CAST, &[count], index)?;
            tests.push(b.compare(CmpI::Slt, key, count)?);
            Some(count)
        }
        None => None,
    };
    let mut query = b.loop_index(QUERY)?;
    if let (Place::BeforeValid, Some(valid), Some(queries)) = (&mask.place, valid, past) {
        let first = b.binary(ops::arith::SUBI, valid, queries)?;
        query = b.binary(ops::arith::ADDI, query, first)?;
    } else if let Some(past) = past {
        query = b.binary(ops::arith::ADDI, query, past)?;
    } else if let Place::Given(_) = mask.place {
        let place = per_batch.next().expect("invariant: the place is an operand");
        let place = b.op(ops::arith::INDEX_CAST, &[place], index)?;
        query = b.binary(ops::arith::ADDI, query, place)?;
    }
    let right = if mask.causal { Some(0) } else { mask.right };
    if let Some(right) = right {
        let right = b.int(index, right);
        let last = b.binary(ops::arith::ADDI, query, right)?;
        tests.push(b.compare(CmpI::Sle, key, last)?);
    }
    if let Some(left) = mask.left {
        let left = b.int(index, left);
        let first = b.binary(ops::arith::SUBI, query, left)?;
        tests.push(b.compare(CmpI::Sle, first, key)?);
    }
    let mut all: Option<Value> = None;
    for test in tests {
        all = Some(match all {
            Some(all) => b.binary(ops::arith::ANDI, all, test)?,
            None => test,
        });
    }
    Ok(all)
}

/// The softmax of scores; a query that sees no key has the weights 0.
fn weights<'c>(
    b: &mut Builder<'c>,
    scores: &Operand<'c>,
    precision: DataType,
    may_hide_all: bool,
) -> Result<Operand<'c>, Failure> {
    let x = cast_to(b, scores, precision)?;
    if !may_hide_all {
        return softmax_over(b, &x, &[3], false);
    }
    let most = over(b, &x, &[3], Kind::Max)?;
    let most = kept(b, &most, &x, &[3])?;
    let powers = b.elementwise(&[&x, &most], x.dtype, |b, e| {
        let (hidden, zero) = (b.number(e[1].ty(), f64::NEG_INFINITY), b.number(e[1].ty(), 0.0));
        let none = b.compare(CmpF::Oeq, e[1], hidden)?;
        let most = b.select(none, zero, e[1])?;
        let rest = b.binary(ops::arith::SUBF, e[0], most)?;
        b.unary(ops::math::EXP, rest)
    })?;
    let sum = over(b, &powers, &[3], Kind::Sum)?;
    let sum = kept(b, &sum, &x, &[3])?;
    b.elementwise(&[&powers, &sum], x.dtype, |b, e| {
        let zero = b.number(e[1].ty(), 0.0);
        let none = b.compare(CmpF::Oeq, e[1], zero)?;
        let one = b.number(e[1].ty(), 1.0);
        let sum = b.select(none, one, e[1])?;
        b.binary(ops::arith::DIVF, e[0], sum)
    })
}
