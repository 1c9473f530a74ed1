//! Attention on cooperative matrices: each subgroup has sixteen rows of queries, and holds their sums as matrices.
//!
//! Keys and values of a block lie in workgroup memory, the next block's loads in flight. A subgroup's scores pass through
//! workgroup memory, because no invocation knows the elements of a matrix that it holds: there two invocations compute the
//! softmax of a row. The powers become the left factor of the second product, each as the sum of two f16 where the program has
//! weights of f32.
//!
//! The sums are compared with a maximum that may be too small by [`SLACK`]; only where a block exceeds it by more are they
//! passed through workgroup memory and scaled, by the whole workgroup, which after the first blocks is rare. Powers are at
//! most `exp(SLACK)`, which f16 has.

use super::super::code::Code;
use super::super::evaluate::Evaluator;
use super::super::locals;
use super::super::matrices::{self, HALVES, MATRIX, SKEW, SUMS_SKEW};
use super::mask::UNDERFLOW;
use super::plan::Plan;
use super::softmax;
use super::tile::{self, Spot, float, spot};
use monopour_ir::typed::arith::{CmpFPredicate, CmpIPredicate};
use monopour_ir::typed::gpu::{AllReduceOperation, MatrixRole};
use monopour_ir::{Diagnostics, OpSpec, Type, Value, ops};

/// What a score may exceed the maximum by that it is compared with.
const SLACK: f64 = 8.0;
/// Invocations of a row.
pub(super) const PER_ROW: i64 = 2;

/// Whether the plan's factors are halves in vectors, and its sizes made of whole matrices.
pub(super) fn fits(plan: &Plan<'_, '_>, evaluator: &Evaluator<'_, '_>, lanes: i64) -> bool {
    let form = &plan.form;
    let halves = [&form.queries, &form.keys, &form.weighted].iter().all(|f| f.is_of_halves(evaluator, HALVES as u32));
    let whole = [form.size, form.width, plan.block].iter().all(|size| *size > 0 && size % MATRIX == 0);
    let copied = [form.size, form.width].iter().all(|size| plan.block * size % (plan.invocations * HALVES) == 0);
    let wide = (i64::from(plan.lanes.size), i64::from(plan.lanes.width)) == (HALVES, HALVES);
    let rows = plan.rows <= plan.invocations / lanes * MATRIX;
    halves && whole && copied && wide && rows && lanes == PER_ROW * MATRIX && form.count.exact().is_some_and(|n| n > 0)
}

/// Bytes of workgroup memory.
pub(super) fn bytes(plan: &Plan<'_, '_>, lanes: i64) -> u64 {
    let subgroups = plan.invocations / lanes;
    let halves = plan.block * (plan.form.size + plan.form.width + 2 * SKEW) + subgroups * MATRIX * (plan.block + SKEW);
    let words = subgroups * MATRIX * (plan.block + SUMS_SKEW);
    // A flag per subgroup; matrices are whole units.
    ((halves * 2 + words * 4) as u64).saturating_add(locals::rounded(subgroups as u64 * 4).unwrap_or(u64::MAX))
}

/// The workgroup's memory.
struct Shared<'c> {
    keys: Value<'c>,
    values: Value<'c>,
    scores: Value<'c>,
    powers: Value<'c>,
    /// Per subgroup, whether its sums must be scaled.
    flags: Value<'c>,
}

/// An invocation, with its row, and its part of a row's scores.
struct Writer<'c, 'a, 'm> {
    evaluator: &'a Evaluator<'c, 'm>,
    plan: &'a Plan<'c, 'm>,
    lanes: i64,
    shared: Shared<'c>,
    linear: Value<'c>,
    lane: Value<'c>,
    subgroup: Value<'c>,
    row: Spot<'c>,
    /// The row within the subgroup, and which part of it.
    own_row: Value<'c>,
    part: Value<'c>,
}

/// What the loop over the blocks carries.
struct State<'c> {
    loaded: Vec<Value<'c>>,
    most: Value<'c>,
    total: Value<'c>,
    sums: Vec<Value<'c>>,
}

