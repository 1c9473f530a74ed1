//! Emits a planned reduction of columns: partial results, the tree over them, the results.

use super::super::code::Code;
use super::super::combine::Combine;
use super::super::evaluate::{Evaluator, Point};
use super::super::model::{Base, Source, TileOp};
use super::super::strategy::Site;
use super::Plan;
use super::tree::Shared;
use monopour_ir::ops;
use monopour_ir::{Diagnostics, Value};
use std::collections::HashMap;

/// Elements of the reduction that an invocation has in flight.
const UNROLL: i64 = 4;

/// Context of the code.
struct Writer<'c, 'a, 'm> {
    evaluator: &'a Evaluator<'c, 'm>,
    plan: &'a Plan<'c, 'm>,
    /// The first column of the invocation's vector, in range; and its group.
    column: Value<'c>,
    group: Value<'c>,
    /// Elements of the reduction.
    total: Value<'c>,
    /// The coordinates of each held element.
    places: Vec<Vec<i64>>,
}

/// Writes the kernel.
pub(super) fn write<'c>(
    code: &mut Code<'c, '_>,
    site: &Site<'c, '_, '_>,
    evaluator: &Evaluator<'c, '_>,
    plan: &Plan<'c, '_>,
) -> Result<(), Diagnostics> {
    let linear = code.linear_id(site.kernel.workgroup_size);
    let vectors = code.c(plan.vectors);
    let (vector, group) = (code.rem(linear, vectors), code.div(linear, vectors));
    let lanes = i64::from(plan.lanes);
    let first = code.mul_const(vector, lanes);
    let is_exact = plan.columns.exact() == Some(plan.vectors * lanes);
    let last = code.add_const(plan.columns.value, -lanes);
    // Extents are multiples of the lanes: a vector is in range as a whole or not at all.
    let column = if is_exact { first } else { code.min(first, last) };
    let mut total = code.c(1);
    for l in plan.fused.op.inner() {
        total = code.mul(total, plan.fused.op.sizes[l].value);
    }
    let writer = Writer { evaluator, plan, column, group, total, places: places(&plan.held) };
    let partials: Vec<Combine> = writer.places.iter().flat_map(|_| plan.combines.iter().copied()).collect();
    let values = writer.partial_results(code, &partials)?;
    let limit = code.c(plan.vectors);
    let is_first = (plan.groups > 1).then(|| code.less(linear, limit));
    let in_range = (!is_exact).then(|| code.less(first, plan.columns.value));
    let stores = code.both(is_first, in_range);
    if plan.groups == 1 {
        return code.guarded(stores, |code| writer.results(code, 0, &values));
    }
    let shared = Shared::new(code, site.func, &partials, (plan, linear))?;
    let all: Vec<(Combine, Value)> = partials.into_iter().zip(values).collect();
    for (number, batch) in all.chunks(plan.at_once).enumerate() {
        if number > 0 {
            code.barrier()?;
        }
        let totals = shared.reduce(code, plan, batch)?;
        let place = number * plan.at_once / plan.combines.len();
        code.guarded(stores, |code| writer.results(code, place, &totals))?;
    }
    Ok(())
}

/// All combinations of the held coordinates, in row-major order.
fn places(held: &[(usize, i64)]) -> Vec<Vec<i64>> {
    held.iter().fold(vec![vec![]], |all, (_, extent)| {
        let longer = |place: &Vec<i64>| (0..*extent).map(|i| [&place[..], &[i]].concat()).collect::<Vec<_>>();
        all.iter().flat_map(longer).collect()
    })
}

