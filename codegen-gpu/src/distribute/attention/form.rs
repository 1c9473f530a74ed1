//! Reads the ops of an attention in a body.

use super::super::model::{Base, Model, Size, Source, TileOp};
use super::factor::Factor;
use super::mask::Mask;
use monopour_ir::bodies::{self, MultiplyAdd, Power, Quotient};
use monopour_ir::{Value, ops};

/// The ops of an attention by their roles.
pub(super) struct Form<'c, 'm> {
    /// The product of queries and keys: loops `[rows.., keys, size]`.
    pub(super) scores: &'m TileOp<'c>,
    /// Ops on the scores.
    pub(super) pointwise: Vec<&'m TileOp<'c>>,
    /// The quotient of powers and their sum.
    pub(super) weights: &'m TileOp<'c>,
    pub(super) quotient: Quotient,
    /// The product of weights and values: loops `[rows.., width, keys]`.
    pub(super) values: &'m TileOp<'c>,
    /// Ops on the result.
    pub(super) after: Vec<&'m TileOp<'c>>,
    /// The factors of the products; that of the weights is known.
    pub(super) queries: Factor<'c, 'm>,
    pub(super) keys: Factor<'c, 'm>,
    pub(super) weighted: Factor<'c, 'm>,
    /// Whether the weights are rounded to 16 bits before the product.
    pub(super) is_rounded: bool,
    /// The initial value of scores.
    pub(super) zero: Value<'c>,
    /// That of the maximum; `None`: negative infinity, for a NaN that the maximum drops.
    pub(super) least: Option<Value<'c>>,
    /// Position and extent of the row loop with several rows.
    pub(super) row: Option<(usize, Size<'c>)>,
    /// A causal mask of the scores.
    pub(super) mask: Option<Mask<'c>>,
    /// Number of keys.
    pub(super) count: Size<'c>,
    /// Elements of a key, and of a value.
    pub(super) size: i64,
    pub(super) width: i64,
}

/// The attention that a body is; `None` for another body.
pub(super) fn read<'c, 'm>(model: &'m Model<'c>) -> Option<Form<'c, 'm>> {
    let ops: Vec<&TileOp> = model.ops.iter().filter(|op| fill(op).is_none()).collect();
    let first = |from: usize| (from..ops.len()).find(|i| !ops[*i].inner().is_empty());
    let most = first(1)?;
    let (scores, pointwise) = (*ops.first()?, ops[1..most].to_vec());
    let [highest, powers, sum, weights, values] = *ops.get(most..most + 5)? else { return None };
    let after = ops[most + 5..].to_vec();
    let plain = [scores, highest, powers, sum, weights, values]
        .iter()
        .chain(&pointwise)
        .chain(&after)
        .all(|op| op.outputs().len() == 1 && op.gathered.is_empty() && in_order(op));
    let reductions = [scores, highest, sum, values].iter().all(|op| op.inner().len() == 1);
    let elementwise = pointwise.iter().chain([&powers, &weights]).chain(&after).all(|op| op.inner().is_empty());
    if !(plain && reductions && elementwise) {
        return None;
    }
    let (power, quotient) = (Power::of(powers.body?)?, Quotient::of(weights.body?)?);
    let last = pointwise.last().copied().unwrap_or(scores);
    let rows = scores.sizes.len().checked_sub(2)?;
    let found = Links { model };
    let read =
        values.operands[..values.num_inputs].iter().position(|o| found.base(o.source) == found.written(weights))?;
    let linked = combines(highest, &[ops::arith::MAXIMUMF, ops::arith::MAXNUMF])
        && combines(sum, &[ops::arith::ADDF])
        && found.reads(highest, 0, last)
        && found.reads(powers, power.score, last)
        && found.reads(powers, power.most, highest)
        && found.reads(sum, 0, powers)
        && found.reads(weights, quotient.power, powers)
        && found.reads(weights, quotient.sum, sum);
    let row = row(scores, rows)?;
    let (queries, keys) = sides(scores, rows, row)?;
    let (weighted, is_rounded) = weighted(values, read, row)?;
    let start = |op| found.start(op);
    let zero_sums = [scores, sum, values].iter().all(|op| start(op).and_then(bodies::constant) == Some(0.0));
    let whole = values.sizes.len() == rows + 2;
    (linked && zero_sums && whole).then_some(Form {
        scores,
        weights,
        quotient,
        values,
        after,
        queries,
        keys,
        weighted,
        is_rounded,
        zero: start(scores)?,
        least: Some(start(highest)?).filter(|least| !bodies::constant(*least).is_some_and(f64::is_nan)),
        row: row.map(|row| (row, scores.sizes[row])),
        mask: row.and_then(|row| Mask::of(pointwise.last()?, rows, row)),
        count: scores.sizes[rows],
        size: scores.sizes[rows + 1].exact()?,
        width: values.sizes[rows].exact()?,
        pointwise,
    })
}

/// The scalar that an op fills its result with.
fn fill<'c>(op: &TileOp<'c>) -> Option<Value<'c>> {
    let Source::Scalar(value) = op.operands[0].source else { return None };
    let yields = op.body.and_then(|b| Some((b, b.terminator()?))).is_some_and(|(b, end)| end.operand(0) == b.arg(0));
    (op.num_inputs == 1 && yields).then_some(value)
}

