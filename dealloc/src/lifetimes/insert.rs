//! Insert the decided frees, comparisons, and indicators beside memrefs.

mod passing;

use monopour_ir::ops;
use std::collections::{BTreeSet, HashMap};

use monopour_analysis::index::{BlockId, Id, OpId, RegionId, ValueId};
use monopour_analysis::lifetimes::{Action, Flow, Lifetimes, Place, Set, Take, Version};
use monopour_analysis::ownership::Ownership;
use monopour_contract::attributes;
use monopour_ir::{Attr, Diagnostics, InsertionPoint, Location, Op, Rewriter, Value};
use tracing::trace;

use super::collect::Collected;
use super::{Decided, Summary, compare};
use crate::Stats;

pub(super) fn run(decided: Decided, stats: &mut Stats) -> Result<(), Diagnostics> {
    let Decided { collected, lifetimes, summary } = decided;
    stats.steps += lifetimes.steps;
    let mut insert = Insert::new(collected, lifetimes, summary, stats);
    insert.mark_calls();
    insert.region(RegionId::new(0))?;
    insert.signature();
    insert.erase_dropped()
}

struct Insert<'c, 'a> {
    rw: Rewriter<'c>,
    collected: Collected<'c>,
    lifetimes: Lifetimes,
    summary: Option<Summary>,
    stats: &'a mut Stats,
    actions: HashMap<Place, Vec<Action>>,
    /// The operations of each block.
    ops_of: Vec<Vec<OpId>>,
    /// The value of each indicator, once created.
    indicators: Vec<Option<Value<'c>>>,
    /// For the memrefs forwarded to a region's arguments, or to an op's results: the positions with an indicator.
    slots: HashMap<RegionId, Vec<usize>>,
    result_slots: HashMap<OpId, Vec<usize>>,
    /// Numbers of edges and flows by operation.
    edge_at: HashMap<(OpId, u32), usize>,
    flow_at: HashMap<OpId, usize>,
    /// The number of predecessors of each block, and of its original arguments.
    entering: Vec<usize>,
    arguments: Vec<usize>,
}

impl<'c, 'a> Insert<'c, 'a> {
    fn new(collected: Collected<'c>, mut lifetimes: Lifetimes, summary: Option<Summary>, stats: &'a mut Stats) -> Self {
        let mut actions: HashMap<Place, Vec<Action>> = HashMap::new();
        for (place, action) in std::mem::take(&mut lifetimes.actions) {
            actions.entry(place).or_default().push(action);
        }
        let mut ops_of = vec![Vec::new(); collected.blocks.len()];
        for number in 0..collected.ops.len() {
            let id = OpId::from_index(number);
            ops_of[collected.facts.block_of(id).index()].push(id);
        }
        let (mut slots, mut result_slots) = (HashMap::new(), HashMap::new());
        for flow in collected.facts.flows() {
            let is_beside = |slot: &usize| {
                flow.targets
                    .iter()
                    .any(|(_, values)| values.get(*slot).is_some_and(|v| lifetimes.beside.contains_key(v)))
            };
            let found: Vec<usize> = (0..flow.sources.len()).filter(is_beside).collect();
            for (set, _) in &flow.targets {
                match set {
                    Set::Region(region) => drop(slots.insert(*region, found.clone())),
                    Set::Results(op) => drop(result_slots.insert(*op, found.clone())),
                    Set::Caller => {}
                }
            }
        }
        let mut entering = vec![0; collected.blocks.len()];
        collected.facts.edges().iter().for_each(|edge| entering[edge.to.index()] += 1);
        let edges = collected.facts.edges().iter().enumerate();
        let flows = collected.facts.flows().iter().enumerate();
        Self {
            edge_at: edges.map(|(number, edge)| ((edge.from, edge.index), number)).collect(),
            flow_at: flows.map(|(number, flow)| (flow.at, number)).collect(),
            rw: Rewriter::new(collected.function.context()),
            indicators: vec![None; lifetimes.versions.len()],
            arguments: collected.blocks.iter().map(|b| b.num_args()).collect(),
            collected,
            lifetimes,
            summary,
            stats,
            actions,
            ops_of,
            slots,
            result_slots,
            entering,
        }
    }

    /// Later passes have to know which calls free.
    fn mark_calls(&mut self) {
        for (id, operands) in std::mem::take(&mut self.collected.handed_over) {
            let numbers = Attr::dense_i32(self.rw.context(), &operands);
            self.rw.set_attr(self.op_of(id), attributes::DONATE, numbers);
        }
    }

    /// Erases replaced frees. They stay until the end, as places are right before an operation.
    fn erase_dropped(&mut self) -> Result<(), Diagnostics> {
        for id in std::mem::take(&mut self.collected.dropped).into_iter().rev() {
            let op = self.op_of(id);
            for result in op.results().into_iter().filter(|r| !r.uses().is_empty()) {
                // Its results say whether memory is still to be freed.
                self.rw.set_point(InsertionPoint::Before(op));
                let nothing = self.rw.const_bool(false, op.location());
                self.rw.replace_all_uses(result, nothing);
            }
            let around = op.parent();
            self.rw.erase(op);
            self.erase_empty(around);
        }
        Ok(())
    }

