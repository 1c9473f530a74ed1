//! The part of the tile that an invocation computes: its rows and columns, and their results.

use super::super::code::Code;
use super::super::evaluate::{Evaluator, Point};
use super::super::model::{Base, Source, TileOp};
use super::plan::Plan;
use monopour_ir::ops;
use monopour_ir::{Diagnostics, Type, Value};

/// A position, clamped, and whether it is in range; `None`: statically.
#[derive(Clone, Copy)]
pub(super) struct Spot<'c> {
    pub(super) at: Value<'c>,
    pub(super) guard: Option<Value<'c>>,
}

/// The position `at` of `extent`, where `width` neighbours begin; `known`: it is in range.
pub(super) fn spot<'c>(code: &mut Code<'c, '_>, at: Value<'c>, extent: Value<'c>, width: i64, known: bool) -> Spot<'c> {
    if known {
        return Spot { at, guard: None };
    }
    let last = code.add_const(extent, -width);
    let guard = code.less(at, extent);
    Spot { at: code.min(at, last), guard: Some(guard) }
}

/// `count` rows from `first` on, `distance` apart; `most` rows of the tile are computed.
pub(super) fn rows<'c>(
    code: &mut Code<'c, '_>,
    plan: &Plan<'c, '_>,
    first: Value<'c>,
    (count, distance): (i64, i64),
    most: i64,
) -> Vec<Spot<'c>> {
    let Some((_, extent)) = plan.form.row else {
        let (zero, one) = (code.c(0), code.c(1));
        return (0..count)
            .map(|r| {
                let at = code.add_const(first, r * distance);
                if most == 1 { Spot { at: zero, guard: None } } else { spot(code, at, one, 1, false) }
            })
            .collect();
    };
    let known = extent.exact().is_some_and(|rows| rows >= most);
    (0..count)
        .map(|r| {
            let at = code.add_const(first, r * distance);
            spot(code, at, extent.value, 1, known)
        })
        .collect()
}

/// The column groups of an invocation, `threads` invocations next to each other.
pub(super) fn columns<'c>(
    code: &mut Code<'c, '_>,
    plan: &Plan<'c, '_>,
    thread: Value<'c>,
    threads: i64,
) -> Vec<Spot<'c>> {
    let lanes = i64::from(plan.lanes.width);
    let groups = plan.column_groups(threads);
    let known = groups * threads * lanes == plan.form.width;
    (0..groups)
        .map(|group| {
            let position = code.add_const(thread, group * threads);
            let at = code.mul_const(position, lanes);
            let extent = code.c(plan.form.width);
            spot(code, at, extent, lanes, known)
        })
        .collect()
}