impl<'c> Writer<'c, '_, '_> {
    /// The invocation's partial results: by place, then by result.
    fn partial_results(
        &self,
        code: &mut Code<'c, '_>,
        partials: &[Combine<'c>],
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let mut values = vec![];
        for combine in partials {
            let identity = combine.identity(code);
            values.push(code.broadcast(identity, self.plan.lanes));
        }
        let groups = self.plan.groups;
        let step = code.c(groups * UNROLL);
        let full = code.div(self.total, step);
        if full.constant_int() != Some(0) {
            let (zero, one) = (code.c(0), code.c(1));
            values = code.for_loop([zero, full, one], &values, |code, pass, carried| {
                let start = code.mul(pass, step);
                let mut next = carried.to_vec();
                for u in 0..UNROLL {
                    let position = code.add_const(start, u * groups);
                    let position = code.add(position, self.group);
                    self.add(code, position, None, &mut next)?;
                }
                Ok(next)
            })?;
        }
        let start = code.mul(full, step);
        let left = self.total.constant_int().map_or(groups * UNROLL, |total| total % (groups * UNROLL));
        for u in 0..(left + groups - 1) / groups {
            let position = code.add_const(start, u * groups);
            let position = code.add(position, self.group);
            let is_whole = self.total.constant_int().is_some() && (u + 1) * groups <= left;
            let guard = (!is_whole).then(|| code.less(position, self.total));
            let last = code.add_const(self.total, -1);
            let position = if is_whole { position } else { code.min(position, last) };
            self.add(code, position, guard, &mut values)?;
        }
        Ok(values)
    }

    /// Adds an element of the reduction to all partial results; one that is out of range contributes nothing.
    fn add(
        &self,
        code: &mut Code<'c, '_>,
        position: Value<'c>,
        guard: Option<Value<'c>>,
        values: &mut [Value<'c>],
    ) -> Result<(), Diagnostics> {
        let op = self.plan.fused.op;
        let mut loops = vec![code.c(0); op.sizes.len()];
        let mut rest = position;
        for (i, l) in op.inner().into_iter().enumerate().rev() {
            loops[l] = rest;
            if i > 0 {
                loops[l] = code.rem(rest, op.sizes[l].value);
                rest = code.div(rest, op.sizes[l].value);
            }
        }
        let count = self.plan.combines.len();
        let mut loaded: HashMap<(usize, Vec<i64>), Value> = HashMap::new();
        for (place, partials) in self.places.iter().zip(values.chunks_mut(count)) {
            self.set_outer(code, op, place, &mut loops);
            let mut args = vec![];
            for i in 0..op.num_inputs {
                args.push(if op.reads(i) { Some(self.input(code, i, (place, &loops), &mut loaded)?) } else { None });
            }
            args.extend(partials.iter().copied().map(Some));
            let results = self.evaluator.apply(code, op, args, &loops, self.plan.lanes)?;
            for (partial, result) in partials.iter_mut().zip(results) {
                let result = code.broadcast(result, self.plan.lanes);
                *partial = match guard {
                    Some(guard) => code.op1(ops::arith::SELECT, &[guard, result, *partial], result.ty()),
                    None => result,
                };
            }
        }
        Ok(())
    }

    /// An input at these loops; loaded once for all places that it does not depend on.
    fn input(
        &self,
        code: &mut Code<'c, '_>,
        input: usize,
        (place, loops): (&[i64], &[Value<'c>]),
        loaded: &mut HashMap<(usize, Vec<i64>), Value<'c>>,
    ) -> Result<Value<'c>, Diagnostics> {
        let op = self.plan.fused.op;
        let outer = op.outer.as_deref().unwrap_or_default();
        let operand = &op.operands[input];
        let depends = |coordinate: usize| operand.linear.as_ref().is_none_or(|l| !l.factors[outer[coordinate]].is(0));
        let held = self.plan.held.iter().zip(place);
        let own = held.map(|((coordinate, _), at)| if depends(*coordinate) { *at } else { 0 }).collect();
        let key = (input, own);
        if let Some(value) = loaded.get(&key) {
            return Ok(*value);
        }
        let point = Point::new(vec![], self.plan.lanes);
        let value = self.evaluator.operand(code, op, operand, loops, &point)?;
        loaded.insert(key, value);
        Ok(value)
    }

    /// Sets the loops of an op's results.
    fn set_outer(&self, code: &mut Code<'c, '_>, op: &TileOp<'c>, place: &[i64], loops: &mut [Value<'c>]) {
        let coordinates = self.coordinates(code, place);
        for (coordinate, l) in coordinates.into_iter().zip(op.outer.iter().flatten()) {
            loops[*l] = coordinate;
        }
    }

    fn coordinates(&self, code: &mut Code<'c, '_>, place: &[i64]) -> Vec<Value<'c>> {
        let rank = self.plan.fused.op.outer.as_ref().map_or(0, Vec::len);
        let mut coordinates = vec![code.c(0); rank];
        coordinates[self.plan.column] = self.column;
        for ((coordinate, _), at) in self.plan.held.iter().zip(place) {
            coordinates[*coordinate] = code.c(*at);
        }
        coordinates
    }

    /// Combines totals with the initial results, computes the ops behind, and stores; `first` is the place of the first.
    fn results(&self, code: &mut Code<'c, '_>, first: usize, totals: &[Value<'c>]) -> Result<(), Diagnostics> {
        let op = self.plan.fused.op;
        let all = self.plan.fused.ops();
        for (place, totals) in self.places[first..].iter().zip(totals.chunks(self.plan.combines.len())) {
            let coordinates = self.coordinates(code, place);
            let mut point = Point::new(coordinates, self.plan.lanes);
            for before in &self.plan.fused.before {
                self.evaluator.evaluate(code, before, &mut point)?;
            }
            let mut loops = vec![code.c(0); op.sizes.len()];
            self.set_outer(code, op, place, &mut loops);
            let mut results = vec![];
            for ((output, combine), total) in op.outputs().iter().zip(&self.plan.combines).zip(totals) {
                let initial = self.evaluator.operand(code, op, output, &loops, &point)?;
                let initial = code.broadcast(initial, self.plan.lanes);
                results.push(combine.apply(code, initial, *total)?);
            }
            for (output, result) in op.outputs().iter().zip(results) {
                if let Source::Slice(slice) = output.source {
                    point.held.insert(slice, result);
                }
            }
            for after in &self.plan.fused.after {
                self.evaluator.evaluate(code, after, &mut point)?;
            }
            let keep = |base: Base| self.evaluator.buffers.contains_key(&base);
            self.evaluator.store(code, &all, &point, keep)?;
        }
        Ok(())
    }
}