impl<'c> State<'c> {
    fn values(&self) -> Vec<Value<'c>> {
        [&self.loaded[..], &[self.most, self.total], &self.sums[..]].concat()
    }
    fn of(values: &[Value<'c>], loaded: usize) -> Self {
        let (loads, rest) = values.split_at(loaded);
        Self { loaded: loads.to_vec(), most: rest[0], total: rest[1], sums: rest[2..].to_vec() }
    }
}

/// Writes the kernel.
pub(super) fn write<'c>(
    code: &mut Code<'c, '_>,
    evaluator: &Evaluator<'c, '_>,
    plan: &Plan<'c, '_>,
    (linear, lanes): (Value<'c>, i64),
) -> Result<(), Diagnostics> {
    let index = code.index;
    let (subgroup, lane) = (code.op1(ops::gpu::SUBGROUP_ID, &[], index), code.op1(ops::gpu::LANE_ID, &[], index));
    let subgroups = plan.invocations / lanes;
    let per_row = code.c(PER_ROW);
    let (own_row, part) = (code.div(lane, per_row), code.rem(lane, per_row));
    let first = code.mul_const(subgroup, MATRIX);
    let at = code.add(first, own_row);
    let row = tile::rows(code, plan, at, (1, 1), subgroups * MATRIX)[0];
    let (half, single) = (Type::f16(code.cx), Type::f32(code.cx));
    let rows = subgroups * MATRIX;
    let shared = Shared {
        keys: code.workgroup_buffer(code.loc, half, plan.block * (plan.form.size + SKEW))?,
        values: code.workgroup_buffer(code.loc, half, plan.block * (plan.form.width + SKEW))?,
        scores: code.workgroup_buffer(code.loc, single, rows * (plan.block + SUMS_SKEW))?,
        powers: code.workgroup_buffer(code.loc, half, rows * (plan.block + SKEW))?,
        flags: code.workgroup_buffer(code.loc, Type::integer(code.cx, 32), subgroups)?,
    };
    let writer = Writer { evaluator, plan, lanes, shared, linear, lane, subgroup, row, own_row, part };
    let queries = writer.queries(code)?;
    let zero = matrices::zero(code);
    let none = code.c(0);
    let start = State {
        loaded: writer.load(code, none)?,
        most: plan.least(code),
        total: float(code, 0.0),
        sums: vec![zero; (plan.form.width / MATRIX) as usize],
    };
    let (first, step, loaded) = (code.c(0), code.c(plan.block), start.loaded.len());
    let blocks = |code: &mut Code<'c, '_>, [first, end]: [Value<'c>; 2], state: &State<'c>| {
        let end = code.for_loop([first, end, step], &state.values(), |code, first, carried| {
            Ok(writer.block(code, (first, &queries), State::of(carried, loaded))?.values())
        })?;
        Ok::<_, Diagnostics>(State::of(&end, loaded))
    };
    let least = plan.form.mask.as_ref().map_or(f64::NEG_INFINITY, |mask| mask.least);
    if least == f64::NEG_INFINITY {
        let end = plan.end(code);
        let state = blocks(code, [first, end], &start)?;
        return writer.finish(code, &state);
    }
    // Keys that no row sees count where the others' scores are as low as the mask's.
    let seen = plan.seen(code);
    let seen = code.ceil_div_const(seen, plan.block);
    let seen = code.mul_const(seen, plan.block);
    let state = blocks(code, [first, seen], &start)?;
    let bound = float(code, least + UNDERFLOW);
    let is_low = compared(code, CmpFPredicate::Ole, [state.most, bound])?;
    let any = writer.any(code, is_low)?;
    let last = plan.last(code);
    let end = code.op1(ops::arith::SELECT, &[any, last, seen], index);
    let state = blocks(code, [seen, end], &state)?;
    writer.finish(code, &state)
}

fn compared<'c>(
    code: &mut Code<'c, '_>,
    predicate: CmpFPredicate,
    numbers: [Value<'c>; 2],
) -> Result<Value<'c>, Diagnostics> {
    let spec = OpSpec::new(ops::arith::CMPF, code.loc)
        .operands(&numbers)
        .results(&[Type::integer(code.cx, 1)])
        .attr("predicate", predicate.to_attr(code.cx));
    Ok(code.create(spec)?.result(0))
}

