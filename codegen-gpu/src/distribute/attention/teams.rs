//! Attention by teams of invocations, where the subgroup's size is known: each has rows of its own, or a part of the keys.
//!
//! A team is [`TEAM`] neighbouring lanes. A lane computes the scores of its keys; shuffles pass the maximum of a row on, and the
//! powers pass through workgroup memory to the lanes of the same team, each of which has columns of the sums. Where there are
//! fewer rows than teams, several teams share a row: each takes every so manyth block of keys, and what they found is merged at
//! the end, by shuffles within a subgroup and through workgroup memory between them.
//!
//! Barriers are of the workgroup, in control flow that all invocations share: blocks behind the end are computed, and masked.

use super::super::code::Code;
use super::super::evaluate::Evaluator;
use super::super::locals;
use super::plan::Plan;
use super::softmax;
use super::tile::{self, Spot, float, multiply_add, spot};
use monopour_ir::{Diagnostics, Type, Value, ops};

/// Lanes of a team.
pub(super) const TEAM: i64 = 8;

/// How the rows and keys of a tile are distributed.
#[derive(Clone, Copy)]
struct Share {
    /// Rows of a team.
    rows: i64,
    /// Teams that have rows of their own; the others share these rows.
    apart: i64,
    /// Teams that share a row.
    splits: i64,
}

impl Share {
    fn of(plan: &Plan<'_, '_>) -> Self {
        let teams = plan.invocations / TEAM;
        let apart = ((plan.rows.max(1) as u64).next_power_of_two() as i64).min(teams);
        Self { rows: (plan.rows + teams - 1) / teams, apart, splits: teams / apart }
    }
}

/// Keys of a lane in a block.
fn each(plan: &Plan<'_, '_>) -> i64 {
    plan.block / TEAM
}

/// Distance of the powers of two rows: vectors of [`each`], in other banks.
fn stride(plan: &Plan<'_, '_>) -> i64 {
    plan.block + each(plan)
}

/// Elements of workgroup memory: powers, and what teams that share rows found.
fn memory(plan: &Plan<'_, '_>) -> [i64; 2] {
    let (share, teams) = (Share::of(plan), plan.invocations / TEAM);
    let found = if share.splits > 1 { teams * (plan.form.width + FOUND) } else { 0 };
    [teams * share.rows * stride(plan), found]
}

/// The maximum and the total of a row in front of its sums, which begin at a whole vector.
const FOUND: i64 = 4;

/// Bytes of workgroup memory.
pub(super) fn bytes(plan: &Plan<'_, '_>) -> u64 {
    let of = |elements: i64| u64::try_from(elements * 4).ok().and_then(locals::rounded).unwrap_or(u64::MAX >> 8);
    memory(plan).into_iter().map(of).sum()
}

/// An invocation and its parts of the tile.
struct Writer<'c, 'a, 'm> {
    evaluator: &'a Evaluator<'c, 'm>,
    plan: &'a Plan<'c, 'm>,
    share: Share,
    /// Lanes of a subgroup.
    lanes: u32,
    powers: Value<'c>,
    /// Memory for what teams found; `None`: none share rows.
    found: Option<Value<'c>>,
    /// The lane in its team, the team, and which of those that share its rows it is.
    lane: Value<'c>,
    team: Value<'c>,
    split: Value<'c>,
    rows: Vec<Spot<'c>>,
    columns: Vec<Spot<'c>>,
}

