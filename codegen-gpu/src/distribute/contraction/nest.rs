//! The passes over the reductions: a loop for each, or one over all whole passes, which copies a pass ahead.
//!
//! Before: 3 x 3 windows over 64 channels, 16 of them per pass.
//! After: `%held = load of pass 0; scf.for %p = 0 to 36 { barrier; store of %held; barrier; load of pass %p + 1; sums; }`, where pass
//! `%p` is of the window's element `%p mod 9` and the channels from `%p floordiv 9 * 16` on.

use super::super::code::Code;
use super::super::evaluate::Evaluator;
use super::super::model::Source;
use super::axes::Extent;
use super::load::{Loaded, Stream};
use super::plan::Plan;
use super::sides::Side;
use super::stage::Fill;
use monopour_ir::{Diagnostics, Value};

/// Most elements of the next pass in the registers of an invocation.
const MOST_AHEAD: usize = 32;

/// Code for the terms of the addresses, per input, and the values of the accumulators; returns the next ones.
type Inner<'c, 'p> = dyn Fn(&mut Code<'c, '_>, &[Value<'c>], &[Value<'c>]) -> Result<Vec<Value<'c>>, Diagnostics> + 'p;

/// Context of the loops over the reductions.
pub(super) struct Nest<'c, 'p, 'm> {
    pub(super) evaluator: &'p Evaluator<'c, 'm>,
    pub(super) plan: &'p Plan<'c, 'm>,
    /// The results that it accumulates.
    pub(super) results: Vec<usize>,
    /// Per input; staged ones load from the copy. `None`: of other results.
    pub(super) streams: Vec<Option<Stream<'c, 'p>>>,
    pub(super) fills: Vec<Option<Fill<'c, 'p>>>,
    /// The reductions that are not stepped.
    pub(super) others: Vec<Extent<'c>>,
}

