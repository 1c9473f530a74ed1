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
use super::part::{Part, State, over_lanes, sum};
use super::plan::Plan;
use super::softmax;
use super::tile::{self, multiply_add};
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

/// An invocation and its part of the tile.
struct Writer<'c, 'a, 'm> {
    part: Part<'c, 'a, 'm>,
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
    let whole = plan.form.count.facts.divisor % (plan.block * share.splits) == 0;
    let part = Part { evaluator, plan, rows, columns, whole };
    let writer = Writer { part, share, lanes, powers, found, lane, team, split };
    let state = State::empty(code, &writer.part);
    let bounds = [code.c(0), plan.end(code), code.c(plan.block * share.splits)];
    let rows = writer.part.rows.len();
    let end = code.for_loop(bounds, &state.flat(), |code, first, carried| {
        Ok(writer.block(code, first, &State::of(carried, rows))?.flat())
    })?;
    writer.finish(code, State::of(&end, rows))
}

impl<'c> Writer<'c, '_, '_> {
    /// The team's block of keys among those from `first` on.
    fn block(&self, code: &mut Code<'c, '_>, first: Value<'c>, state: &State<'c>) -> Result<State<'c>, Diagnostics> {
        let (part, plan) = (&self.part, self.part.plan);
        let own = code.mul_const(self.split, plan.block);
        let first = code.add(first, own);
        let own = code.mul_const(self.lane, each(plan));
        let from = code.add(first, own);
        let keys = part.keys(code, from, (each(plan), i64::from(plan.lanes.keys)));
        let products = part.products(code, &keys)?;
        let mut next = State::default();
        for row in 0..part.rows.len() {
            let scores = part.scores(code, row, &keys, &products)?;
            let over = |code: &mut Code<'c, '_>, most| self.over_team(code, most, softmax::larger);
            let powers = part.step(code, (state, &mut next), &scores, over)?;
            let vector = code.vector_of(&powers);
            let line = self.line(code, row);
            let at = code.add(line, own);
            code.store(vector, self.powers, at)?;
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
        code.mul_const(number, stride(self.part.plan))
    }

    /// What the lanes of the team have, combined.
    fn over_team(
        &self,
        code: &mut Code<'c, '_>,
        value: Value<'c>,
        combine: fn(&mut Code<'c, '_>, Value<'c>, Value<'c>) -> Value<'c>,
    ) -> Value<'c> {
        over_lanes(code, value, (TEAM as u32, self.lanes), combine)
    }

    /// Adds the products of powers and values of a block: of a lane's keys at a time.
    fn weighted(
        &self,
        code: &mut Code<'c, '_>,
        first: Value<'c>,
        sums: &[Value<'c>],
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let plan = self.part.plan;
        let each = each(plan);
        let bounds = [code.c(0), code.c(plan.block), code.c(each)];
        code.for_loop(bounds, sums, |code, place, carried| {
            let at = code.add(first, place);
            let keys = self.part.keys(code, at, (each, 1));
            let mut powers = vec![];
            for row in 0..self.part.rows.len() {
                let line = self.line(code, row);
                let at = code.add(line, place);
                powers.push(code.load(self.powers, at, each as u32));
            }
            let power = |code: &mut Code<'c, '_>, row: usize, key: usize| code.extract(powers[row], key as u32);
            self.part.weighted(code, &keys, carried, power)
        })
    }

    fn finish(&self, code: &mut Code<'c, '_>, mut state: State<'c>) -> Result<(), Diagnostics> {
        for total in &mut state.totals {
            *total = self.over_team(code, *total, sum);
        }
        let Some(found) = self.found else { return self.part.store(code, &state.sums, &state.totals) };
        let state = self.within_subgroup(code, state)?;
        let state = self.between_subgroups(code, found, state)?;
        let one = code.c(1);
        let is_first = code.less(self.split, one);
        code.guarded(Some(is_first), |code| self.part.store(code, &state.sums, &state.totals))
    }

    /// What teams of one subgroup that share a row found.
    fn within_subgroup(&self, code: &mut Code<'c, '_>, mut state: State<'c>) -> Result<State<'c>, Diagnostics> {
        let mut mask = TEAM * self.share.apart;
        while mask < i64::from(self.lanes) {
            let passed = |code: &mut Code<'c, '_>, value: Value<'c>| {
                let lanes = if value.ty().is_vector() { self.part.plan.lanes.width } else { 1 };
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
        let plan = self.part.plan;
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
            code.guarded(self.part.columns[group].guard, |code| code.store(state.sums[group], found, at))
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
        for (group, column) in self.part.columns.iter().enumerate() {
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
        let lanes = self.part.plan.lanes.width;
        let sums = a.sums.iter().zip(&b.sums).map(|(a, b)| weigh(code, *a, *b, lanes)).collect();
        Ok(State { most: vec![most], totals: vec![total], sums })
    }
}
