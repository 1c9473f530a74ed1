//! Attention by one subgroup: all rows in each lane, the lanes along the keys, then along the columns.
//!
//! A lane holds a part of each row of queries, the scores of its keys, and the sums of its columns. The products take queries
//! and powers from the lane that has them, by shuffles.

use super::super::code::Code;
use super::super::evaluate::Evaluator;
use super::plan::Plan;
use super::softmax;
use super::tile::{self, Spot, float, multiply_add, spot};
use monopour_ir::{Diagnostics, Value};

/// An invocation and its parts of the tile.
struct Writer<'c, 'a, 'm> {
    evaluator: &'a Evaluator<'c, 'm>,
    plan: &'a Plan<'c, 'm>,
    lane: Value<'c>,
    lanes: u32,
    rows: Vec<Spot<'c>>,
    columns: Vec<Spot<'c>>,
    /// Per row, its part of each run of as many vectors as there are lanes.
    queries: Vec<Vec<Value<'c>>>,
}

/// The state of each row after some blocks of keys.
struct State<'c> {
    most: Vec<Value<'c>>,
    /// Sums of the powers of the lane's keys.
    totals: Vec<Value<'c>>,
    /// Per row and column group.
    sums: Vec<Value<'c>>,
}

impl<'c> State<'c> {
    fn flat(&self) -> Vec<Value<'c>> {
        [&self.most[..], &self.totals[..], &self.sums[..]].concat()
    }
    fn of(flat: &[Value<'c>], rows: usize) -> Self {
        let (most, rest) = flat.split_at(rows);
        let (totals, sums) = rest.split_at(rows);
        Self { most: most.to_vec(), totals: totals.to_vec(), sums: sums.to_vec() }
    }
}

/// Writes the kernel.
pub(super) fn write<'c>(
    code: &mut Code<'c, '_>,
    evaluator: &Evaluator<'c, '_>,
    plan: &Plan<'c, '_>,
    lane: Value<'c>,
    lanes: u32,
) -> Result<(), Diagnostics> {
    let zero = code.c(0);
    let rows = tile::rows(code, plan, zero, (plan.rows, 1), plan.rows);
    let columns = tile::columns(code, plan, lane, i64::from(lanes));
    let mut writer = Writer { evaluator, plan, lane, lanes, rows, columns, queries: vec![] };
    writer.queries = writer.queries(code)?;
    let start = float(code, 0.0);
    let empty = code.broadcast(start, plan.lanes.width);
    let least = plan.least(code);
    let state = State {
        most: vec![least; writer.rows.len()],
        totals: vec![start; writer.rows.len()],
        sums: vec![empty; writer.rows.len() * writer.columns.len()],
    };
    let (count, step) = (plan.end(code), code.c(plan.block));
    let end = code.for_loop([zero, count, step], &state.flat(), |code, first, carried| {
        let state = State::of(carried, writer.rows.len());
        Ok(writer.block(code, first, &state)?.flat())
    })?;
    writer.finish(code, &State::of(&end, writer.rows.len()))
}

impl<'c> Writer<'c, '_, '_> {
    /// Vectors of a row of queries.
    fn vectors(&self) -> i64 {
        self.plan.form.size / i64::from(self.plan.lanes.size)
    }

    /// Runs of as many vectors as there are lanes, the last one partial.
    fn runs(&self) -> Vec<i64> {
        let (all, lanes) = (self.vectors(), i64::from(self.lanes));
        (0..(all + lanes - 1) / lanes).map(|run| (all - run * lanes).min(lanes)).collect()
    }