impl<'c> Writer<'c, '_, '_> {
    fn scores_pitch(&self) -> i64 {
        self.plan.block + SUMS_SKEW
    }
    fn powers_pitch(&self) -> i64 {
        self.plan.block + SKEW
    }
    /// The first score of the subgroup, and the first power.
    fn own_scores(&self, code: &mut Code<'c, '_>) -> Value<'c> {
        code.mul_const(self.subgroup, MATRIX * self.scores_pitch())
    }
    fn own_powers(&self, code: &mut Code<'c, '_>) -> Value<'c> {
        code.mul_const(self.subgroup, MATRIX * self.powers_pitch())
    }
    /// Stores a matrix of sums or scores, from a column of the subgroup's lines on.
    fn store_matrix(&self, code: &mut Code<'c, '_>, matrix: Value<'c>, column: i64) -> Result<(), Diagnostics> {
        let at = self.own_scores(code);
        let at = code.add_const(at, column);
        matrices::store(code, matrix, (self.shared.scores, at), self.scores_pitch())
    }

    /// The queries of the subgroup's rows, in matrices along a key's elements; they pass through the memory of the powers.
    fn queries(&self, code: &mut Code<'c, '_>) -> Result<Vec<Value<'c>>, Diagnostics> {
        let (plan, pitch) = (self.plan, self.powers_pitch());
        let own = self.own_powers(code);
        let rows = plan.invocations / self.lanes * MATRIX;
        let mut out = vec![];
        for first in (0..plan.form.size).step_by(MATRIX as usize) {
            code.barrier()?;
            for round in 0..MATRIX * MATRIX / (HALVES * self.lanes) {
                let item = code.add_const(self.lane, round * self.lanes);
                let per_line = code.c(MATRIX / HALVES);
                let (line, along) = (code.div(item, per_line), code.rem(item, per_line));
                let along = code.mul_const(along, HALVES);
                let at = code.mul_const(self.subgroup, MATRIX);
                let at = code.add(at, line);
                let row = tile::rows(code, plan, at, (1, 1), rows)[0];
                let (zero, element) = (code.c(0), code.add_const(along, first));
                let loops = plan.loops(code, plan.form.scores, Some(row.at), [zero, element]);
                let value = plan.form.queries.load_halves(code, self.evaluator, &loops, HALVES as u32);
                let to = code.mul_const(line, pitch);
                let to = code.add(to, along);
                let to = code.add(own, to);
                code.store(value, self.shared.powers, to)?;
            }
            code.barrier()?;
            out.push(matrices::load(code, MatrixRole::A, (self.shared.powers, own), (pitch, false))?);
        }
        Ok(out)
    }

    /// The vectors of an invocation's part of copying lines of `length` halves: key and element, by round.
    fn copied(&self, code: &mut Code<'c, '_>, length: i64) -> Vec<(Value<'c>, Value<'c>)> {
        let rounds = self.plan.block * length / (self.plan.invocations * HALVES);
        let per_line = code.c(length / HALVES);
        (0..rounds)
            .map(|round| {
                let item = code.add_const(self.linear, round * self.plan.invocations);
                let (line, along) = (code.div(item, per_line), code.rem(item, per_line));
                (line, code.mul_const(along, HALVES))
            })
            .collect()
    }

    /// The keys and values of the block at `first` that the invocation copies.
    fn load(&self, code: &mut Code<'c, '_>, first: Value<'c>) -> Result<Vec<Value<'c>>, Diagnostics> {
        let plan = self.plan;
        let (form, whole) = (&plan.form, plan.blocks_are_whole());
        let mut out = vec![];
        for (key, element) in self.copied(code, form.size) {
            let at = code.add(first, key);
            let key = spot(code, at, form.count.value, 1, whole);
            let loops = plan.loops(code, form.scores, None, [key.at, element]);
            out.push(form.keys.load_halves(code, self.evaluator, &loops, HALVES as u32));
        }
        for (key, element) in self.copied(code, form.width) {
            let at = code.add(first, key);
            let key = spot(code, at, form.count.value, 1, whole);
            let loops = plan.loops(code, form.values, None, [element, key.at]);
            let mut value = form.weighted.load_halves(code, self.evaluator, &loops, HALVES as u32);
            if let Some(guard) = key.guard {
                let zero = code.zero(Type::f16(code.cx));
                let zero = code.broadcast(zero, HALVES as u32);
                value = code.op1(ops::arith::SELECT, &[guard, value, zero], value.ty());
            }
            out.push(value);
        }
        Ok(out)
    }

    fn store(&self, code: &mut Code<'c, '_>, loaded: &[Value<'c>]) -> Result<(), Diagnostics> {
        let form = &self.plan.form;
        let keys = self.copied(code, form.size).into_iter().map(|place| (self.shared.keys, form.size, place));
        let keys: Vec<_> = keys.collect();
        let values = self.copied(code, form.width).into_iter().map(|place| (self.shared.values, form.width, place));
        let places: Vec<_> = keys.into_iter().chain(values).collect();
        for ((buffer, length, (line, along)), value) in places.into_iter().zip(loaded) {
            let at = code.mul_const(line, length + SKEW);
            let at = code.add(at, along);
            code.store(*value, buffer, at)?;
        }
        Ok(())
    }

    /// One block of keys from `first` on.
    fn block(
        &self,
        code: &mut Code<'c, '_>,
        (first, queries): (Value<'c>, &[Value<'c>]),
        state: State<'c>,
    ) -> Result<State<'c>, Diagnostics> {
        let plan = self.plan;
        // The block before must have been read.
        code.barrier()?;
        self.store(code, &state.loaded)?;
        code.barrier()?;
        let next = code.add_const(first, plan.block);
        let count = plan.form.count.exact().expect("invariant: planned");
        let last = code.c((count - 1) / plan.block * plan.block);
        let next = code.min(next, last);
        let loaded = self.load(code, next)?;
        self.scores(code, queries)?;
        code.barrier()?;
        let scores = self.own_part(code, first)?;
        let most = self.most(code, &scores);
        let State { most, total, sums, .. } = self.scaled(code, most, state)?;
        let reference = softmax::reference(code, most)?;
        let powers: Vec<Value> = scores.iter().map(|score| softmax::power(code, *score, reference)).collect();
        let total = powers.iter().fold(total, |sum, power| code.op1(ops::arith::ADDF, &[sum, *power], power.ty()));
        let sums = self.weighted(code, &powers, sums)?;
        Ok(State { loaded, most, total, sums })
    }

    /// Writes the products of queries and keys.
    fn scores(&self, code: &mut Code<'c, '_>, queries: &[Value<'c>]) -> Result<(), Diagnostics> {
        let pitch = self.plan.form.size + SKEW;
        for key in (0..self.plan.block).step_by(MATRIX as usize) {
            let mut sum = matrices::zero(code);
            for (i, query) in (0i64..).zip(queries) {
                let at = code.c(key * pitch + i * MATRIX);
                let keys = matrices::load(code, MatrixRole::B, (self.shared.keys, at), (pitch, true))?;
                sum = matrices::multiply_add(code, [*query, keys, sum]);
            }
            self.store_matrix(code, sum, key)?;
        }
        Ok(())
    }

    /// The invocation's part of its row's scores, after the pointwise ops.
    fn own_part(&self, code: &mut Code<'c, '_>, first: Value<'c>) -> Result<Vec<Value<'c>>, Diagnostics> {
        let plan = self.plan;
        let each = plan.block / PER_ROW;
        let own = code.mul_const(self.part, each);
        let line = code.mul_const(self.own_row, self.scores_pitch());
        let line = code.add(line, own);
        let at = self.own_scores(code);
        let line = code.add(at, line);
        let mut loaded = vec![];
        for i in (0..each).step_by(HALVES as usize) {
            let at = code.add_const(line, i);
            let vector = code.load(self.shared.scores, at, HALVES as u32);
            loaded.extend((0..HALVES as u32).map(|lane| code.extract(vector, lane)));
        }
        let from = code.add(first, own);
        let lanes = plan.lanes.keys;
        let mut out = vec![];
        for (group, scores) in (0i64..).zip(loaded.chunks(lanes as usize)) {
            let lanes = i64::from(lanes);
            let at = code.add_const(from, group * lanes);
            let key = spot(code, at, plan.form.count.value, lanes, plan.blocks_are_whole());
            let scores = plan.score(code, self.evaluator, (self.row.at, key.at), scores)?;
            out.extend(scores.into_iter().map(|score| softmax::masked(code, score, key.guard)));
        }
        Ok(out)
    }

    /// The largest of a row's scores.
    fn most(&self, code: &mut Code<'c, '_>, scores: &[Value<'c>]) -> Value<'c> {
        let (first, rest) = scores.split_first().expect("invariant: a part has scores");
        let most = rest.iter().fold(*first, |most, score| softmax::larger(code, most, *score));
        let other = code.shuffle_xor(most, 1, self.lanes as u32);
        softmax::larger(code, most, other)
    }

    /// The state with a maximum that the block's is not far above, the sums scaled to it.
    fn scaled(&self, code: &mut Code<'c, '_>, block: Value<'c>, state: State<'c>) -> Result<State<'c>, Diagnostics> {
        let slack = float(code, SLACK);
        let allowed = code.op1(ops::arith::ADDF, &[state.most, slack], slack.ty());
        let exceeds = compared(code, CmpFPredicate::Ogt, [block, allowed])?;
        let any = self.any(code, exceeds)?;
        let kept = [&[state.most, state.total], &state.sums[..]].concat();
        let changed = code.choose(any, &kept, |code| {
            let most = code.op1(ops::arith::SELECT, &[exceeds, block, state.most], block.ty());
            let reference = softmax::reference(code, most)?;
            let factor = softmax::power(code, state.most, reference);
            let total = code.op1(ops::arith::MULF, &[state.total, factor], factor.ty());
            let mut out = vec![most, total];
            for sum in &state.sums {
                out.push(self.multiplied(code, *sum, factor)?);
            }
            Ok(out)
        })?;
        Ok(State::of(&[&state.loaded[..], &changed[..]].concat(), state.loaded.len()))
    }

    /// Whether a condition holds in any invocation of the workgroup.
    fn any(&self, code: &mut Code<'c, '_>, condition: Value<'c>) -> Result<Value<'c>, Diagnostics> {
        let ty = Type::integer(code.cx, 32);
        let flag = code.op1(ops::arith::EXTUI, &[condition], ty);
        let spec = OpSpec::new(ops::gpu::SUBGROUP_REDUCE, code.loc)
            .operands(&[flag])
            .results(&[ty])
            .attr("op", AllReduceOperation::MaxSI.to_attr(code.cx).expect("invariant: the gpu dialect is loaded"));
        let flag = code.create(spec)?.result(0);
        let one = code.c(1);
        let first = code.less(self.lane, one);
        code.guarded(Some(first), |code| code.store(flag, self.shared.flags, self.subgroup))?;
        code.barrier()?;
        let mut all = flag;
        for subgroup in 0..self.plan.invocations / self.lanes {
            let at = code.c(subgroup);
            let other = code.load(self.shared.flags, at, 1);
            all = code.op1(ops::arith::ORI, &[all, other], ty);
        }
        let zero = code.zero(ty);
        let spec = OpSpec::new(ops::arith::CMPI, code.loc)
            .operands(&[all, zero])
            .results(&[Type::integer(code.cx, 1)])
            .attr("predicate", CmpIPredicate::Ne.to_attr(code.cx));
        Ok(code.create(spec)?.result(0))
    }

    /// Sums times the factor of each row, through the memory of the scores.
    fn multiplied(
        &self,
        code: &mut Code<'c, '_>,
        sums: Value<'c>,
        factor: Value<'c>,
    ) -> Result<Value<'c>, Diagnostics> {
        code.barrier()?;
        self.store_matrix(code, sums, 0)?;
        code.barrier()?;
        let factors = code.broadcast(factor, HALVES as u32);
        for at in self.own_columns(code) {
            let sums = code.load(self.shared.scores, at, HALVES as u32);
            let scaled = code.op1(ops::arith::MULF, &[sums, factors], sums.ty());
            code.store(scaled, self.shared.scores, at)?;
        }
        code.barrier()?;
        let own = self.own_scores(code);
        matrices::load(code, MatrixRole::C, (self.shared.scores, own), (self.scores_pitch(), false))
    }

    /// The places of the invocation's columns of a matrix in the memory of the scores.
    fn own_columns(&self, code: &mut Code<'c, '_>) -> Vec<Value<'c>> {
        let line = code.mul_const(self.own_row, self.scores_pitch());
        let part = code.mul_const(self.part, MATRIX / PER_ROW);
        let at = code.add(line, part);
        let own = self.own_scores(code);
        let at = code.add(own, at);
        (0..MATRIX / PER_ROW).step_by(HALVES as usize).map(|i| code.add_const(at, i)).collect()
    }

    /// Adds the products of powers and values.
    fn weighted(
        &self,
        code: &mut Code<'c, '_>,
        powers: &[Value<'c>],
        sums: Vec<Value<'c>>,
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let vectors: Vec<Value> = powers.chunks(HALVES as usize).map(|part| code.vector_of(part)).collect();
        let half = code.vector_type(Type::f16(code.cx), HALVES as u32);
        let high: Vec<Value> = vectors.iter().map(|v| code.op1(ops::arith::TRUNCF, &[*v], half)).collect();
        let mut parts = vec![self.factors(code, &high)?];
        if !self.plan.form.is_rounded {
            let mut low = vec![];
            for (vector, high) in vectors.iter().zip(&high) {
                let high = code.op1(ops::arith::EXTF, &[*high], vector.ty());
                let rest = code.op1(ops::arith::SUBF, &[*vector, high], vector.ty());
                low.push(code.op1(ops::arith::TRUNCF, &[rest], half));
            }
            parts.push(self.factors(code, &low)?);
        }
        let pitch = self.plan.form.width + SKEW;
        let mut out = sums;
        for i in 0..self.plan.block / MATRIX {
            for (j, sum) in (0i64..).zip(&mut out) {
                let at = code.c(i * MATRIX * pitch + j * MATRIX);
                let values = matrices::load(code, MatrixRole::B, (self.shared.values, at), (pitch, false))?;
                for part in &parts {
                    *sum = matrices::multiply_add(code, [part[i as usize], values, *sum]);
                }
            }
        }
        Ok(out)
    }

    /// Powers as matrices, through workgroup memory.
    fn factors(&self, code: &mut Code<'c, '_>, powers: &[Value<'c>]) -> Result<Vec<Value<'c>>, Diagnostics> {
        let pitch = self.powers_pitch();
        let line = code.mul_const(self.own_row, pitch);
        let part = code.mul_const(self.part, self.plan.block / PER_ROW);
        let at = code.add(line, part);
        let own = self.own_powers(code);
        let at = code.add(own, at);
        code.barrier()?;
        for (i, power) in (0i64..).zip(powers) {
            let at = code.add_const(at, i * HALVES);
            code.store(*power, self.shared.powers, at)?;
        }
        code.barrier()?;
        let mut out = vec![];
        for key in (0..self.plan.block).step_by(MATRIX as usize) {
            let at = code.add_const(own, key);
            out.push(matrices::load(code, MatrixRole::A, (self.shared.powers, at), (pitch, false))?);
        }
        Ok(out)
    }

    fn finish(&self, code: &mut Code<'c, '_>, state: &State<'c>) -> Result<(), Diagnostics> {
        let other = code.shuffle_xor(state.total, 1, self.lanes as u32);
        let total = code.op1(ops::arith::ADDF, &[state.total, other], other.ty());
        for (i, sums) in (0i64..).zip(&state.sums) {
            code.barrier()?;
            self.store_matrix(code, *sums, 0)?;
            code.barrier()?;
            let part = code.mul_const(self.part, MATRIX / PER_ROW);
            for (place, at) in (0i64..).zip(self.own_columns(code)) {
                let sums = code.load(self.shared.scores, at, HALVES as u32);
                let column = code.add_const(part, i * MATRIX + place * HALVES);
                let column = Spot { at: column, guard: None };
                self.plan.finish(code, self.evaluator, (&self.row, &column), (sums, total))?;
            }
        }
        Ok(())
    }
}