/// Whether the result's indices are the first loops in order.
fn in_order(op: &TileOp) -> bool {
    op.outer.as_ref().is_some_and(|outer| outer.iter().copied().eq(0..outer.len()))
}

/// The row loop with several rows: `Some(None)` where all have one, `None` where several have more.
#[allow(clippy::option_option, reason = "the outer one is a refusal")]
fn row(scores: &TileOp, rows: usize) -> Option<Option<usize>> {
    let several: Vec<usize> = (0..rows).filter(|l| scores.sizes[*l].exact() != Some(1)).collect();
    (several.len() < 2).then(|| several.first().copied())
}

/// The factors of queries and keys.
fn sides<'c, 'm>(op: &'m TileOp<'c>, key: usize, row: Option<usize>) -> Option<(Factor<'c, 'm>, Factor<'c, 'm>)> {
    let [a, b] = MultiplyAdd::of(op.body?)?.factors.map(|value| Factor::new(op, value, key + 1));
    let (a, b) = (a?, b?);
    let (queries, keys) = if a.depends_on(key) { (b, a) } else { (a, b) };
    let apart = !queries.depends_on(key) && !row.is_some_and(|row| keys.depends_on(row));
    apart.then_some((queries, keys))
}

/// The factor of the values; the other one is the weights, operand `read`, which may be rounded to 16 bits.
fn weighted<'c, 'm>(op: &'m TileOp<'c>, read: usize, row: Option<usize>) -> Option<(Factor<'c, 'm>, bool)> {
    let [a, b] = MultiplyAdd::of(op.body?)?.factors;
    let weights = op.body?.arg(read);
    let exact = |value: Value<'c>| {
        let round = value.defining_op().filter(|op| op.is(ops::arith::EXTF))?.operand(0).defining_op()?;
        round.is(ops::arith::TRUNCF).then(|| round.operand(0))
    };
    let is_weights = |value: Value<'c>| value == weights || exact(value) == Some(weights);
    let (own, value) = if is_weights(a) { (a, b) } else { (b, a) };
    let factor = Factor::new(op, value, op.sizes.len() - 2)?;
    let apart = !factor.inputs.contains(&read) && !row.is_some_and(|row| factor.depends_on(row));
    (is_weights(own) && apart).then_some((factor, own != weights))
}

/// The local buffers between the ops.
struct Links<'c, 'm> {
    model: &'m Model<'c>,
}

impl<'c> Links<'c, '_> {
    fn base(&self, source: Source<'c>) -> Option<Base> {
        self.model.base(source).filter(|base| matches!(base, Base::Local(_)))
    }
    fn written(&self, op: &TileOp<'c>) -> Option<Base> {
        self.base(op.outputs()[0].source)
    }
    fn reads(&self, op: &TileOp<'c>, operand: usize, from: &TileOp<'c>) -> bool {
        let read = op.operands.get(operand).and_then(|o| self.base(o.source));
        read.is_some() && read == self.written(from)
    }
    /// The scalar with which the result of a reduction was filled.
    fn start(&self, op: &TileOp<'c>) -> Option<Value<'c>> {
        let Source::Slice(result) = op.outputs()[0].source else { return None };
        let same =
            |s: usize| s == result || (self.written(op).is_some() && self.base(Source::Slice(s)) == self.written(op));
        let filled = |other: &&TileOp<'c>| matches!(other.outputs()[0].source, Source::Slice(s) if same(s));
        // A buffer may hold several results in turn.
        let before = self.model.ops.iter().take_while(|other| !std::ptr::eq(*other, op));
        before.filter(filled).filter_map(fill).last()
    }
}

/// Whether a reduction combines its one input with the result by an op of one of these names.
fn combines(op: &TileOp, names: &[&str]) -> bool {
    let combined = op.body.and_then(|body| Some((body, body.terminator()?.operand(0).defining_op()?)));
    combined.is_some_and(|(body, op)| {
        let mut read = op.operands();
        read.sort_by_key(|value| value.as_block_arg().map(|(_, position)| position));
        names.contains(&op.name()) && read == body.args()
    })
}