    fn queries(&self, code: &mut Code<'c, '_>) -> Result<Vec<Vec<Value<'c>>>, Diagnostics> {
        let (plan, lanes) = (self.plan, i64::from(self.lanes));
        let zero = code.c(0);
        let mut parts = vec![];
        for (run, length) in (0i64..).zip(self.runs()) {
            let vector = code.add_const(self.lane, run * lanes);
            let last = code.c(self.vectors() - 1);
            let vector = if length == lanes { vector } else { code.min(vector, last) };
            parts.push(code.mul_const(vector, i64::from(plan.lanes.size)));
        }
        let mut queries = vec![];
        for row in &self.rows {
            let mut own = vec![];
            for part in &parts {
                let at = plan.loops(code, plan.form.scores, Some(row.at), [zero, *part]);
                own.push(plan.form.queries.load(code, self.evaluator, &at, plan.lanes.size)?);
            }
            queries.push(own);
        }
        Ok(queries)
    }

    /// One block of keys from `first` on.
    fn block(&self, code: &mut Code<'c, '_>, first: Value<'c>, state: &State<'c>) -> Result<State<'c>, Diagnostics> {
        let plan = self.plan;
        let per_lane = plan.block / i64::from(self.lanes);
        let own = code.mul_const(self.lane, per_lane);
        let own = code.add(first, own);
        let keys = self.keys(code, own, per_lane, i64::from(plan.lanes.keys));
        let scores = self.scores(code, &keys)?;
        let mut next = State { most: vec![], totals: vec![], sums: vec![] };
        let mut powers = vec![];
        let groups = self.columns.len();
        for (row, spot) in self.rows.iter().enumerate() {
            let scores = self.pointwise(code, spot, &keys, &scores[row])?;
            let mut most = scores[0];
            for score in &scores[1..] {
                most = softmax::larger(code, most, *score);
            }
            most = self.butterfly(code, most, softmax::larger);
            most = softmax::larger(code, state.most[row], most);
            let reference = softmax::reference(code, most)?;
            let factor = softmax::power(code, state.most[row], reference);
            let mut total = code.op1(monopour_ir::ops::arith::MULF, &[state.totals[row], factor], factor.ty());
            let mut of_row = vec![];
            for score in scores {
                let power = softmax::power(code, score, reference);
                total = code.op1(monopour_ir::ops::arith::ADDF, &[total, power], power.ty());
                of_row.push(power);
            }
            powers.push(of_row);
            next.most.push(most);
            next.totals.push(total);
            let factor = code.broadcast(factor, plan.lanes.width);
            for sum in &state.sums[row * groups..(row + 1) * groups] {
                next.sums.push(code.op1(monopour_ir::ops::arith::MULF, &[*sum, factor], sum.ty()));
            }
        }
        next.sums = self.weighted(code, first, per_lane, &powers, &next.sums)?;
        Ok(next)
    }

    /// `count` keys from `first` on; `lanes` neighbours are in range as a whole or not at all.
    fn keys(&self, code: &mut Code<'c, '_>, first: Value<'c>, count: i64, lanes: i64) -> Vec<Spot<'c>> {
        let plan = self.plan;
        let whole = plan.blocks_are_whole();
        let mut keys = vec![];
        for group in 0..count / lanes {
            let at = code.add_const(first, group * lanes);
            let start = spot(code, at, plan.form.count.value, lanes, whole);
            for lane in 0..lanes {
                keys.push(Spot { at: code.add_const(start.at, lane), guard: start.guard });
            }
        }
        keys
    }

    /// The products of queries and keys, by row and key.
    fn scores(&self, code: &mut Code<'c, '_>, keys: &[Spot<'c>]) -> Result<Vec<Vec<Value<'c>>>, Diagnostics> {
        let (plan, width) = (self.plan, i64::from(self.plan.lanes.size));
        let mut sums = vec![plan.form.zero; self.rows.len() * keys.len()];
        for (run, length) in self.runs().into_iter().enumerate() {
            let bounds = [code.c(0), code.c(length), code.c(1)];
            sums = code.for_loop(bounds, &sums, |code, lane, carried| {
                let part = code.add_const(lane, run as i64 * i64::from(self.lanes));
                let part = code.mul_const(part, width);
                let mut loaded = vec![];
                for key in keys {
                    let at = plan.loops(code, plan.form.scores, None, [key.at, part]);
                    loaded.push(plan.form.keys.load(code, self.evaluator, &at, plan.lanes.size)?);
                }
                let mut out = carried.to_vec();
                for (row, queries) in self.queries.iter().enumerate() {
                    for q in 0..plan.lanes.size {
                        let query = code.extract(queries[run], q);
                        let query = code.shuffle_from(query, lane, self.lanes);
                        for (key, vector) in loaded.iter().enumerate() {
                            let element = code.extract(*vector, q);
                            let sum = &mut out[row * keys.len() + key];
                            *sum = multiply_add(code, *sum, query, element);
                        }
                    }
                }
                Ok(out)
            })?;
        }
        Ok(sums.chunks(keys.len()).map(<[Value]>::to_vec).collect())
    }

    /// The scores of a row after the ops on them; those of keys out of range are negative infinity.
    fn pointwise(
        &self,
        code: &mut Code<'c, '_>,
        row: &Spot<'c>,
        keys: &[Spot<'c>],
        scores: &[Value<'c>],
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let lanes = self.plan.lanes.keys as usize;
        let mut out = vec![];
        for (keys, scores) in keys.chunks(lanes).zip(scores.chunks(lanes)) {
            let scores = self.plan.score(code, self.evaluator, (row.at, keys[0].at), scores)?;
            for (key, score) in keys.iter().zip(scores) {
                out.push(softmax::masked(code, score, key.guard));
            }
        }
        Ok(out)
    }

    fn butterfly(
        &self,
        code: &mut Code<'c, '_>,
        value: Value<'c>,
        combine: fn(&mut Code<'c, '_>, Value<'c>, Value<'c>) -> Value<'c>,
    ) -> Value<'c> {
        let (mut value, mut mask) = (value, 1);
        while mask < self.lanes {
            let other = code.shuffle_xor(value, mask, self.lanes);
            value = combine(code, value, other);
            mask *= 2;
        }
        value
    }

    /// Adds the products of powers and values of a block; lane `j` has the powers of `per_lane` keys.
    fn weighted(
        &self,
        code: &mut Code<'c, '_>,
        first: Value<'c>,
        per_lane: i64,
        powers: &[Vec<Value<'c>>],
        sums: &[Value<'c>],
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let plan = self.plan;
        let bounds = [code.c(0), code.c(i64::from(self.lanes)), code.c(1)];
        code.for_loop(bounds, sums, |code, lane, carried| {
            let own = code.mul_const(lane, per_lane);
            let own = code.add(first, own);
            let keys = self.keys(code, own, per_lane, 1);
            let mut values = vec![];
            for key in &keys {
                for column in &self.columns {
                    values.push(plan.value(code, self.evaluator, key, column)?);
                }
            }
            let groups = self.columns.len();
            let mut out = carried.to_vec();
            for (row, powers) in powers.iter().enumerate() {
                for (key, power) in powers.iter().enumerate() {
                    let power = code.shuffle_from(*power, lane, self.lanes);
                    let power = code.broadcast(power, plan.lanes.width);
                    for group in 0..groups {
                        let sum = &mut out[row * groups + group];
                        *sum = multiply_add(code, *sum, power, values[key * groups + group]);
                    }
                }
            }
            Ok(out)
        })
    }

    fn finish(&self, code: &mut Code<'c, '_>, state: &State<'c>) -> Result<(), Diagnostics> {
        let add = |code: &mut Code<'c, '_>, a: Value<'c>, b: Value<'c>| {
            code.op1(monopour_ir::ops::arith::ADDF, &[a, b], a.ty())
        };
        let groups = self.columns.len();
        for (row, spot) in self.rows.iter().enumerate() {
            let total = self.butterfly(code, state.totals[row], add);
            for (group, column) in self.columns.iter().enumerate() {
                let sums = state.sums[row * groups + group];
                self.plan.finish(code, self.evaluator, (spot, column), (sums, total))?;
            }
        }
        Ok(())
    }
}
