//! What an invocation computes of a tile: products of its rows and keys, sums of its rows and columns.

use super::super::code::Code;
use super::super::evaluate::Evaluator;
use super::plan::Plan;
use super::softmax;
use super::tile::{Spot, float, multiply_add, spot};
use monopour_ir::{Diagnostics, Value, ops};

/// An invocation's part of the tile.
pub(super) struct Part<'c, 'a, 'm> {
    pub(super) evaluator: &'a Evaluator<'c, 'm>,
    pub(super) plan: &'a Plan<'c, 'm>,
    pub(super) rows: Vec<Spot<'c>>,
    pub(super) columns: Vec<Spot<'c>>,
    /// Whether no key of a block lies behind the end.
    pub(super) whole: bool,
}

impl<'c> Part<'c, '_, '_> {
    /// `count` keys from `first` on; `lanes` neighbours are in range as a whole or not at all.
    pub(super) fn keys(&self, code: &mut Code<'c, '_>, first: Value<'c>, (count, lanes): (i64, i64)) -> Vec<Spot<'c>> {
        let mut keys = vec![];
        for group in 0..count / lanes {
            let at = code.add_const(first, group * lanes);
            let start = spot(code, at, self.plan.form.count.value, lanes, self.whole);
            for lane in 0..lanes {
                keys.push(Spot { at: code.add_const(start.at, lane), guard: start.guard });
            }
        }
        keys
    }

    /// The products of queries and keys, by row and key.
    pub(super) fn products(&self, code: &mut Code<'c, '_>, keys: &[Spot<'c>]) -> Result<Vec<Value<'c>>, Diagnostics> {
        let (plan, form) = (self.plan, &self.plan.form);
        let bounds = [code.c(0), code.c(form.size), code.c(i64::from(plan.lanes.size))];
        let start = vec![form.zero; self.rows.len() * keys.len()];
        let zero = code.c(0);
        code.for_loop(bounds, &start, |code, part, carried| {
            let mut queries = vec![];
            for row in &self.rows {
                let at = plan.loops(code, form.scores, Some(row.at), [zero, part]);
                queries.push(form.queries.load(code, self.evaluator, &at, plan.lanes.size)?);
            }
            let loaded = self.loaded(code, keys, part)?;
            let mut out = carried.to_vec();
            for q in 0..plan.lanes.size {
                for (row, query) in queries.iter().enumerate() {
                    let query = code.extract(*query, q);
                    add_products(code, &mut out[row * keys.len()..], query, (&loaded, q));
                }
            }
            Ok(out)
        })
    }

    /// A vector of each key, from `part` on.
    pub(super) fn loaded(
        &self,
        code: &mut Code<'c, '_>,
        keys: &[Spot<'c>],
        part: Value<'c>,
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let (plan, form) = (self.plan, &self.plan.form);
        let mut loaded = vec![];
        for key in keys {
            let at = plan.loops(code, form.scores, None, [key.at, part]);
            loaded.push(form.keys.load(code, self.evaluator, &at, plan.lanes.size)?);
        }
        Ok(loaded)
    }

    /// The scores of a row after the ops on them; those of keys out of range are negative infinity.
    pub(super) fn scores(
        &self,
        code: &mut Code<'c, '_>,
        row: usize,
        keys: &[Spot<'c>],
        products: &[Value<'c>],
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let lanes = self.plan.lanes.keys as usize;
        let products = &products[row * keys.len()..(row + 1) * keys.len()];
        let mut out = vec![];
        for (keys, products) in keys.chunks(lanes).zip(products.chunks(lanes)) {
            let scores = self.plan.score(code, self.evaluator, (self.rows[row].at, keys[0].at), products)?;
            for (key, score) in keys.iter().zip(scores) {
                out.push(softmax::masked(code, score, key.guard));
            }
        }
        Ok(out)
    }

    /// The powers of a row's scores, where `over` combines the maxima of those who share the row; `next` gets the row as it is
    /// before their values are added.
    pub(super) fn step(
        &self,
        code: &mut Code<'c, '_>,
        (state, next): (&State<'c>, &mut State<'c>),
        scores: &[Value<'c>],
        over: impl FnOnce(&mut Code<'c, '_>, Value<'c>) -> Value<'c>,
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let (row, groups) = (next.most.len(), self.columns.len());
        let most = scores[1..].iter().fold(scores[0], |most, score| softmax::larger(code, most, *score));
        let most = over(code, most);
        let most = softmax::larger(code, state.most[row], most);
        let reference = softmax::reference(code, most)?;
        let factor = softmax::power(code, state.most[row], reference);
        let mut total = code.op1(ops::arith::MULF, &[state.totals[row], factor], factor.ty());
        let mut powers = vec![];
        for score in scores {
            let power = softmax::power(code, *score, reference);
            total = sum(code, total, power);
            powers.push(power);
        }
        next.most.push(most);
        next.totals.push(total);
        let factor = code.broadcast(factor, self.plan.lanes.width);
        for sum in &state.sums[row * groups..(row + 1) * groups] {
            next.sums.push(code.op1(ops::arith::MULF, &[*sum, factor], sum.ty()));
        }
        Ok(powers)
    }

    /// Adds the products of powers and values of some keys to the sums; `power` gives that of a row and key.
    pub(super) fn weighted(
        &self,
        code: &mut Code<'c, '_>,
        keys: &[Spot<'c>],
        sums: &[Value<'c>],
        mut power: impl FnMut(&mut Code<'c, '_>, usize, usize) -> Value<'c>,
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let (plan, groups) = (self.plan, self.columns.len());
        let mut values = vec![];
        for key in keys {
            for column in &self.columns {
                values.push(plan.value(code, self.evaluator, key, column)?);
            }
        }
        let mut out = sums.to_vec();
        for (row, sums) in out.chunks_mut(groups).enumerate() {
            for (key, values) in values.chunks(groups).enumerate() {
                let power = power(code, row, key);
                let power = code.broadcast(power, plan.lanes.width);
                for (sum, value) in sums.iter_mut().zip(values) {
                    *sum = multiply_add(code, *sum, power, *value);
                }
            }
        }
        Ok(out)
    }

    /// Stores the results of all rows.
    pub(super) fn store(
        &self,
        code: &mut Code<'c, '_>,
        sums: &[Value<'c>],
        totals: &[Value<'c>],
    ) -> Result<(), Diagnostics> {
        for ((row, total), sums) in self.rows.iter().zip(totals).zip(sums.chunks(self.columns.len())) {
            for (column, sums) in self.columns.iter().zip(sums) {
                self.plan.finish(code, self.evaluator, (row, column), (*sums, *total))?;
            }
        }
        Ok(())
    }
}

/// Adds the products of a query's element and element `q` of each key to the sums of a row.
pub(super) fn add_products<'c>(
    code: &mut Code<'c, '_>,
    sums: &mut [Value<'c>],
    query: Value<'c>,
    (keys, q): (&[Value<'c>], u32),
) {
    for (sum, vector) in sums.iter_mut().zip(keys) {
        let element = code.extract(*vector, q);
        *sum = multiply_add(code, *sum, query, element);
    }
}

/// What was found in some blocks of keys, for each row of an invocation.
#[derive(Default)]
pub(super) struct State<'c> {
    pub(super) most: Vec<Value<'c>>,
    /// Sums of the powers of the invocation's keys.
    pub(super) totals: Vec<Value<'c>>,
    /// Per row and column group.
    pub(super) sums: Vec<Value<'c>>,
}

impl<'c> State<'c> {
    /// That of no keys.
    pub(super) fn empty(code: &mut Code<'c, '_>, part: &Part<'c, '_, '_>) -> Self {
        let (rows, zero) = (part.rows.len(), float(code, 0.0));
        let empty = code.broadcast(zero, part.plan.lanes.width);
        let least = part.plan.least(code);
        Self { most: vec![least; rows], totals: vec![zero; rows], sums: vec![empty; rows * part.columns.len()] }
    }

    pub(super) fn flat(&self) -> Vec<Value<'c>> {
        [&self.most[..], &self.totals[..], &self.sums[..]].concat()
    }

    pub(super) fn of(flat: &[Value<'c>], rows: usize) -> Self {
        let (most, rest) = flat.split_at(rows);
        let (totals, sums) = rest.split_at(rows);
        Self { most: most.to_vec(), totals: totals.to_vec(), sums: sums.to_vec() }
    }
}

/// What `count` neighbouring lanes of a subgroup of `lanes` have, combined.
pub(super) fn over_lanes<'c>(
    code: &mut Code<'c, '_>,
    mut value: Value<'c>,
    (count, lanes): (u32, u32),
    combine: fn(&mut Code<'c, '_>, Value<'c>, Value<'c>) -> Value<'c>,
) -> Value<'c> {
    let mut mask = 1;
    while mask < count {
        let other = code.shuffle_xor(value, mask, lanes);
        value = combine(code, value, other);
        mask *= 2;
    }
    value
}

/// `a + b`.
pub(super) fn sum<'c>(code: &mut Code<'c, '_>, a: Value<'c>, b: Value<'c>) -> Value<'c> {
    code.op1(ops::arith::ADDF, &[a, b], a.ty())
}
