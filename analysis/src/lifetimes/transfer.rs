//! The transfer function of a block: memrefs are allocated, handed over, and freed after their last use.

use std::collections::BTreeSet;

use super::facts::{Edge, Flow, Kind, Set};
use super::solve::{Passed, Solver};
use super::state::State;
use super::{Action, Place, Take, Version};
use crate::index::{BlockId, OpId, RegionId, ValueId};
use crate::ownership::Ownership;

/// An edge of a region, and the state before it.
struct Crossing<'a> {
    region: RegionId,
    edge: &'a Edge,
    state: &'a State,
}

impl Crossing<'_> {
    /// Whether two memrefs before the edge may be the same memory.
    fn may_be_same(&self, a: ValueId, b: ValueId) -> bool {
        a == b || self.state.pairs.contains(a, b)
    }
}

impl Solver<'_> {
    pub(super) fn block(&mut self, block: BlockId) {
        let mut state = self.beginning(block);
        self.steps += state.size() + self.order.ops_of.of(block).len() as u64;
        let held: Vec<ValueId> = state.held.keys().copied().collect();
        self.release(Place::Start(block), block, -1, &held, &mut state);
        let ops = self.order.ops_of.of(block).to_vec();
        let Some((last, others)) = ops.split_last() else { return };
        for op in others {
            self.op(block, *op, &mut state);
        }
        self.terminator(block, *last, state);
    }

    fn op(&mut self, block: BlockId, op: OpId, state: &mut State) {
        if self.found.is_some() {
            self.give(block, op, state);
        }
        self.consume(op, state);
        let mut ended: BTreeSet<ValueId> = self.order.ends[op].iter().copied().collect();
        if !self.order.regions_of.of(op).is_empty() {
            self.enter(block, op, state);
            let after = self.through(op);
            for (value, own) in after.held {
                state.set(value, own);
                ended.insert(value);
            }
            state.pairs.extend(&after.pairs);
        }
        for number in self.results_of(op) {
            match self.facts.memrefs[number].kind {
                Kind::Fresh => state.set(number, Ownership::Owned),
                Kind::Given => {
                    let version = self.beside(number);
                    state.set(number, Ownership::Indicator(version));
                }
                Kind::Foreign | Kind::Alias | Kind::Passed => {}
            }
            for source in self.sources_of(number) {
                if self.may_be_freed(source) {
                    state.pairs.alias(number, source);
                }
            }
            ended.insert(number);
        }
        let near: Vec<ValueId> = ended.iter().flat_map(|v| state.pairs.of(*v)).collect();
        ended.extend(near);
        self.steps += ended.len() as u64;
        let position = i64::from(self.order.positions[op]);
        self.release(Place::After(op), block, position, &ended.into_iter().collect::<Vec<_>>(), state);
    }

    /// Whether the memref may alias a buffer that this function frees.
    fn may_be_freed(&self, value: ValueId) -> bool {
        self.facts.memrefs[value].kind != Kind::Foreign
    }

    /// Whether a memref of the region can become the holder of another one's memory.
    fn may_hold(&self, region: RegionId, value: ValueId) -> bool {
        self.facts.region_of(value) == region && self.may_be_freed(value)
    }

    /// Frees holders without a use after a point. A holder that may alias a used memref waits for it.
    fn release(&mut self, place: Place, block: BlockId, position: i64, values: &[ValueId], state: &mut State) {
        let region = self.facts.blocks[block];
        let is_live = |this: &Self, v: ValueId| this.order.is_live_after(block, position, v);
        for value in values.iter().copied() {
            if is_live(self, value) || self.facts.region_of(value) != region {
                continue;
            }
            let own = state.own(value);
            if own == Ownership::NotOwned {
                state.pairs.remove(value);
                continue;
            }
            let waits = state.pairs.of(value).any(|other| {
                self.may_hold(region, other) && state.own(other) != Ownership::Owned && is_live(self, other)
            });
            if !waits {
                state.set(value, Ownership::NotOwned);
                state.pairs.remove(value);
                self.act(place, Action::Release { value, own, to: vec![] });
            }
        }
    }

    /// Records the memrefs whose ownership can be transferred to an operation that would consume them.
    fn give(&mut self, block: BlockId, op: OpId, state: &State) {
        let (region, position) = (self.facts.blocks[block], i64::from(self.order.positions[op]));
        for candidate in self.transferable_at(op) {
            let value = candidate.value;
            let is_used = |this: &Self, v: ValueId| this.order.is_live_after(block, position, v);
            let may_be = |v: ValueId| state.pairs.contains(value, v) && state.own(v) != Ownership::Owned;
            let is_needed = is_used(self, value)
                || state.pairs.of(value).any(|v| may_be(v) && self.may_hold(region, v) && is_used(self, v))
                || candidate.others.iter().any(|v| *v == value || may_be(*v));
            let is_held = self.facts.region_of(value) == region && state.own(value) == Ownership::Owned;
            if is_held
                && !is_needed
                && let Some(found) = &mut self.found
            {
                found.transferred.insert((op, value));
            }
        }
    }

    /// Memory that the program frees loses its holder.
    fn consume(&mut self, op: OpId, state: &mut State) {
        let region = self.facts.region_of_op(op);
        for freed in self.freed_by(op) {
            let was = state.own(freed);
            state.set(freed, Ownership::NotOwned);
            let others: Vec<ValueId> = state.pairs.of(freed).collect();
            for (value, number) in others.into_iter().zip(0_u32..) {
                let had = state.own(value);
                // Two holders never alias.
                let is_other = was == Ownership::Owned;
                if had == Ownership::NotOwned || is_other || !self.may_hold(region, value) {
                    continue;
                }
                let makes = self.version(Version::Made(Place::Before(op), value, number));
                state.set(value, Ownership::Indicator(makes));
                self.act(Place::Before(op), Action::Consume { freed, taken: Take { value, had, makes } });
            }
        }
    }

    /// Forwards memrefs into the regions of an operation.
    fn enter(&mut self, block: BlockId, op: OpId, state: &mut State) {
        let (Some(flow), Some(number)) = (self.flow(op), self.flow_at[op]) else { return };
        let (region, position) = (self.facts.blocks[block], i64::from(self.order.positions[op]));
        let mut own = Vec::new();
        for (slot, source) in flow.sources.iter().enumerate() {
            let is_first = !flow.sources[..slot].contains(source);
            let outside = |this: &Self, v: ValueId| {
                this.order.is_live_after(block, position, v) || this.order.captured[op].contains(&v)
            };
            let stays = outside(self, *source)
                || state
                    .pairs
                    .of(*source)
                    .any(|v| self.may_hold(region, v) && state.own(v) != Ownership::Owned && outside(self, v));
            if !is_first || stays || self.facts.region_of(*source) != region {
                own.push(Ownership::NotOwned);
                continue;
            }
            own.push(state.own(*source));
            state.set(*source, Ownership::NotOwned);
        }
        let states = flow.targets.iter().map(|(_, values)| {
            let mut inner = State { held: Default::default(), pairs: state.pairs.clone() };
            rename(flow, values, state, &mut inner, |v| self.may_be_freed(v), |_| true);
            inner
        });
        let states = states.collect();
        if let Some(found) = &mut self.found {
            found.passed.insert(op, own.clone());
        }
        self.pass(number, &own, states);
    }

    /// The terminator of a block. One with regions forwards nothing.
    fn terminator(&mut self, block: BlockId, op: OpId, mut state: State) {
        if !self.order.regions_of.of(op).is_empty() {
            self.enter(block, op, &mut state);
            self.through(op);
            return self.leave(block, op, state);
        }
        let out: Vec<u32> = self.order.out_of.of(block).to_vec();
        for number in &out {
            let edge = self.edge(*number);
            let brought = self.across(block, edge, &state);
            self.bring(*number as usize, brought);
        }
        if out.is_empty() {
            self.leave(block, op, state);
        }
    }

    /// From the end of a block to the beginning of its successor.
    fn across(&mut self, block: BlockId, edge: &Edge, state: &State) -> State {
        let crossing = Crossing { region: self.facts.blocks[block], edge, state };
        let (mut after, moved) = self.passed(&crossing);
        let mut leaving = Vec::new();
        for (value, own) in state.held.iter().filter(|(v, _)| !moved.contains(*v)) {
            if self.waits(&crossing, &after, *value) {
                after.set(*value, *own);
            } else {
                leaving.push((*value, *own));
            }
        }
        let place = Place::Edge(edge.from, edge.index);
        let mut made = 0;
        for (value, own) in leaving {
            let takers =
                if self.stays(&crossing, value) { vec![] } else { self.takers_across(&crossing, &after, value) };
            let mut to = Vec::new();
            for (holder, shown) in takers {
                let makes = self.version(Version::Made(place, holder, made));
                made += 1;
                to.push(Take { value: shown, had: after.own(holder), makes });
                after.set(holder, Ownership::Indicator(makes));
            }
            self.act(place, Action::Release { value, own, to });
        }
        // A memref that is neither used nor a holder will not be compared with.
        let counts = |v: ValueId| {
            let memref = &self.facts.memrefs[v];
            let is_passed = memref.op.is_none() && memref.block == edge.to;
            is_passed
                || self.facts.blocks[memref.block] != crossing.region
                || self.order.live_in[edge.to].contains(&v)
                || after.held.contains_key(&v)
        };
        after.pairs = after.pairs.kept(counts);
        after
    }

    /// Whether a memref means the same before and after an edge.
    fn stays(&self, crossing: &Crossing, value: ValueId) -> bool {
        let memref = &self.facts.memrefs[value];
        self.facts.blocks[memref.block] != crossing.region
            || self.order.strictly_dominates(memref.block, crossing.edge.to)
    }

    fn is_live_across(&self, crossing: &Crossing, value: ValueId) -> bool {
        self.stays(crossing, value) && self.order.live_in[crossing.edge.to].contains(&value)
    }

    /// The state of the block arguments, and the memrefs whose ownership they took.
    fn passed(&self, crossing: &Crossing) -> (State, BTreeSet<ValueId>) {
        let Crossing { region, edge, state } = *crossing;
        let mut after = State { held: Default::default(), pairs: state.pairs.kept(|v| self.stays(crossing, v)) };
        let mut moved = BTreeSet::new();
        for (argument, source) in &edge.passes {
            let is_here = self.facts.region_of(*source) == region;
            if is_here && !self.is_live_across(crossing, *source) && moved.insert(*source) {
                after.set(*argument, state.own(*source));
            }
        }
        for (slot, (argument, source)) in edge.passes.iter().enumerate() {
            for (other, with) in &edge.passes[..slot] {
                if self.may_be_freed(*source) && (source == with || state.pairs.contains(*source, *with)) {
                    after.pairs.add(*argument, *other);
                }
            }
            let near: Vec<ValueId> = state.pairs.of(*source).chain([*source]).collect();
            for other in near.into_iter().filter(|v| self.stays(crossing, *v) && self.may_be_freed(*v)) {
                after.pairs.add(*argument, other);
            }
        }
        (after, moved)
    }

    /// Whether a memref stays held: it, or another memref of its buffer that does not own it, is used after the edge.
    fn waits(&self, crossing: &Crossing, after: &State, value: ValueId) -> bool {
        let Crossing { region, edge, state } = *crossing;
        self.stays(crossing, value)
            && (self.is_live_across(crossing, value)
                || edge.passes.iter().any(|(argument, source)| {
                    crossing.may_be_same(value, *source)
                        && after.own(*argument) != Ownership::Owned
                        && self.order.is_live_at_start(edge.to, *argument)
                })
                || state.pairs.of(value).any(|other| {
                    self.is_live_across(crossing, other)
                        && self.may_hold(region, other)
                        && state.own(other) != Ownership::Owned
                }))
    }

    /// The memrefs after an edge that may take a buffer over, each with the memref before it that is compared.
    fn takers_across(&self, crossing: &Crossing, after: &State, value: ValueId) -> Vec<(ValueId, ValueId)> {
        let Crossing { region, edge, state } = *crossing;
        let mut takers = Vec::new();
        for (argument, source) in &edge.passes {
            let is_other = after.own(*argument) == Ownership::Owned || !self.may_hold(region, *source);
            let is_used = self.order.is_live_at_start(edge.to, *argument);
            if !is_other && crossing.may_be_same(value, *source) && is_used {
                takers.push((*argument, *source));
            }
        }
        for other in state.pairs.of(value) {
            let is_other = after.own(other) == Ownership::Owned || !self.may_hold(region, other);
            // Never to what is not used: it may have been freed, and its address be that of another buffer.
            if !is_other && self.is_live_across(crossing, other) {
                takers.push((other, other));
            }
        }
        takers
    }

    /// Out of a region: to where the terminator passes memrefs, or to the caller.
    fn leave(&mut self, block: BlockId, op: OpId, mut state: State) {
        let region = self.facts.blocks[block];
        let flow = self.flow(op);
        let sources: &[ValueId] = flow.map_or(&[], |f| &f.sources);
        let mut own = Vec::new();
        let before = state.clone();
        for source in sources {
            own.push(if self.facts.region_of(*source) == region { state.own(*source) } else { Ownership::NotOwned });
            state.set(*source, Ownership::NotOwned);
        }
        let mut made = 0;
        let held: Vec<(ValueId, Ownership<u32>)> = state.held.iter().map(|(v, o)| (*v, *o)).collect();
        for (value, had) in held {
            let mut to = Vec::new();
            for (slot, source) in sources.iter().enumerate() {
                let is_other = own[slot] == Ownership::Owned || !self.may_hold(region, *source);
                // A second operand with the same source never takes the first one's buffer over.
                let is_first = !sources[..slot].contains(source);
                if is_other || !is_first || !before.pairs.contains(value, *source) {
                    continue;
                }
                let makes = self.version(Version::Made(Place::Before(op), *source, made));
                made += 1;
                to.push(Take { value: *source, had: own[slot], makes });
                own[slot] = Ownership::Indicator(makes);
            }
            self.act(Place::Before(op), Action::Release { value, own: had, to });
        }
        if let Some(found) = &mut self.found {
            found.passed.insert(op, own.clone());
        }
        let (Some(flow), Some(number)) = (flow, self.flow_at[op]) else { return };
        if flow.targets.iter().any(|(set, _)| *set == Set::Caller) {
            self.caller.insert(op, Passed { own, state: before });
            return;
        }
        let is_outside = |v: ValueId| self.facts.region_of(v) != region;
        let states = flow.targets.iter().map(|(_, values)| {
            let mut outer = State { held: Default::default(), pairs: before.pairs.kept(is_outside) };
            rename(flow, values, &before, &mut outer, |v| self.may_be_freed(v), is_outside);
            outer
        });
        let states = states.collect();
        self.pass(number, &own, states);
    }
}

/// The aliases of a flow's targets, from those of its sources.
fn rename(
    flow: &Flow,
    values: &[ValueId],
    from: &State,
    to: &mut State,
    may_be_freed: impl Fn(ValueId) -> bool,
    stays: impl Fn(ValueId) -> bool,
) {
    for (slot, (target, source)) in values.iter().zip(&flow.sources).enumerate() {
        if !may_be_freed(*source) {
            continue;
        }
        for (other, with) in values.iter().zip(&flow.sources).take(slot) {
            if source == with || from.pairs.contains(*source, *with) {
                to.pairs.add(*target, *other);
            }
        }
        for near in from.pairs.of(*source).chain([*source]).filter(|v| stays(*v) && may_be_freed(*v)) {
            to.pairs.add(*target, near);
        }
    }
}