/// What a team found in some blocks of keys, for each of its rows.
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
    (linear, lanes): (Value<'c>, u32),
) -> Result<(), Diagnostics> {
    let share = Share::of(plan);
    let by = code.c(TEAM);
    let (lane, team) = (code.rem(linear, by), code.div(linear, by));
    let apart = code.c(share.apart);
    let (first_row, split) = (code.rem(team, apart), code.div(team, apart));
    let rows = tile::rows(code, plan, first_row, (share.rows, share.apart), share.rows * share.apart);
    let columns = tile::columns(code, plan, lane, TEAM);
    let single = Type::f32(code.cx);
    let [powers, found] = memory(plan);
    let powers = code.workgroup_buffer(code.loc, single, powers)?;
    let found = if found > 0 { Some(code.workgroup_buffer(code.loc, single, found)?) } else { None };
    let writer = Writer { evaluator, plan, share, lanes, powers, found, lane, team, split, rows, columns };
    let zero = float(code, 0.0);
    let empty = code.broadcast(zero, plan.lanes.width);
    let least = plan.least(code);
    let state = State {
        most: vec![least; writer.rows.len()],
        totals: vec![zero; writer.rows.len()],
        sums: vec![empty; writer.rows.len() * writer.columns.len()],
    };
    let bounds = [code.c(0), plan.end(code), code.c(plan.block * share.splits)];
    let end = code.for_loop(bounds, &state.flat(), |code, first, carried| {
        Ok(writer.block(code, first, &State::of(carried, writer.rows.len()))?.flat())
    })?;
    writer.finish(code, State::of(&end, writer.rows.len()))
}