    /// Erases an `scf.if` that only held frees, with its unused operands.
    fn erase_empty(&mut self, op: Option<Op<'c>>) {
        let is_empty = |op: &Op<'c>| {
            let mut blocks = op.regions().into_iter().flat_map(|region| region.blocks());
            op.is(ops::scf::IF) && op.num_results() == 0 && blocks.all(|block| block.ops().len() == 1)
        };
        let mut next = op;
        while let Some(op) = next.filter(is_empty) {
            next = op.parent();
            self.rw.erase(op);
        }
    }

    fn op_of(&self, id: OpId) -> Op<'c> {
        self.collected.ops[id.index()]
    }

    fn value(&self, id: ValueId) -> Value<'c> {
        self.collected.values[id.index()]
    }

    fn flow(&self, id: OpId) -> Option<Flow> {
        self.flow_at.get(&id).map(|number| self.collected.facts.flows()[*number].clone())
    }

    fn region(&mut self, region: RegionId) -> Result<(), Diagnostics> {
        let all = self.collected.regions[region.index()].clone();
        for block in &all {
            let added = self.lifetimes.block_arguments.get(block).cloned().unwrap_or_default();
            for (_, version) in added {
                let (block, loc) = (self.collected.blocks[block.index()], self.collected.function.location());
                let bit = compare::bit(&self.rw);
                self.indicators[version as usize] = Some(self.rw.add_block_arg(block, bit, loc));
            }
        }
        let reached = self.lifetimes.order[region.index()].clone();
        for block in &reached {
            self.block(*block)?;
        }
        // Unreachable blocks are no paths, but must get matching operands.
        let reached: BTreeSet<BlockId> = reached.into_iter().collect();
        for block in all.iter().filter(|b| !reached.contains(b)) {
            if let Some(last) = self.ops_of[block.index()].last().copied() {
                self.terminator(last)?;
            }
        }
        Ok(())
    }

    fn block(&mut self, block: BlockId) -> Result<(), Diagnostics> {
        let ops = self.ops_of[block.index()].clone();
        let Some(first) = self.collected.blocks[block.index()].first_op() else { return Ok(()) };
        self.act(Place::Start(block), first)?;
        for (position, id) in ops.iter().enumerate() {
            let is_last = position + 1 == ops.len();
            self.act(Place::Before(*id), self.op_of(*id))?;
            self.extend(*id)?;
            for region in self.collected.regions_of.get(id).cloned().unwrap_or_default() {
                self.region(region)?;
            }
            if is_last {
                return self.terminator(*id);
            }
            let next = self.op_of(*id).next().expect("invariant: a terminator comes last");
            self.act(Place::After(*id), next)?;
        }
        Ok(())
    }

    /// Inserts the actions of a place, right before an operation.
    fn act(&mut self, place: Place, before: Op<'c>) -> Result<(), Diagnostics> {
        for action in self.actions.remove(&place).unwrap_or_default() {
            self.rw.set_point(InsertionPoint::Before(before));
            match action {
                Action::Release { value, own, to } => self.release(before, value, own, &to)?,
                Action::Consume { freed, taken } => {
                    let loc = before.location();
                    let (freed, taken_from) = (self.value(freed), self.value(taken.value));
                    let same = compare::same(&mut self.rw, loc, freed, taken_from)?;
                    let other = compare::not(&mut self.rw, loc, same)?;
                    let had = self.unless_always(loc, taken.had)?;
                    let has = compare::and(&mut self.rw, loc, had, other)?;
                    self.indicators[taken.makes as usize] = Some(has);
                }
            }
        }
        Ok(())
    }

    fn release(&mut self, before: Op<'c>, value: ValueId, own: Ownership<u32>, to: &[Take]) -> Result<(), Diagnostics> {
        let (loc, memref) = (before.location(), self.value(value));
        let made = || memref.defining_op().map_or(self.collected.function.location(), Op::location);
        let condition = if own == Ownership::Owned { "" } else { ", if it is owned there" };
        trace!(target: "dealloc", "{}: freed before {} at {loc}{condition}", made(), before.name());
        self.stats.deallocs += 1;
        let mut left = self.unless_always(loc, own)?;
        for take in to {
            let other = self.value(take.value);
            let same = compare::same(&mut self.rw, loc, memref, other)?;
            let takes = compare::and(&mut self.rw, loc, left, same)?;
            let has = match take.had {
                Ownership::NotOwned => takes,
                had => {
                    let had = self.indicator(loc, had)?;
                    compare::or(&mut self.rw, loc, had, takes)?
                }
            };
            self.indicators[take.makes as usize] = Some(has);
            let other = compare::not(&mut self.rw, loc, same)?;
            left = Some(compare::and(&mut self.rw, loc, left, other)?);
        }
        compare::free(&mut self.rw, before, memref, left)
    }

    /// An indicator as a value; `None` for one that is always true.
    fn unless_always(&mut self, loc: Location<'c>, own: Ownership<u32>) -> Result<Option<Value<'c>>, Diagnostics> {
        if own == Ownership::Owned { Ok(None) } else { self.indicator(loc, own).map(Some) }
    }

    /// An indicator as a value, at the insertion point.
    fn indicator(&mut self, loc: Location<'c>, own: Ownership<u32>) -> Result<Value<'c>, Diagnostics> {
        match own {
            Ownership::NotOwned => Ok(self.rw.const_bool(false, loc)),
            Ownership::Owned => Ok(self.rw.const_bool(true, loc)),
            Ownership::Indicator(version) => {
                let found = self.indicators[version as usize];
                Ok(found.unwrap_or_else(|| {
                    let how: &Version = &self.lifetimes.versions[version as usize];
                    unreachable!("invariant: an indicator is made before it is used: {how:?}")
                }))
            }
        }
    }
}
