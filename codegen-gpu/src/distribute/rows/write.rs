//! Emits a planned row kernel: rows over the teams, sweeps over a row, stores.

use super::super::code::Code;
use super::super::evaluate::Evaluator;
use super::super::fitted::FittedChoice;
use super::super::model::Base;
use super::super::stride::Stride;
use super::exchange::{Exchange, Member};
use super::{Kind, Plan, Sweep, forms};
use monopour_ir::ops;
use monopour_ir::{Diagnostics, Op, Value};
use std::collections::HashMap;

/// Context of a row kernel's code.
struct Writer<'c, 'a, 'm> {
    evaluator: &'a Evaluator<'c, 'm>,
    plan: &'a Plan<'c, 'm>,
    exchange: Exchange<'c>,
    /// Lane in the team.
    lane: Value<'c>,
    /// Elements of a row.
    columns: Value<'c>,
}

/// A row of the team, clamped into range.
#[derive(Clone)]
struct Row<'c> {
    coordinates: Vec<Value<'c>>,
    /// Whether it is in range; `None`: statically.
    guard: Option<Value<'c>>,
}

/// A vector of a row, clamped into range.
#[derive(Clone)]
struct Chunk<'c> {
    /// Position per axis.
    coordinates: Vec<Value<'c>>,
    guard: Option<Value<'c>>,
}

/// Values in registers: by form, row and chunk, 0 where the form does not depend on one.
type Key = (usize, usize, usize);

#[derive(Clone)]
struct State<'c> {
    rows: Vec<Row<'c>>,
    held: HashMap<Key, Value<'c>>,
    /// First element of a form in a row.
    starts: HashMap<(usize, usize), Value<'c>>,
}

/// Partial results that a sweep carries: step, output, row.
type Partial = (usize, usize, usize);

/// Partial results and their values so far.
struct Carried<'c, 'v> {
    partials: &'v [Partial],
    values: &'v mut [Value<'c>],
}

/// Writes the kernel.
pub(super) fn write<'c>(
    code: &mut Code<'c, '_>,
    func: Op<'c>,
    evaluator: &Evaluator<'c, '_>,
    plan: &Plan<'c, '_>,
    kernel: &FittedChoice,
) -> Result<(), Diagnostics> {
    let linear = code.linear_id(kernel.workgroup_size);
    let size = code.c(plan.team.size);
    let whole = plan.team.count == 1;
    let lane = if whole { linear } else { code.rem(linear, size) };
    let team = if whole { code.c(0) } else { code.div(linear, size) };
    let columns = columns(code, plan);
    let needed: Vec<Vec<_>> = plan
        .sweeps
        .iter()
        .map(|s| {
            let reductions = plan.reductions(s);
            let each = reductions.iter().flat_map(|r| std::iter::repeat_n(*r, plan.rows_per_team as usize));
            each.map(|(i, o)| plan.steps[i].combines[o].element).collect()
        })
        .collect();
    let exchange =
        Exchange::new(code, func, Member { team: plan.team, linear, lane }, kernel, &needed, plan.passes > 1)?;
    let writer = Writer { evaluator, plan, exchange, lane, columns };
    let mut total = code.c(1);
    for row in &plan.rows {
        total = code.mul(total, row.value);
    }
    let passes = code.c(plan.passes);
    code.repeat(passes, |code, pass| {
        let block = code.mul_const(pass, plan.team.count);
        let block = code.add(block, team);
        let first = code.mul_const(block, plan.rows_per_team);
        let covered = plan.passes * plan.team.count * plan.rows_per_team;
        let exact = total.constant_int() == Some(covered);
        let some = (!exact && plan.idle_teams_skip).then(|| code.less(first, total));
        code.guarded(some, |code| {
            let rows = (0..plan.rows_per_team).map(|r| writer.row(code, first, r, total, exact)).collect();
            let mut state = State { rows, held: HashMap::new(), starts: HashMap::new() };
            writer.rows(code, &mut state)
        })
    })
}

fn columns<'c>(code: &mut Code<'c, '_>, plan: &Plan<'c, '_>) -> Value<'c> {
    match plan.columns {
        Some(columns) => code.c(columns),
        None => plan.axes[0].size.value,
    }
}