impl<'c> Nest<'c, '_, '_> {
    /// The sums of all passes; `initial` per accumulator.
    pub(super) fn write(&self, code: &mut Code<'c, '_>, initial: &[Value<'c>]) -> Result<Vec<Value<'c>>, Diagnostics> {
        let parts = vec![code.c(0); self.plan.choice.sides.len()];
        let step = self.plan.choice.step;
        let others: Option<Vec<i64>> = self.others.iter().map(Extent::exact).collect();
        let Some((extent, others)) = self.plan.stepped().exact().zip(others) else {
            return self.level(code, 0, &parts, initial);
        };
        let passes = extent / step * others.iter().product::<i64>();
        if passes < 2 || !self.looks_ahead() {
            return self.level(code, 0, &parts, initial);
        }
        let sums = self.ahead(code, &others, passes, initial)?;
        let whole = extent / step * step;
        let rest = code.c(whole);
        if whole == extent { Ok(sums) } else { self.rest(code, (rest, extent - whole), &parts, &sums) }
    }

    /// The last, partial pass of each iteration of the other reductions.
    fn rest(
        &self,
        code: &mut Code<'c, '_>,
        (k, count): (Value<'c>, i64),
        parts: &[Value<'c>],
        carried: &[Value<'c>],
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        self.around(code, 0, parts, carried, &|code, parts, carried| self.pass(code, parts, k, count, carried))
    }

    /// All passes, one loop for each reduction.
    fn level(
        &self,
        code: &mut Code<'c, '_>,
        depth: usize,
        parts: &[Value<'c>],
        carried: &[Value<'c>],
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        self.around(code, depth, parts, carried, &|code, parts, carried| self.stepped(code, parts, carried))
    }

    /// The loops from `depth` on around `inner`; `parts` are the outer loops' terms of the addresses, per input.
    fn around(
        &self,
        code: &mut Code<'c, '_>,
        depth: usize,
        parts: &[Value<'c>],
        carried: &[Value<'c>],
        inner: &Inner<'c, '_>,
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let Some(extent) = self.others.get(depth) else { return inner(code, parts, carried) };
        let bounds = [code.c(0), extent.value(code), code.c(1)];
        code.for_loop(bounds, carried, |code, i, carried| {
            let parts = self.with_term(code, parts, depth, i);
            self.around(code, depth + 1, &parts, carried, inner)
        })
    }

    /// The terms of the addresses with iteration `i` of another reduction.
    fn with_term(&self, code: &mut Code<'c, '_>, parts: &[Value<'c>], depth: usize, i: Value<'c>) -> Vec<Value<'c>> {
        let sides = self.plan.choice.sides.iter().zip(parts);
        let with = |(side, part): (&Side<'c>, &Value<'c>)| {
            let scaled = side.nest[depth].scale(code, i);
            code.add(*part, scaled)
        };
        sides.map(with).collect()
    }

    fn stepped(
        &self,
        code: &mut Code<'c, '_>,
        parts: &[Value<'c>],
        carried: &[Value<'c>],
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let step = self.plan.choice.step;
        let Some(extent) = self.plan.stepped().exact() else { return self.stepped_dynamic(code, parts, carried) };
        let whole = extent / step * step;
        let mut carried = carried.to_vec();
        if whole > 0 {
            let bounds = [code.c(0), code.c(whole), code.c(step)];
            carried = code.for_loop(bounds, &carried, |code, k, carried| self.pass(code, parts, k, step, carried))?;
        }
        if extent > whole {
            let k = code.c(whole);
            carried = self.pass(code, parts, k, extent - whole, &carried)?;
        }
        Ok(carried)
    }

    /// Whether what the next pass copies is held in registers while this one sums: of a word each, and few.
    fn looks_ahead(&self) -> bool {
        let slices = &self.evaluator.model.slices;
        let fills = || self.plan.choice.sides.iter().zip(&self.fills).filter_map(|(s, fill)| Some((s, fill.as_ref()?)));
        let is_word = |side: &Side| slices[side.slice].element.element_size_bytes() == Some(4);
        let held: usize = fills().map(|(_, fill)| fill.held()).sum();
        (1..=MOST_AHEAD).contains(&held) && fills().all(|(side, _)| is_word(side))
    }

    /// All whole passes in one loop, each of which loads what the next one copies; the last one loads its own again. Of
    /// neighbouring passes those over a window have most of the input in common.
    fn ahead(
        &self,
        code: &mut Code<'c, '_>,
        others: &[i64],
        passes: i64,
        carried: &[Value<'c>],
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let (zero, end, one) = (code.c(0), code.c(passes), code.c(1));
        let (parts, k) = self.terms_of(code, others, zero);
        let first = self.load_fills(code, &parts, k, true);
        let sums = carried.len();
        let inits = [carried, &first.concat()].concat();
        let results = code.for_loop([zero, end, one], &inits, |code, pass, all| {
            let (carried, held) = all.split_at(sums);
            self.store_fills(code, held)?;
            let (next, last) = (code.add_const(pass, 1), code.c(passes - 1));
            let next = code.min(next, last);
            let (parts, k) = self.terms_of(code, others, next);
            let loaded = self.load_fills(code, &parts, k, true);
            let (parts, k) = self.terms_of(code, others, pass);
            let out = self.sums(code, &parts, k, self.plan.choice.step, carried)?;
            Ok([out, loaded.concat()].concat())
        })?;
        Ok(results[..sums].to_vec())
    }

    /// The terms of the addresses of a pass, and its first iteration of the stepped reduction: the other ones are faster.
    fn terms_of(&self, code: &mut Code<'c, '_>, others: &[i64], pass: Value<'c>) -> (Vec<Value<'c>>, Value<'c>) {
        let mut parts = vec![code.c(0); self.plan.choice.sides.len()];
        let mut rest = pass;
        for (depth, extent) in others.iter().enumerate().rev() {
            let extent = code.c(*extent);
            let i = code.rem(rest, extent);
            rest = code.div(rest, extent);
            parts = self.with_term(code, &parts, depth, i);
        }
        (parts, code.mul_const(rest, self.plan.choice.step))
    }

    /// As many whole passes as fit, then single iterations.
    fn stepped_dynamic(
        &self,
        code: &mut Code<'c, '_>,
        parts: &[Value<'c>],
        carried: &[Value<'c>],
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let (extent, step) = (self.plan.stepped(), self.plan.choice.step);
        let (zero, one, by) = (code.c(0), code.c(1), code.c(step));
        let end = extent.value(code);
        let whole = code.div(end, by);
        let whole = code.mul_const(whole, step);
        let carried =
            code.for_loop([zero, whole, by], carried, |code, k, carried| self.pass(code, parts, k, step, carried))?;
        if extent.divisor() % step == 0 {
            return Ok(carried);
        }
        code.for_loop([whole, end, one], &carried, |code, k, carried| self.pass(code, parts, k, 1, carried))
    }

    /// `count` iterations for every accumulator, from `k` on.
    fn pass(
        &self,
        code: &mut Code<'c, '_>,
        parts: &[Value<'c>],
        k: Value<'c>,
        count: i64,
        carried: &[Value<'c>],
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let loaded = self.load_fills(code, parts, k, count == self.plan.choice.step);
        if !loaded.is_empty() {
            self.store_fills(code, &loaded.concat())?;
        }
        self.sums(code, parts, k, count, carried)
    }

    /// The products of a pass whose copies are there. What is read of copies alone is loaded for a few iterations at a time:
    /// each needs as many registers as the accumulators of a row and a column.
    fn sums(
        &self,
        code: &mut Code<'c, '_>,
        parts: &[Value<'c>],
        k: Value<'c>,
        count: i64,
        carried: &[Value<'c>],
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let streams =
            || self.streams.iter().zip(&self.fills).filter_map(|(stream, fill)| Some((stream.as_ref()?, fill)));
        let at_once = if streams().all(|(_, fill)| fill.is_some()) {
            streams().map(|(stream, _)| stream.iterations()).max().unwrap_or(1)
        } else {
            count
        };
        let mut sums = carried.to_vec();
        for from in (0..count).step_by(at_once.max(1) as usize) {
            sums = self.some(code, parts, (k, from, at_once.min(count - from)), &sums)?;
        }
        Ok(sums)
    }

    /// `count` iterations of a pass, the first of which is `from`.
    fn some(
        &self,
        code: &mut Code<'c, '_>,
        parts: &[Value<'c>],
        (k, from, count): (Value<'c>, i64, i64),
        carried: &[Value<'c>],
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let (evaluator, plan) = (self.evaluator, self.plan);
        let (zero, start) = (code.c(0), code.c(from));
        let streams = self.streams.iter().zip(parts).zip(&self.fills);
        let loaded: Vec<Option<Loaded>> = streams
            .map(|((stream, part), fill)| {
                let (part, k) = if fill.is_some() { (zero, start) } else { (*part, k) };
                stream.as_ref().map(|stream| stream.load(code, evaluator, plan, part, k, count))
            })
            .collect();
        let groups = plan.tile.column_groups as usize;
        let mut out = Vec::with_capacity(carried.len());
        for (i, first) in carried.chunks(self.results.len()).enumerate() {
            let mut sums = first.to_vec();
            for q in 0..count as usize {
                let mut factor = |(s, loaded): (&Option<Stream<'c, '_>>, &Option<Loaded<'c>>)| {
                    let (s, loaded) = s.as_ref().zip(loaded.as_ref())?;
                    Some(s.factor(code, plan, loaded, i / groups, i % groups, q))
                };
                let factors: Vec<Option<Value>> = self.streams.iter().zip(&loaded).map(&mut factor).collect();
                let args = self.arguments(&factors, &sums);
                let results = evaluator.apply_results(code, plan.fused.op, args, &self.results, plan.lanes)?;
                sums = results.into_iter().map(|sum| code.broadcast(sum, plan.lanes)).collect();
            }
            out.extend(sums);
        }
        Ok(out)
    }

    /// What the invocation copies for the pass at `k`, a whole one or the last, per copy. It waits for no other invocation.
    fn load_fills(
        &self,
        code: &mut Code<'c, '_>,
        parts: &[Value<'c>],
        k: Value<'c>,
        is_whole: bool,
    ) -> Vec<Vec<Value<'c>>> {
        let fills = self.fills.iter().zip(parts).filter_map(|(fill, part)| Some((fill.as_ref()?, *part)));
        fills.map(|(fill, part)| fill.load(code, self.evaluator, self.plan, (part, k), is_whole)).collect()
    }

    /// Stores it, between two barriers: the pass before must have read what is overwritten.
    fn store_fills(&self, code: &mut Code<'c, '_>, values: &[Value<'c>]) -> Result<(), Diagnostics> {
        code.barrier()?;
        let mut rest = values;
        for fill in self.fills.iter().flatten() {
            let (own, others) = rest.split_at(fill.count());
            fill.store(code, own)?;
            rest = others;
        }
        code.barrier()
    }

    /// The arguments of the op's body: inputs from memory, scalars, the accumulators.
    fn arguments(&self, factors: &[Option<Value<'c>>], sums: &[Value<'c>]) -> Vec<Option<Value<'c>>> {
        let op = self.plan.fused.op;
        let mut args: Vec<Option<Value>> = op
            .operands
            .iter()
            .map(|o| match o.source {
                Source::Scalar(value) => Some(value),
                Source::Slice(_) => None,
            })
            .collect();
        for (side, factor) in self.plan.choice.sides.iter().zip(factors) {
            args[side.operand] = *factor;
        }
        for (result, sum) in self.results.iter().zip(sums) {
            args[op.num_inputs + result] = Some(*sum);
        }
        args
    }
}