impl<'c> Writer<'c, '_, '_> {
    /// The team's block of keys among those from `first` on.
    fn block(&self, code: &mut Code<'c, '_>, first: Value<'c>, state: &State<'c>) -> Result<State<'c>, Diagnostics> {
        let plan = self.plan;
        let own = code.mul_const(self.split, plan.block);
        let first = code.add(first, own);
        let own = code.mul_const(self.lane, each(plan));
        let own = code.add(first, own);
        let keys = self.keys(code, own, (each(plan), i64::from(plan.lanes.keys)));
        let scores = self.products(code, &keys)?;
        let mut next = State { most: vec![], totals: vec![], sums: vec![] };
        let groups = self.columns.len();
        for (row, spot) in self.rows.iter().enumerate() {
            let scores = self.pointwise(code, spot, &keys, &scores[row * keys.len()..(row + 1) * keys.len()])?;
            let most = scores[1..].iter().fold(scores[0], |most, score| softmax::larger(code, most, *score));
            let most = self.over_team(code, most, softmax::larger);
            let most = softmax::larger(code, state.most[row], most);
            let reference = softmax::reference(code, most)?;
            let factor = softmax::power(code, state.most[row], reference);
            let mut total = code.op1(ops::arith::MULF, &[state.totals[row], factor], factor.ty());
            let mut powers = vec![];
            for score in scores {
                let power = softmax::power(code, score, reference);
                total = code.op1(ops::arith::ADDF, &[total, power], power.ty());
                powers.push(power);
            }
            let vector = code.vector_of(&powers);
            let line = self.line(code, row);
            let at = code.mul_const(self.lane, each(plan));
            let at = code.add(line, at);
            code.store(vector, self.powers, at)?;
            next.most.push(most);
            next.totals.push(total);
            let factor = code.broadcast(factor, plan.lanes.width);
            for sum in &state.sums[row * groups..(row + 1) * groups] {
                next.sums.push(code.op1(ops::arith::MULF, &[*sum, factor], sum.ty()));
            }
        }
        code.barrier()?;
        next.sums = self.weighted(code, first, &next.sums)?;
        // The next block overwrites the powers.
        code.barrier()?;
        Ok(next)
    }

    /// Where the powers of a row of the team begin.
    fn line(&self, code: &mut Code<'c, '_>, row: usize) -> Value<'c> {
        let first = code.mul_const(self.team, self.share.rows);
        let number = code.add_const(first, row as i64);
        code.mul_const(number, stride(self.plan))
    }

    /// `count` keys from `first` on; `lanes` neighbours are in range as a whole or not at all.
    fn keys(&self, code: &mut Code<'c, '_>, first: Value<'c>, (count, lanes): (i64, i64)) -> Vec<Spot<'c>> {
        let plan = self.plan;
        let whole = plan.form.count.facts.divisor % (plan.block * self.share.splits) == 0;
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
    fn products(&self, code: &mut Code<'c, '_>, keys: &[Spot<'c>]) -> Result<Vec<Value<'c>>, Diagnostics> {
        let plan = self.plan;
        let form = &plan.form;
        let bounds = [code.c(0), code.c(form.size), code.c(i64::from(plan.lanes.size))];
        let start = vec![form.zero; self.rows.len() * keys.len()];
        let zero = code.c(0);
        code.for_loop(bounds, &start, |code, part, carried| {
            let mut queries = vec![];
            for row in &self.rows {
                let at = plan.loops(code, form.scores, Some(row.at), [zero, part]);
                queries.push(form.queries.load(code, self.evaluator, &at, plan.lanes.size)?);
            }
            let mut loaded = vec![];
            for key in keys {
                let at = plan.loops(code, form.scores, None, [key.at, part]);
                loaded.push(form.keys.load(code, self.evaluator, &at, plan.lanes.size)?);
            }
            let mut out = carried.to_vec();
            for q in 0..plan.lanes.size {
                for (row, query) in queries.iter().enumerate() {
                    let query = code.extract(*query, q);
                    for (key, vector) in loaded.iter().enumerate() {
                        let element = code.extract(*vector, q);
                        let sum = &mut out[row * keys.len() + key];
                        *sum = multiply_add(code, *sum, query, element);
                    }
                }
            }
            Ok(out)
        })
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

    /// What the lanes of the team have, combined.
    fn over_team(
        &self,
        code: &mut Code<'c, '_>,
        mut value: Value<'c>,
        combine: fn(&mut Code<'c, '_>, Value<'c>, Value<'c>) -> Value<'c>,
    ) -> Value<'c> {
        let mut mask = 1;
        while i64::from(mask) < TEAM {
            let other = code.shuffle_xor(value, mask, self.lanes);
            value = combine(code, value, other);
            mask *= 2;
        }
        value
    }

    /// Adds the products of powers and values of a block: of a lane's keys at a time.
    fn weighted(
        &self,
        code: &mut Code<'c, '_>,
        first: Value<'c>,
        sums: &[Value<'c>],
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let (plan, groups, each) = (self.plan, self.columns.len(), each(self.plan));
        let bounds = [code.c(0), code.c(plan.block), code.c(each)];
        code.for_loop(bounds, sums, |code, place, carried| {
            let at = code.add(first, place);
            let keys = self.keys(code, at, (each, 1));
            let mut values = vec![];
            for key in &keys {
                for column in &self.columns {
                    values.push(plan.value(code, self.evaluator, key, column)?);
                }
            }
            let mut out = carried.to_vec();
            for row in 0..self.rows.len() {
                let line = self.line(code, row);
                let at = code.add(line, place);
                let powers = code.load(self.powers, at, each as u32);
                for key in 0..keys.len() {
                    let power = code.extract(powers, key as u32);
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

    fn finish(&self, code: &mut Code<'c, '_>, mut state: State<'c>) -> Result<(), Diagnostics> {
        let add = |code: &mut Code<'c, '_>, a: Value<'c>, b: Value<'c>| code.op1(ops::arith::ADDF, &[a, b], a.ty());
        for total in &mut state.totals {
            *total = self.over_team(code, *total, add);
        }
        let Some(found) = self.found else { return self.store(code, &state, None) };
        let state = self.within_subgroup(code, state)?;
        let state = self.between_subgroups(code, found, state)?;
        let one = code.c(1);
        let is_first = code.less(self.split, one);
        self.store(code, &state, Some(is_first))
    }

    /// What teams of one subgroup that share a row found.
    fn within_subgroup(&self, code: &mut Code<'c, '_>, mut state: State<'c>) -> Result<State<'c>, Diagnostics> {
        let mut mask = TEAM * self.share.apart;
        while mask < i64::from(self.lanes) {
            let passed = |code: &mut Code<'c, '_>, value: Value<'c>| {
                let lanes = if value.ty().is_vector() { self.plan.lanes.width } else { 1 };
                let elements: Vec<Value> = (0..lanes)
                    .map(|lane| {
                        let element = code.extract(value, lane);
                        code.shuffle_xor(element, mask as u32, self.lanes)
                    })
                    .collect();
                code.vector_of(&elements)
            };
            let other: Vec<Value> = state.flat().into_iter().map(|value| passed(code, value)).collect();
            state = self.merged(code, &state, &State::of(&other, 1))?;
            mask *= 2;
        }
        Ok(state)
    }

    /// What the teams of all subgroups that share a row found: the first team of each row merges it.
    fn between_subgroups(
        &self,
        code: &mut Code<'c, '_>,
        found: Value<'c>,
        state: State<'c>,
    ) -> Result<State<'c>, Diagnostics> {
        let plan = self.plan;
        // Teams that hold the same: those of one subgroup.
        let alike = (i64::from(self.lanes) / (TEAM * self.share.apart)).max(1);
        if alike >= self.share.splits {
            return Ok(state);
        }
        let place = code.mul_const(self.team, plan.form.width + FOUND);
        let one = code.c(1);
        let is_first = code.less(self.lane, one);
        code.guarded(Some(is_first), |code| {
            code.store(state.most[0], found, place)?;
            let at = code.add_const(place, 1);
            code.store(state.totals[0], found, at)
        })?;
        self.place_sums(code, place, |code, at, group| {
            code.guarded(self.columns[group].guard, |code| code.store(state.sums[group], found, at))
        })?;
        code.barrier()?;
        let bounds = [code.c(alike), code.c(self.share.splits), code.c(alike)];
        let all = code.for_loop(bounds, &state.flat(), |code, split, carried| {
            let teams = code.mul_const(split, self.share.apart);
            let team = code.add(self.team, teams);
            // Of those that are no first ones the last team again.
            let last = code.c(plan.invocations / TEAM - 1);
            let team = code.min(team, last);
            let place = code.mul_const(team, plan.form.width + FOUND);
            let most = code.load(found, place, 1);
            let at = code.add_const(place, 1);
            let total = code.load(found, at, 1);
            let mut sums = vec![];
            self.place_sums(code, place, |code, at, _| {
                sums.push(code.load(found, at, plan.lanes.width));
                Ok(())
            })?;
            let other = State { most: vec![most], totals: vec![total], sums };
            Ok(self.merged(code, &State::of(carried, 1), &other)?.flat())
        })?;
        Ok(State::of(&all, 1))
    }

    /// Runs `body` at the place of each column group's sums.
    fn place_sums(
        &self,
        code: &mut Code<'c, '_>,
        place: Value<'c>,
        mut body: impl FnMut(&mut Code<'c, '_>, Value<'c>, usize) -> Result<(), Diagnostics>,
    ) -> Result<(), Diagnostics> {
        for (group, column) in self.columns.iter().enumerate() {
            let at = code.add(place, column.at);
            let at = code.add_const(at, FOUND);
            body(code, at, group)?;
        }
        Ok(())
    }

    /// Both parts of one row.
    fn merged(&self, code: &mut Code<'c, '_>, a: &State<'c>, b: &State<'c>) -> Result<State<'c>, Diagnostics> {
        let most = softmax::larger(code, a.most[0], b.most[0]);
        let reference = softmax::reference(code, most)?;
        let [own, other] = [a.most[0], b.most[0]].map(|most| softmax::power(code, most, reference));
        let weigh = |code: &mut Code<'c, '_>, a: Value<'c>, b: Value<'c>, lanes: u32| {
            let [own, other] = [own, other].map(|factor| code.broadcast(factor, lanes));
            let a = code.op1(ops::arith::MULF, &[a, own], a.ty());
            multiply_add(code, a, b, other)
        };
        let total = weigh(code, a.totals[0], b.totals[0], 1);
        let lanes = self.plan.lanes.width;
        let sums = a.sums.iter().zip(&b.sums).map(|(a, b)| weigh(code, *a, *b, lanes)).collect();
        Ok(State { most: vec![most], totals: vec![total], sums })
    }

    /// Stores the results of the team's rows, where `guard` holds.
    fn store(&self, code: &mut Code<'c, '_>, state: &State<'c>, guard: Option<Value<'c>>) -> Result<(), Diagnostics> {
        let groups = self.columns.len();
        code.guarded(guard, |code| {
            for (row, spot) in self.rows.iter().enumerate() {
                for (group, column) in self.columns.iter().enumerate() {
                    let sums = state.sums[row * groups + group];
                    self.plan.finish(code, self.evaluator, (spot, column), (sums, state.totals[row]))?;
                }
            }
            Ok(())
        })
    }
}
