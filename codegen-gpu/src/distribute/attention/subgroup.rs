//! Attention by one subgroup: all rows in each lane, the lanes along the keys, then along the columns.
//!
//! A lane holds a part of each row of queries, the scores of its keys, and the sums of its columns. The products take queries
//! and powers from the lane that has them, by shuffles.

use super::super::code::Code;
use super::super::evaluate::Evaluator;
use super::part::{Part, State, add_products, over_lanes, sum};
use super::plan::Plan;
use super::softmax;
use super::tile::{self, Spot};
use monopour_ir::{Diagnostics, Value};

/// An invocation and its part of the tile.
struct Writer<'c, 'a, 'm> {
    part: Part<'c, 'a, 'm>,
    lane: Value<'c>,
    lanes: u32,
    /// Per row, its part of each run of as many vectors as there are lanes.
    queries: Vec<Vec<Value<'c>>>,
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
    let part = Part { evaluator, plan, rows, columns, whole: plan.blocks_are_whole() };
    let mut writer = Writer { part, lane, lanes, queries: vec![] };
    writer.queries = writer.queries(code)?;
    let state = State::empty(code, &writer.part);
    let bounds = [zero, plan.end(code), code.c(plan.block)];
    let rows = writer.part.rows.len();
    let end = code.for_loop(bounds, &state.flat(), |code, first, carried| {
        Ok(writer.block(code, first, &State::of(carried, rows))?.flat())
    })?;
    let State { totals, sums, .. } = State::of(&end, rows);
    let totals: Vec<Value> = totals.into_iter().map(|total| over_lanes(code, total, (lanes, lanes), sum)).collect();
    writer.part.store(code, &sums, &totals)
}

impl<'c> Writer<'c, '_, '_> {
    /// Vectors of a row of queries.
    fn vectors(&self) -> i64 {
        self.part.plan.form.size / i64::from(self.part.plan.lanes.size)
    }

    /// Runs of as many vectors as there are lanes, the last one partial.
    fn runs(&self) -> Vec<i64> {
        let (all, lanes) = (self.vectors(), i64::from(self.lanes));
        (0..(all + lanes - 1) / lanes).map(|run| (all - run * lanes).min(lanes)).collect()
    }

    fn queries(&self, code: &mut Code<'c, '_>) -> Result<Vec<Vec<Value<'c>>>, Diagnostics> {
        let (plan, lanes) = (self.part.plan, i64::from(self.lanes));
        let zero = code.c(0);
        let mut parts = vec![];
        for (run, length) in (0i64..).zip(self.runs()) {
            let vector = code.add_const(self.lane, run * lanes);
            let last = code.c(self.vectors() - 1);
            let vector = if length == lanes { vector } else { code.min(vector, last) };
            parts.push(code.mul_const(vector, i64::from(plan.lanes.size)));
        }
        let mut queries = vec![];
        for row in &self.part.rows {
            let mut own = vec![];
            for part in &parts {
                let at = plan.loops(code, plan.form.scores, Some(row.at), [zero, *part]);
                own.push(plan.form.queries.load(code, self.part.evaluator, &at, plan.lanes.size)?);
            }
            queries.push(own);
        }
        Ok(queries)
    }

    /// One block of keys from `first` on.
    fn block(&self, code: &mut Code<'c, '_>, first: Value<'c>, state: &State<'c>) -> Result<State<'c>, Diagnostics> {
        let (part, plan) = (&self.part, self.part.plan);
        let per_lane = plan.block / i64::from(self.lanes);
        let own = code.mul_const(self.lane, per_lane);
        let own = code.add(first, own);
        let keys = part.keys(code, own, (per_lane, i64::from(plan.lanes.keys)));
        let products = self.products(code, &keys)?;
        let mut next = State::default();
        let mut powers = vec![];
        for row in 0..part.rows.len() {
            let scores = part.scores(code, row, &keys, &products)?;
            let over =
                |code: &mut Code<'c, '_>, most| over_lanes(code, most, (self.lanes, self.lanes), softmax::larger);
            powers.push(part.step(code, (state, &mut next), &scores, over)?);
        }
        next.sums = self.weighted(code, (first, per_lane), &powers, &next.sums)?;
        Ok(next)
    }

    /// The products of queries and keys, by row and key.
    fn products(&self, code: &mut Code<'c, '_>, keys: &[Spot<'c>]) -> Result<Vec<Value<'c>>, Diagnostics> {
        let (plan, width) = (self.part.plan, i64::from(self.part.plan.lanes.size));
        let mut sums = vec![plan.form.zero; self.part.rows.len() * keys.len()];
        for (run, length) in self.runs().into_iter().enumerate() {
            let bounds = [code.c(0), code.c(length), code.c(1)];
            sums = code.for_loop(bounds, &sums, |code, lane, carried| {
                let at = code.add_const(lane, run as i64 * i64::from(self.lanes));
                let at = code.mul_const(at, width);
                let loaded = self.part.loaded(code, keys, at)?;
                let mut out = carried.to_vec();
                for (queries, sums) in self.queries.iter().zip(out.chunks_mut(keys.len())) {
                    for q in 0..plan.lanes.size {
                        let query = code.extract(queries[run], q);
                        let query = code.shuffle_from(query, lane, self.lanes);
                        add_products(code, sums, query, (&loaded, q));
                    }
                }
                Ok(out)
            })?;
        }
        Ok(sums)
    }

    /// Adds the products of powers and values of a block; lane `j` has the powers of `per_lane` keys.
    fn weighted(
        &self,
        code: &mut Code<'c, '_>,
        (first, per_lane): (Value<'c>, i64),
        powers: &[Vec<Value<'c>>],
        sums: &[Value<'c>],
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let bounds = [code.c(0), code.c(i64::from(self.lanes)), code.c(1)];
        code.for_loop(bounds, sums, |code, lane, carried| {
            let own = code.mul_const(lane, per_lane);
            let own = code.add(first, own);
            let keys = self.part.keys(code, own, (per_lane, 1));
            let power =
                |code: &mut Code<'c, '_>, row: usize, key: usize| code.shuffle_from(powers[row][key], lane, self.lanes);
            self.part.weighted(code, &keys, carried, power)
        })
    }
}