impl<'c> Plan<'c, '_> {
    /// The initial value of the maximum.
    pub(super) fn least(&self, code: &mut Code<'c, '_>) -> Value<'c> {
        self.form.least.unwrap_or_else(|| float(code, f64::NEG_INFINITY))
    }

    /// The loops of an op at a row, and at values of its last two loops.
    pub(super) fn loops(
        &self,
        code: &mut Code<'c, '_>,
        op: &TileOp<'c>,
        row: Option<Value<'c>>,
        last: [Value<'c>; 2],
    ) -> Vec<Value<'c>> {
        let zero = code.c(0);
        let mut loops = vec![zero; op.sizes.len()];
        if let (Some((position, _)), Some(row)) = (self.form.row, row) {
            loops[position] = row;
        }
        let end = loops.len() - 2;
        loops[end..].copy_from_slice(&last);
        loops
    }

    /// The point of the result of the scores' or the values' product at a row.
    fn point(&self, code: &mut Code<'c, '_>, row: Value<'c>, last: Value<'c>, lanes: u32) -> Point<'c> {
        let zero = code.c(0);
        let mut coordinates = vec![zero; self.form.scores.sizes.len() - 1];
        if let Some((position, _)) = self.form.row {
            coordinates[position] = row;
        }
        *coordinates.last_mut().expect("invariant: there is a loop over keys") = last;
        Point::new(coordinates, lanes)
    }

    /// The scores of neighbouring keys after the pointwise ops.
    pub(super) fn score(
        &self,
        code: &mut Code<'c, '_>,
        evaluator: &Evaluator<'c, '_>,
        (row, key): (Value<'c>, Value<'c>),
        scores: &[Value<'c>],
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let form = &self.form;
        let Some(last) = form.pointwise.last() else { return Ok(scores.to_vec()) };
        let lanes = scores.len() as u32;
        let mut point = self.point(code, row, key, lanes);
        let vector = code.vector_of(scores);
        if let Source::Slice(s) = form.scores.outputs()[0].source {
            point.held.insert(s, vector);
        }
        for op in &form.pointwise {
            evaluator.evaluate(code, op, &mut point)?;
        }
        let Source::Slice(s) = last.outputs()[0].source else { return Ok(scores.to_vec()) };
        Ok((0..lanes).map(|lane| code.extract(point.held[&s], lane)).collect())
    }

    /// Stores the quotients of sums and `total` at a row and column group.
    pub(super) fn finish(
        &self,
        code: &mut Code<'c, '_>,
        evaluator: &Evaluator<'c, '_>,
        (row, column): (&Spot<'c>, &Spot<'c>),
        (sums, total): (Value<'c>, Value<'c>),
    ) -> Result<(), Diagnostics> {
        let form = &self.form;
        let lanes = self.lanes.width;
        let mut args: Vec<Option<Value>> = form.weights.operands.iter().map(|_| None).collect();
        args[form.quotient.power] = Some(sums);
        args[form.quotient.sum] = Some(total);
        let value = evaluator.apply(code, form.weights, args, &[], lanes)?[0];
        let value = code.broadcast(value, lanes);
        let value = self.of_some_keys(code, value);
        let mut point = self.point(code, row.at, column.at, lanes);
        if let Source::Slice(s) = form.values.outputs()[0].source {
            point.held.insert(s, value);
        }
        for op in &form.after {
            evaluator.evaluate(code, op, &mut point)?;
        }
        let writers: Vec<&TileOp> = std::iter::once(form.values).chain(form.after.iter().copied()).collect();
        let guard = code.both(row.guard, column.guard);
        code.guarded(guard, |code| evaluator.store(code, &writers, &point, |base| matches!(base, Base::Argument(_))))
    }

    /// A result, or 0 where there are no keys.
    fn of_some_keys(&self, code: &mut Code<'c, '_>, value: Value<'c>) -> Value<'c> {
        if self.form.count.exact().is_some() {
            return value;
        }
        let none = code.c(0);
        let some = code.less(none, self.form.count.value);
        let zero = float(code, 0.0);
        let zero = code.broadcast(zero, self.lanes.width);
        code.op1(ops::arith::SELECT, &[some, value, zero], value.ty())
    }

    /// The values of a key at a column group; 0 where the key is out of range.
    pub(super) fn value(
        &self,
        code: &mut Code<'c, '_>,
        evaluator: &Evaluator<'c, '_>,
        key: &Spot<'c>,
        column: &Spot<'c>,
    ) -> Result<Value<'c>, Diagnostics> {
        let at = self.loops(code, self.form.values, None, [column.at, key.at]);
        let value = self.form.weighted.load(code, evaluator, &at, self.lanes.width)?;
        let Some(guard) = key.guard else { return Ok(value) };
        let zero = float(code, 0.0);
        let zero = code.broadcast(zero, self.lanes.width);
        Ok(code.op1(ops::arith::SELECT, &[guard, value, zero], value.ty()))
    }
}

/// A constant f32.
pub(super) fn float<'c>(code: &mut Code<'c, '_>, value: f64) -> Value<'c> {
    let ty = Type::f32(code.cx);
    let spec = monopour_ir::OpSpec::new(ops::arith::CONSTANT, code.loc)
        .results(&[ty])
        .attr("value", monopour_ir::Attr::float(ty, value));
    code.create(spec).expect("invariant: a constant fits its type").result(0)
}

/// `a + b * c`, of scalars or vectors.
pub(super) fn multiply_add<'c>(code: &mut Code<'c, '_>, a: Value<'c>, b: Value<'c>, c: Value<'c>) -> Value<'c> {
    let product = code.op1(ops::arith::MULF, &[b, c], a.ty());
    code.op1(ops::arith::ADDF, &[a, product], a.ty())
}
