//! Attention by a workgroup: scores and powers of a block of keys in its memory.
//!
//! The invocations form a grid over the rows and the keys of a block, then over the rows and the columns; between them each
//! row's softmax is a step of one invocation. Barriers separate the three.

use super::super::code::Code;
use super::super::evaluate::Evaluator;
use super::super::locals;
use super::part::Part;
use super::plan::Plan;
use super::softmax;
use super::tile::{self, float};
use monopour_ir::{Diagnostics, Type, Value, ops};

/// Invocations along the keys and along the columns.
pub(super) const COLUMNS: i64 = 8;

/// Groups of invocations along the rows. The rows of a group are as far apart, so that those of neighbouring groups lie
/// side by side, in other banks.
fn row_groups(plan: &Plan<'_, '_>) -> i64 {
    plan.invocations / COLUMNS
}

/// Rows of an invocation.
fn rows_each(plan: &Plan<'_, '_>) -> i64 {
    (plan.rows + row_groups(plan) - 1) / row_groups(plan)
}

/// Rows of the workgroup, the last ones out of range.
fn all_rows(plan: &Plan<'_, '_>) -> i64 {
    rows_each(plan) * row_groups(plan)
}

/// Distance of the rows in the memory of the scores: neighbours begin in other banks.
fn stride(plan: &Plan<'_, '_>) -> i64 {
    plan.block + 1
}

/// Bytes of workgroup memory.
pub(super) fn bytes(plan: &Plan<'_, '_>) -> u64 {
    let (all, most) = (all_rows(plan), u64::MAX >> 8);
    let of = |elements: i64| u64::try_from(elements * 4).ok().and_then(locals::rounded).unwrap_or(most);
    of(all * stride(plan)) + 3 * of(all)
}

/// The workgroup's memory: one value per row, and the scores of a block.
struct Shared<'c> {
    scores: Value<'c>,
    most: Value<'c>,
    totals: Value<'c>,
    /// The factors of what was summed before the block.
    factors: Value<'c>,
}

/// An invocation and its part of the tile.
struct Writer<'c, 'a, 'm> {
    part: Part<'c, 'a, 'm>,
    shared: Shared<'c>,
    linear: Value<'c>,
    thread: Value<'c>,
    first_row: Value<'c>,
}

/// Writes the kernel.
pub(super) fn write<'c>(
    code: &mut Code<'c, '_>,
    evaluator: &Evaluator<'c, '_>,
    plan: &Plan<'c, '_>,
    linear: Value<'c>,
) -> Result<(), Diagnostics> {
    let by = code.c(COLUMNS);
    let (thread, first_row) = (code.rem(linear, by), code.div(linear, by));
    let rows = tile::rows(code, plan, first_row, (rows_each(plan), row_groups(plan)), all_rows(plan));
    let columns = tile::columns(code, plan, thread, COLUMNS);
    let (all, single) = (all_rows(plan), Type::f32(code.cx));
    let shared = Shared {
        scores: code.workgroup_buffer(code.loc, single, all * stride(plan))?,
        most: code.workgroup_buffer(code.loc, single, all)?,
        totals: code.workgroup_buffer(code.loc, single, all)?,
        factors: code.workgroup_buffer(code.loc, single, all)?,
    };
    let part = Part { evaluator, plan, rows, columns, whole: plan.blocks_are_whole() };
    let writer = Writer { part, shared, linear, thread, first_row };
    writer.each_row(code, |writer, code| {
        let (zero, least) = (float(code, 0.0), plan.least(code));
        code.store(least, writer.shared.most, linear)?;
        code.store(zero, writer.shared.totals, linear)
    })?;
    // Without keys no block has a barrier.
    code.barrier()?;
    let start = float(code, 0.0);
    let start = code.broadcast(start, plan.lanes.width);
    let sums = vec![start; writer.part.rows.len() * writer.part.columns.len()];
    let bounds = [code.c(0), plan.end(code), code.c(plan.block)];
    let sums = code.for_loop(bounds, &sums, |code, first, sums| writer.block(code, first, sums))?;
    let totals = writer.of_rows(code, writer.shared.totals);
    writer.part.store(code, &sums, &totals)
}

impl<'c> Writer<'c, '_, '_> {
    /// Runs `body` in the invocations that have a row.
    fn each_row(
        &self,
        code: &mut Code<'c, '_>,
        body: impl FnOnce(&Self, &mut Code<'c, '_>) -> Result<(), Diagnostics>,
    ) -> Result<(), Diagnostics> {
        let all = all_rows(self.part.plan);
        let end = code.c(all);
        let guard = (all < self.part.plan.invocations).then(|| code.less(self.linear, end));
        code.guarded(guard, |code| body(self, code))
    }