impl<'c> Writer<'c, '_, '_> {
    fn row(&self, code: &mut Code<'c, '_>, first: Value<'c>, number: i64, total: Value<'c>, exact: bool) -> Row<'c> {
        let row = code.add_const(first, number);
        // The first row of a team that does not skip its turn is in range.
        let known = exact || (number == 0 && self.plan.idle_teams_skip);
        let guard = (!known).then(|| code.less(row, total));
        let mut rest = row;
        if guard.is_some() {
            let last = code.add_const(total, -1);
            rest = code.min(row, last);
        }
        Row { coordinates: split(code, rest, self.plan.rows.iter().map(|r| r.value).collect()), guard }
    }

    /// All sweeps over the rows of a team, then the stores of resident rows.
    fn rows(&self, code: &mut Code<'c, '_>, state: &mut State<'c>) -> Result<(), Diagnostics> {
        for sweep in &self.plan.sweeps {
            self.sweep(code, state, sweep)?;
        }
        let is_clamped = state.rows.iter().any(|row| row.guard.is_some());
        if self.plan.stores_behind_others(is_clamped, self.tail()) {
            code.barrier()?;
        }
        if self.plan.resident {
            for c in 0..self.whole_chunks() + i64::from(self.tail()) {
                let chunk = self.chunk_number(code, c);
                let all: Vec<usize> = (0..self.plan.steps.len()).collect();
                self.store_wide(code, state, &all, &chunk, c as usize)?;
            }
        }
        self.store_narrow(code, state)
    }

    fn sweep(&self, code: &mut Code<'c, '_>, state: &mut State<'c>, sweep: &Sweep) -> Result<(), Diagnostics> {
        for step in &sweep.before {
            for row in 0..state.rows.len() {
                let results = self.apply(code, state, *step, row, None, &[])?;
                self.hold(code, state, *step, row, 0, results);
            }
        }
        if sweep.body.is_empty() {
            return Ok(());
        }
        let partials: Vec<Partial> = (self.plan.reductions(sweep).into_iter())
            .flat_map(|(i, o)| (0..state.rows.len()).map(move |r| (i, o, r)))
            .collect();
        let mut values = Vec::new();
        for (i, o, _) in &partials {
            let identity = self.plan.steps[*i].combines[*o].identity(code);
            values.push(code.broadcast(identity, self.plan.lanes));
        }
        let values = if self.plan.resident {
            for c in 0..self.whole_chunks() + i64::from(self.tail()) {
                let chunk = self.chunk_number(code, c);
                let carried = Carried { partials: &partials, values: &mut values };
                self.chunk(code, state, sweep, (&chunk, c as usize), carried)?;
            }
            values
        } else {
            self.preload(code, state, sweep)?;
            self.looped(code, state, sweep, &partials, values)?
        };
        self.finish(code, state, &partials, values)
    }

    /// A loop over the chunks of a row, whose registers are stored and dropped.
    fn looped(
        &self,
        code: &mut Code<'c, '_>,
        state: &State<'c>,
        sweep: &Sweep,
        partials: &[Partial],
        mut values: Vec<Value<'c>>,
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let one = |code: &mut Code<'c, '_>, chunk: Chunk<'c>, values: &mut Vec<Value<'c>>| {
            let mut inner = state.clone();
            self.chunk(code, &mut inner, sweep, (&chunk, 0), Carried { partials, values })?;
            self.store_wide(code, &mut inner, &sweep.body, &chunk, 0)
        };
        let stride = self.plan.team.size * i64::from(self.plan.lanes);
        let unroll = self.plan.unroll;
        if self.plan.columns.is_none() {
            let bounds = [code.c(0), self.columns, code.c(unroll * stride)];
            return code.for_loop(bounds, &values, |code, start, carried| {
                let mut next = carried.to_vec();
                for u in 0..unroll {
                    let start = code.add_const(start, u * stride);
                    let chunk = self.chunk_at(code, start, true);
                    one(code, chunk, &mut next)?;
                }
                Ok(next)
            });
        }
        let chunks = self.whole_chunks();
        let looped = chunks / unroll * unroll;
        if looped > 0 {
            let bounds = [code.c(0), code.c(looped * stride), code.c(unroll * stride)];
            values = code.for_loop(bounds, &values, |code, start, carried| {
                let mut next = carried.to_vec();
                for u in 0..unroll {
                    let start = code.add_const(start, u * stride);
                    let chunk = self.chunk_at(code, start, false);
                    one(code, chunk, &mut next)?;
                }
                Ok(next)
            })?;
        }
        for c in looped..chunks + i64::from(self.tail()) {
            let chunk = self.chunk_number(code, c);
            one(code, chunk, &mut values)?;
        }
        Ok(values)
    }

    /// All ops of a sweep on one vector of each row.
    fn chunk(
        &self,
        code: &mut Code<'c, '_>,
        state: &mut State<'c>,
        sweep: &Sweep,
        (chunk, number): (&Chunk<'c>, usize),
        Carried { partials, values }: Carried<'c, '_>,
    ) -> Result<(), Diagnostics> {
        for step in &sweep.body {
            for row in 0..state.rows.len() {
                let places: Vec<usize> =
                    (0..partials.len()).filter(|p| partials[*p].0 == *step && partials[*p].2 == row).collect();
                let carried: Vec<Value> = places.iter().map(|p| values[*p]).collect();
                let results = self.apply(code, state, *step, row, Some((chunk, number)), &carried)?;
                if self.plan.steps[*step].kind != Kind::Reduce {
                    self.hold(code, state, *step, row, number, results);
                    continue;
                }
                for (p, result) in places.into_iter().zip(results) {
                    let result = code.broadcast(result, self.plan.lanes);
                    values[p] = match chunk.guard {
                        // A lane outside of the row contributes nothing.
                        Some(guard) => code.op1(ops::arith::SELECT, &[guard, result, values[p]], result.ty()),
                        None => result,
                    };
                }
            }
        }
        Ok(())
    }

    /// The body of a step at a row, and at a chunk unless it is narrow.
    fn apply(
        &self,
        code: &mut Code<'c, '_>,
        state: &mut State<'c>,
        step: usize,
        row: usize,
        chunk: Option<(&Chunk<'c>, usize)>,
        carried: &[Value<'c>],
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let step = &self.plan.steps[step];
        let mut args = Vec::new();
        for (i, operand) in step.op.operands.iter().enumerate() {
            let partial = i.checked_sub(step.op.num_inputs).and_then(|o| carried.get(o));
            args.push(match (partial, step.reads[i], operand.source) {
                (Some(value), _, _) => Some(*value),
                (None, Some(form), _) => Some(self.get(code, state, form, row, chunk)),
                (None, None, super::super::model::Source::Scalar(value)) => Some(value),
                _ => None,
            });
        }
        let zero = code.c(0);
        let mut loops = vec![zero; step.op.sizes.len()];
        for (l, c) in step.row_loops.iter().zip(&state.rows[row].coordinates) {
            loops[*l] = *c;
        }
        if let Some((chunk, _)) = chunk.filter(|c| c.0.coordinates.len() == step.column_loops.len()) {
            for (l, c) in step.column_loops.iter().zip(&chunk.coordinates) {
                loops[*l] = *c;
            }
        }
        let lanes = if step.kind == Kind::Narrow { 1 } else { self.plan.lanes };
        self.evaluator.apply(code, step.op, args, &loops, lanes)
    }

    fn hold(
        &self,
        code: &mut Code<'c, '_>,
        state: &mut State<'c>,
        step: usize,
        row: usize,
        chunk: usize,
        results: Vec<Value<'c>>,
    ) {
        let step = &self.plan.steps[step];
        for (form, value) in step.writes.iter().zip(results) {
            let value = if step.kind == Kind::Wide { code.broadcast(value, self.plan.lanes) } else { value };
            let chunk = if step.kind == Kind::Wide { chunk } else { 0 };
            state.held.insert((*form, row, chunk), value);
        }
    }

    /// A form's value from its register, else from memory.
    fn get(
        &self,
        code: &mut Code<'c, '_>,
        state: &mut State<'c>,
        form: usize,
        row: usize,
        chunk: Option<(&Chunk<'c>, usize)>,
    ) -> Value<'c> {
        let at = &self.plan.forms.all[form];
        let number = chunk.filter(|_| !at.is_narrow()).map_or(0, |c| c.1);
        if let Some(value) = state.held.get(&(form, row, number)) {
            return *value;
        }
        // Row-invariant elements share one register.
        let shared = (form, if at.is_row_invariant() { 0 } else { row }, number);
        if let Some(value) = state.held.get(&shared) {
            return *value;
        }
        let index = self.index(code, state, form, row, chunk.map(|c| c.0));
        let lanes = if at.is_narrow() { 1 } else { self.plan.lanes };
        let guard = code.both(state.rows[row].guard, chunk.and_then(|c| c.0.guard));
        let value = match guard.filter(|_| self.others_store(form)) {
            Some(guard) => {
                let zero = code.zero(self.evaluator.buffers[&at.base].ty().element());
                let zero = code.broadcast(zero, lanes);
                let loaded = code.choose(guard, &[zero], |code| Ok(vec![self.load(code, form, index, lanes)]));
                loaded.expect("invariant: both values have one type")[0]
            }
            None => self.load(code, form, index, lanes),
        };
        state.held.insert(shared, value);
        value
    }

    /// Whether another invocation may store what one reads that is clamped into range: rows in memory that a sweep has
    /// changed. Software adapters run a subgroup in lock step, and others skip their turn.
    fn others_store(&self, form: usize) -> bool {
        let plan = self.plan;
        let is_stored = plan.steps.iter().any(|step| step.writes.contains(&form));
        let is_wide = !plan.forms.all[form].is_narrow();
        is_stored && is_wide && !plan.resident && !plan.idle_teams_skip
    }

    fn index(
        &self,
        code: &mut Code<'c, '_>,
        state: &mut State<'c>,
        form: usize,
        row: usize,
        chunk: Option<&Chunk<'c>>,
    ) -> Value<'c> {
        let at = &self.plan.forms.all[form];
        let mut index = match state.starts.get(&(form, row)) {
            Some(start) => *start,
            None => {
                let mut start = code.add_const(at.offset, at.constant);
                for (coordinate, stride) in state.rows[row].coordinates.iter().zip(&at.rows) {
                    let part = stride.scale(code, *coordinate);
                    start = code.add(start, part);
                }
                state.starts.insert((form, row), start);
                start
            }
        };
        let Some(chunk) = chunk else { return index };
        for (coordinate, stride) in chunk.coordinates.iter().zip(&at.columns) {
            if !stride.is(0) {
                let part = stride.scale(code, *coordinate);
                index = code.add(index, part);
            }
        }
        index
    }

    fn load(&self, code: &mut Code<'c, '_>, form: usize, index: Value<'c>, lanes: u32) -> Value<'c> {
        let at = &self.plan.forms.all[form];
        let buffer = self.evaluator.buffers[&at.base];
        let is_wide = self.accesses_wide(at.base);
        if is_wide && lanes > 1 && at.columns.last().is_some_and(|stride| stride.is(2)) {
            return forms::every_second(code, buffer, (index, at.constant), lanes);
        }
        if lanes == 1 || is_wide {
            return code.load(buffer, index, lanes);
        }
        let stride = at.columns.last().copied().unwrap_or(Stride::ZERO);
        let elements: Vec<Value> = (0..i64::from(lanes))
            .map(|l| {
                let index = stride.from(code, index, l);
                code.load(buffer, index, 1)
            })
            .collect();
        code.vector_of(&elements)
    }

    fn accesses_wide(&self, base: Base) -> bool {
        self.evaluator.lanes.get(&base) == Some(&self.plan.lanes)
    }

    /// Hoists the loads of narrow values that a loop reads.
    fn preload(&self, code: &mut Code<'c, '_>, state: &mut State<'c>, sweep: &Sweep) -> Result<(), Diagnostics> {
        for step in &sweep.body {
            let step = &self.plan.steps[*step];
            for form in step.reads.iter().flatten().chain(&step.writes) {
                for row in 0..state.rows.len() {
                    let at = &self.plan.forms.all[*form];
                    if at.is_narrow() && matches!(at.base, Base::Argument(_)) && step.reads.contains(&Some(*form)) {
                        self.get(code, state, *form, row, None);
                    } else {
                        self.index(code, state, *form, row, None);
                    }
                }
            }
        }
        Ok(())
    }

    /// Reduces the partial results of all lanes, onto the initial results.
    fn finish(
        &self,
        code: &mut Code<'c, '_>,
        state: &mut State<'c>,
        partials: &[Partial],
        values: Vec<Value<'c>>,
    ) -> Result<(), Diagnostics> {
        let mut scalars = Vec::new();
        for ((i, o, _), value) in partials.iter().zip(values) {
            let combine = self.plan.steps[*i].combines[*o];
            let value = combine.lanes(code, value, self.plan.lanes)?;
            scalars.push((combine, value));
        }
        let totals = self.exchange.reduce(code, &scalars)?;
        for ((i, o, row), total) in partials.iter().zip(totals) {
            let form = self.plan.steps[*i].writes[*o];
            let before = self.get(code, state, form, *row, None);
            let value = self.plan.steps[*i].combines[*o].apply(code, before, total)?;
            state.held.insert((form, *row, 0), value);
        }
        Ok(())
    }

    // Chunks.

    /// Vectors of a row that every lane has.
    fn whole_chunks(&self) -> i64 {
        self.plan.columns.unwrap_or(0) / (self.plan.team.size * i64::from(self.plan.lanes))
    }
    /// Whether some lanes have one more.
    fn tail(&self) -> bool {
        self.plan.columns.is_some_and(|c| c % (self.plan.team.size * i64::from(self.plan.lanes)) != 0)
    }
    fn chunk_number(&self, code: &mut Code<'c, '_>, number: i64) -> Chunk<'c> {
        let start = code.c(number * self.plan.team.size * i64::from(self.plan.lanes));
        self.chunk_at(code, start, number >= self.whole_chunks())
    }

    /// The lane's vector of the team's vectors from `start` on.
    fn chunk_at(&self, code: &mut Code<'c, '_>, start: Value<'c>, ragged: bool) -> Chunk<'c> {
        let lanes = i64::from(self.plan.lanes);
        let own = code.mul_const(self.lane, lanes);
        let mut position = code.add(own, start);
        let guard = ragged.then(|| code.less(position, self.columns));
        if ragged {
            // Extents are multiples of the lanes: a vector is in range as a whole or not at all.
            let last = code.add_const(self.columns, -lanes);
            position = code.min(position, last);
        }
        let extents = self.plan.axes.iter().map(|a| code.c(a.extent.unwrap_or(1))).collect();
        Chunk { coordinates: split(code, position, extents), guard }
    }

    // Stores.

    /// Stores the wide results of a chunk.
    fn store_wide(
        &self,
        code: &mut Code<'c, '_>,
        state: &mut State<'c>,
        steps: &[usize],
        chunk: &Chunk<'c>,
        number: usize,
    ) -> Result<(), Diagnostics> {
        for row in 0..state.rows.len() {
            let mut stores = Vec::new();
            for form in self.written(steps, Kind::Wide) {
                let index = self.index(code, state, form, row, Some(chunk));
                stores.push((form, state.held[&(form, row, number)], index));
            }
            if stores.is_empty() {
                continue;
            }
            let guard = code.both(state.rows[row].guard, chunk.guard);
            code.guarded(guard, |code| stores.into_iter().try_for_each(|(f, v, i)| self.store(code, f, v, i)))?;
        }
        Ok(())
    }

    /// Stores the narrow results, by one lane.
    fn store_narrow(&self, code: &mut Code<'c, '_>, state: &mut State<'c>) -> Result<(), Diagnostics> {
        let all: Vec<usize> = (0..self.plan.steps.len()).collect();
        let mut forms = self.written(&all, Kind::Narrow);
        for form in self.written(&all, Kind::Reduce) {
            if !forms.contains(&form) {
                forms.push(form);
            }
        }
        if forms.is_empty() {
            return Ok(());
        }
        let one = code.c(1);
        let first = (self.plan.team.size > 1).then(|| code.less(self.lane, one));
        code.guarded(first, |code| {
            for row in 0..state.rows.len() {
                let guard = state.rows[row].guard;
                let mut inner = state.clone();
                code.guarded(guard, |code| {
                    forms.iter().try_for_each(|form| {
                        let index = self.index(code, &mut inner, *form, row, None);
                        self.store(code, *form, inner.held[&(*form, row, 0)], index)
                    })
                })?;
            }
            Ok(())
        })
    }

    /// Forms in arguments that steps of a kind write, each once.
    fn written(&self, steps: &[usize], kind: Kind) -> Vec<usize> {
        let mut out: Vec<usize> = Vec::new();
        for step in steps.iter().map(|s| &self.plan.steps[*s]).filter(|s| s.kind == kind) {
            for form in &step.writes {
                if matches!(self.plan.forms.all[*form].base, Base::Argument(_)) && !out.contains(form) {
                    out.push(*form);
                }
            }
        }
        out
    }

    fn store(
        &self,
        code: &mut Code<'c, '_>,
        form: usize,
        value: Value<'c>,
        index: Value<'c>,
    ) -> Result<(), Diagnostics> {
        let at = &self.plan.forms.all[form];
        let buffer = self.evaluator.buffers[&at.base];
        if !value.ty().is_vector() || self.accesses_wide(at.base) {
            return code.store(value, buffer, index);
        }
        let stride = at.columns.last().copied().unwrap_or(Stride::ZERO);
        for lane in 0..self.plan.lanes {
            let element = code.extract(value, lane);
            let index = stride.from(code, index, i64::from(lane));
            code.store(element, buffer, index)?;
        }
        Ok(())
    }
}

/// Delinearizes a row-major position.
fn split<'c>(code: &mut Code<'c, '_>, position: Value<'c>, extents: Vec<Value<'c>>) -> Vec<Value<'c>> {
    let mut rest = position;
    let mut out = Vec::new();
    for (d, extent) in extents.iter().enumerate().rev() {
        if d == 0 {
            out.push(rest);
        } else {
            out.push(code.rem(rest, *extent));
            rest = code.div(rest, *extent);
        }
    }
    out.reverse();
    out
}