    /// One block of keys from `first` on.
    fn block(
        &self,
        code: &mut Code<'c, '_>,
        first: Value<'c>,
        sums: &[Value<'c>],
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        self.scores(code, first)?;
        code.barrier()?;
        self.each_row(code, |writer, code| writer.softmax(code))?;
        code.barrier()?;
        let sums = self.weighted(code, first, sums)?;
        // The next block overwrites the powers.
        code.barrier()?;
        Ok(sums)
    }

    /// Writes the scores of the invocation's rows and keys.
    fn scores(&self, code: &mut Code<'c, '_>, first: Value<'c>) -> Result<(), Diagnostics> {
        let (part, plan) = (&self.part, self.part.plan);
        let each = plan.block / COLUMNS;
        let own = code.mul_const(self.thread, each);
        let from = code.add(first, own);
        let keys = part.keys(code, from, (each, i64::from(plan.lanes.keys)));
        let products = part.products(code, &keys)?;
        for row in 0..part.rows.len() {
            let scores = part.scores(code, row, &keys, &products)?;
            let line = self.line(code, row);
            let line = code.add(line, own);
            for (key, score) in (0i64..).zip(scores) {
                let at = code.add_const(line, key);
                code.store(score, self.shared.scores, at)?;
            }
        }
        Ok(())
    }

    /// Where the scores of a row of the invocation begin.
    fn line(&self, code: &mut Code<'c, '_>, row: usize) -> Value<'c> {
        let number = code.add_const(self.first_row, row as i64 * row_groups(self.part.plan));
        code.mul_const(number, stride(self.part.plan))
    }

    /// The step of the softmax of row `linear`: powers in place of scores.
    fn softmax(&self, code: &mut Code<'c, '_>) -> Result<(), Diagnostics> {
        let (plan, shared) = (self.part.plan, &self.shared);
        let line = code.mul_const(self.linear, stride(plan));
        let bounds = [code.c(0), code.c(plan.block), code.c(1)];
        let before = code.load(shared.most, self.linear, 1);
        let most = code.for_loop(bounds, &[before], |code, key, carried| {
            let at = code.add(line, key);
            let score = code.load(shared.scores, at, 1);
            Ok(vec![softmax::larger(code, carried[0], score)])
        })?[0];
        let reference = softmax::reference(code, most)?;
        let factor = softmax::power(code, before, reference);
        let total = code.load(shared.totals, self.linear, 1);
        let total = code.op1(ops::arith::MULF, &[total, factor], total.ty());
        let total = code.for_loop(bounds, &[total], |code, key, carried| {
            let at = code.add(line, key);
            let score = code.load(shared.scores, at, 1);
            let power = softmax::power(code, score, reference);
            code.store(power, shared.scores, at)?;
            Ok(vec![code.op1(ops::arith::ADDF, &[carried[0], power], power.ty())])
        })?[0];
        code.store(most, shared.most, self.linear)?;
        code.store(total, shared.totals, self.linear)?;
        code.store(factor, shared.factors, self.linear)
    }

    /// A value per row of the invocation.
    fn of_rows(&self, code: &mut Code<'c, '_>, buffer: Value<'c>) -> Vec<Value<'c>> {
        let each = |(row, _)| {
            let at = code.add_const(self.first_row, row * row_groups(self.part.plan));
            code.load(buffer, at, 1)
        };
        (0i64..).zip(&self.part.rows).map(each).collect()
    }

    /// The sums with the products of powers and values of a block.
    fn weighted(
        &self,
        code: &mut Code<'c, '_>,
        first: Value<'c>,
        sums: &[Value<'c>],
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let (plan, groups) = (self.part.plan, self.part.columns.len());
        let factors = self.of_rows(code, self.shared.factors);
        let mut scaled = vec![];
        for (i, sum) in sums.iter().enumerate() {
            let factor = code.broadcast(factors[i / groups], plan.lanes.width);
            scaled.push(code.op1(ops::arith::MULF, &[*sum, factor], sum.ty()));
        }
        let bounds = [code.c(0), code.c(plan.block), code.c(1)];
        code.for_loop(bounds, &scaled, |code, key, carried| {
            let at = code.add(first, key);
            let keys = self.part.keys(code, at, (1, 1));
            let power = |code: &mut Code<'c, '_>, row: usize, _| {
                let line = self.line(code, row);
                let at = code.add(line, key);
                code.load(self.shared.scores, at, 1)
            };
            self.part.weighted(code, &keys, carried, power)
        })
    }
}
