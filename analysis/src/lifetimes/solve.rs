//! The fixed point over blocks and regions.

use std::collections::{BTreeMap, BTreeSet};

use super::facts::{Edge, Flow, Kind, LifetimeFacts, Set, Transferable};
use super::graph::Order;
use super::state::State;
use super::{Action, Lifetimes, Place, Version};
use crate::index::{BlockId, Id, IndexVec, Lists, OpId, RegionId, ValueId};
use crate::ownership::Ownership;

/// How often a block's entry state may change freely before it only rises. Nests of loops need a few rounds.
const PATIENCE: u32 = 6;

impl LifetimeFacts {
    /// Decide.
    pub fn decide(&self) -> Lifetimes {
        let mut solver = Solver::new(self);
        solver.solve();
        solver.record()
    }
}

/// The state that a flow forwards into a region, or out of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Passed {
    pub own: Vec<Ownership<u32>>,
    pub state: State,
}

pub(super) struct Solver<'a> {
    pub facts: &'a LifetimeFacts,
    pub order: Order,
    results: Lists<OpId, ValueId>,
    sources: Lists<ValueId, ValueId>,
    frees: Lists<OpId, ValueId>,
    transferable: BTreeMap<OpId, Vec<&'a Transferable>>,
    /// Number of the flow of an operation.
    pub flow_at: IndexVec<OpId, Option<u32>>,
    /// The entry state of each block.
    begins: IndexVec<BlockId, Option<State>>,
    /// The state along each edge.
    brought: Vec<Option<State>>,
    /// The state along each flow, by target.
    flowed: Vec<Vec<Option<State>>>,
    /// Flows that end in a region, by flow and number of the target.
    into_region: IndexVec<RegionId, Vec<(u32, usize)>>,
    into_results: IndexVec<OpId, Vec<(u32, usize)>>,
    /// Blocks at which a memref needs an indicator, because it is a holder on some paths only. Never removed.
    meets: BTreeSet<(BlockId, ValueId)>,
    beside: BTreeSet<ValueId>,
    dirty: IndexVec<RegionId, BTreeSet<(u32, BlockId)>>,
    /// How often the entry state of each block has changed.
    visits: IndexVec<BlockId, u32>,
    versions: BTreeMap<Version, u32>,
    pub caller: BTreeMap<OpId, Passed>,
    pub steps: u64,
    /// The decisions, in the last round.
    pub found: Option<Lifetimes>,
}

impl<'a> Solver<'a> {
    fn new(facts: &'a LifetimeFacts) -> Self {
        let mut flow_at = IndexVec::filled(None, facts.ops.len());
        let mut into_region = IndexVec::filled(Vec::new(), facts.regions.len());
        let mut into_results = IndexVec::filled(Vec::new(), facts.ops.len());
        for (flow, number) in facts.flows.iter().zip(0_u32..) {
            flow_at[flow.at] = Some(number);
            for (target, (set, _)) in flow.targets.iter().enumerate() {
                match set {
                    Set::Region(region) => into_region[*region].push((number, target)),
                    Set::Results(op) => into_results[*op].push((number, target)),
                    Set::Caller => {}
                }
            }
        }
        let mut transferable: BTreeMap<OpId, Vec<&Transferable>> = BTreeMap::new();
        facts.transferable.iter().for_each(|(op, candidate)| transferable.entry(*op).or_default().push(candidate));
        let results: Vec<_> = facts.memrefs.iter_enumerated().filter_map(|(v, m)| Some((m.op?, v))).collect();
        Self {
            facts,
            order: Order::new(facts),
            results: Lists::group(facts.ops.len(), &results),
            sources: Lists::group(facts.memrefs.len(), &facts.aliases),
            frees: Lists::group(facts.ops.len(), &facts.frees),
            transferable,
            flow_at,
            begins: IndexVec::filled(None, facts.blocks.len()),
            brought: vec![None; facts.edges.len()],
            flowed: facts.flows.iter().map(|flow| vec![None; flow.targets.len()]).collect(),
            into_region,
            into_results,
            meets: BTreeSet::new(),
            beside: BTreeSet::new(),
            dirty: IndexVec::filled(BTreeSet::new(), facts.regions.len()),
            visits: IndexVec::filled(0, facts.blocks.len()),
            versions: BTreeMap::new(),
            caller: BTreeMap::new(),
            steps: 0,
            found: None,
        }
    }

    fn solve(&mut self) {
        let region = RegionId::new(0);
        let Some(&entry) = self.order.blocks_of.of(region).first() else { return };
        let mut state = State::default();
        for (value, memref) in self.facts.memrefs.iter_enumerated() {
            if memref.op.is_none() && memref.block == entry && memref.kind == Kind::Fresh {
                state.set(value, Ownership::Owned);
            }
        }
        self.begins[entry] = Some(state);
        self.mark(entry);
        self.region(region);
    }

    fn mark(&mut self, block: BlockId) {
        if let Some(rank) = self.order.rank[block] {
            self.dirty[self.facts.blocks[block]].insert((rank, block));
        }
    }

    /// Processes the blocks of a region until nothing changes.
    fn region(&mut self, region: RegionId) {
        while let Some((_, block)) = self.dirty[region].pop_first() {
            self.block(block);
        }
    }

    /// The entry state of a block.
    pub fn beginning(&self, block: BlockId) -> State {
        self.begins[block].clone().unwrap_or_default()
    }

    pub fn version(&mut self, version: Version) -> u32 {
        let next = u32::try_from(self.versions.len()).unwrap_or(u32::MAX);
        *self.versions.entry(version).or_insert(next)
    }

    pub fn act(&mut self, place: Place, action: Action) {
        if let Some(found) = &mut self.found {
            found.actions.push((place, action));
        }
    }

    /// Sets the state along an edge.
    pub fn bring(&mut self, number: usize, state: State) {
        if self.found.is_some() || self.brought[number].as_ref() == Some(&state) {
            return;
        }
        self.brought[number] = Some(state);
        let block = self.facts.edges[number].to;
        let into: Vec<u32> = self.order.into.of(block).to_vec();
        let states: Vec<State> = into.iter().filter_map(|e| self.brought[*e as usize].clone()).collect();
        let mut values: BTreeSet<ValueId> = states.iter().flat_map(|s| s.held.keys().copied()).collect();
        let all = (block, ValueId::new(0))..=(block, ValueId::new(u32::MAX));
        values.extend(self.meets.range(all).map(|(_, value)| *value));
        self.steps += states.iter().map(State::size).sum::<u64>();
        let mut joined = State::default();
        for value in values {
            let first = states[0].own(value);
            let own = if !self.meets.contains(&(block, value)) && states.iter().all(|s| s.own(value) == first) {
                first
            } else {
                self.meet(block, value)
            };
            joined.set(value, own);
        }
        states.iter().for_each(|s| joined.pairs.extend(&s.pairs));
        self.begin(block, joined);
    }

    fn begin(&mut self, block: BlockId, mut state: State) {
        if let Some(old) = self.begins[block].clone() {
            // The state of one memref depends on that of others, and may oscillate: then it stays
            // at its worst.
            if self.visits[block] > PATIENCE {
                state.pairs.extend(&old.pairs);
                let values: BTreeSet<ValueId> = state.held.keys().chain(old.held.keys()).copied().collect();
                for value in values.into_iter().filter(|v| state.own(*v) != old.own(*v)).collect::<Vec<_>>() {
                    let indicator = self.meet(block, value);
                    state.set(value, indicator);
                }
            }
            if old == state {
                return;
            }
        }
        self.visits[block] += 1;
        self.begins[block] = Some(state);
        self.mark(block);
    }

    /// Gives the memref an indicator at the beginning of the block.
    fn meet(&mut self, block: BlockId, value: ValueId) -> Ownership<u32> {
        let memref = &self.facts.memrefs[value];
        let is_entry = self.order.blocks_of.of(self.facts.blocks[block]).first() == Some(&block);
        if is_entry && memref.op.is_none() && memref.block == block {
            return Ownership::Indicator(self.beside(value));
        }
        self.meets.insert((block, value));
        Ownership::Indicator(self.version(Version::Argument(block, value)))
    }

    /// Sets the state along a flow, for each target.
    pub fn pass(&mut self, flow: u32, own: &[Ownership<u32>], states: Vec<State>) {
        if self.found.is_some() {
            return;
        }
        let facts = self.facts;
        let it = &facts.flows[flow as usize];
        for (target, mut state) in states.into_iter().enumerate() {
            let (set, values) = &it.targets[target];
            for (value, own) in values.iter().zip(own) {
                state.set(*value, *own);
            }
            if self.flowed[flow as usize][target].as_ref() == Some(&state) {
                continue;
            }
            self.flowed[flow as usize][target] = Some(state);
            if let Set::Region(region) = set
                && let Some(&entry) = self.order.blocks_of.of(*region).first()
            {
                let sources = self.into_region[*region].clone();
                let joined = self.join(&sources);
                self.begin(entry, joined);
            }
        }
    }

    /// Joins the states of several flows to the same memrefs.
    fn join(&mut self, sources: &[(u32, usize)]) -> State {
        let mut joined = State::default();
        let mut known: BTreeMap<ValueId, Vec<Ownership<u32>>> = BTreeMap::new();
        for (flow, target) in sources {
            let Some(state) = &self.flowed[*flow as usize][*target] else { continue };
            self.steps += state.size();
            joined.pairs.extend(&state.pairs);
            for value in &self.facts.flows[*flow as usize].targets[*target].1 {
                known.entry(*value).or_default().push(state.own(*value));
            }
        }
        for (value, all) in known {
            let is_known = all.iter().all(|own| *own == all[0] && !matches!(own, Ownership::Indicator(_)));
            let own = if is_known && !self.beside.contains(&value) {
                all[0]
            } else {
                Ownership::Indicator(self.beside(value))
            };
            joined.set(value, own);
        }
        joined
    }

    /// Processes the regions of an operation until nothing changes; returns the state of its results.
    pub fn through(&mut self, op: OpId) -> State {
        if self.found.is_none() {
            let regions = self.order.regions_of.of(op).to_vec();
            while let Some(region) = regions.iter().find(|r| !self.dirty[**r].is_empty()) {
                self.region(*region);
            }
        }
        let sources = self.into_results[op].clone();
        self.join(&sources)
    }

    /// Processes all blocks once more, and records the decisions.
    fn record(mut self) -> Lifetimes {
        self.found = Some(Lifetimes::default());
        let mut order = Vec::new();
        for region in self.facts.regions.ids() {
            let mut blocks = self.order.blocks_of.of(region).to_vec();
            blocks.retain(|block| self.begins[*block].is_some());
            blocks.sort_by_key(|block| self.order.rank[*block]);
            order.push(blocks);
        }
        for block in order.iter().flatten() {
            self.block(*block);
        }
        let mut found = self.found.take().unwrap_or_default();
        found.order = order;
        found.steps = self.steps;
        for (block, value) in &self.meets {
            let Some(version) = self.versions.get(&Version::Argument(*block, *value)) else { continue };
            let is_used = self.begins[*block].as_ref().is_some_and(|s| s.own(*value) == Ownership::Indicator(*version));
            if is_used {
                found.block_arguments.entry(*block).or_default().push((*value, *version));
            }
        }
        for (number, edge) in self.facts.edges.iter().enumerate() {
            let (Some(added), Some(state)) = (found.block_arguments.get(&edge.to), &self.brought[number]) else {
                continue;
            };
            let own = added.iter().map(|(value, _)| state.own(*value)).collect();
            found.edge_operands.insert((edge.from, edge.index), own);
        }
        for value in &self.beside {
            found.beside.insert(*value, self.versions[&Version::Beside(*value)]);
        }
        self.results(&mut found);
        found.versions = vec![Version::Beside(ValueId::new(0)); self.versions.len()];
        for (version, number) in &self.versions {
            found.versions[*number as usize] = *version;
        }
        found
    }

    /// The ownership of the function's results, over all paths that return.
    fn results(&self, found: &mut Lifetimes) {
        let count = self.caller.values().map(|p| p.own.len()).max().unwrap_or(0);
        let arguments: BTreeSet<ValueId> = self
            .facts
            .memrefs
            .iter_enumerated()
            .filter(|(_, m)| m.op.is_none() && m.block.index() == 0)
            .map(|(value, _)| value)
            .collect();
        let sources_of_all = self.facts.origins();
        for slot in 0..count {
            let all: BTreeSet<Ownership<u32>> = self.caller.values().filter_map(|p| p.own.get(slot).copied()).collect();
            let own = match (all.first(), all.len()) {
                (Some(own @ (Ownership::NotOwned | Ownership::Owned)), 1) => *own,
                // The number does not matter here.
                _ => Ownership::Indicator(0),
            };
            found.results.push(own);
            let sources: Vec<ValueId> = self.caller.keys().filter_map(|op| self.source_of(*op, slot)).collect();
            let origins = sources_of_all.of(&sources);
            found.result_aliases.push(origins.into_iter().filter(|v| arguments.contains(v)).collect());
            for other in 0..slot {
                let may_be =
                    |(op, passed): (&OpId, &Passed)| match (self.source_of(*op, slot), self.source_of(*op, other)) {
                        (Some(a), Some(b)) => a == b || passed.state.pairs.contains(a, b),
                        _ => false,
                    };
                if self.caller.iter().any(may_be) {
                    found.result_pairs.push((other, slot));
                }
            }
        }
    }

    fn source_of(&self, op: OpId, slot: usize) -> Option<ValueId> {
        self.flow(op)?.sources.get(slot).copied()
    }

    pub fn results_of(&self, op: OpId) -> Vec<ValueId> {
        self.results.of(op).to_vec()
    }

    pub fn sources_of(&self, value: ValueId) -> Vec<ValueId> {
        self.sources.of(value).to_vec()
    }

    pub fn freed_by(&self, op: OpId) -> Vec<ValueId> {
        self.frees.of(op).to_vec()
    }

    pub fn transferable_at(&self, op: OpId) -> Vec<&'a Transferable> {
        self.transferable.get(&op).cloned().unwrap_or_default()
    }

    /// The number of the indicator beside a memref.
    pub fn beside(&mut self, value: ValueId) -> u32 {
        self.beside.insert(value);
        self.version(Version::Beside(value))
    }

    pub fn flow(&self, op: OpId) -> Option<&'a Flow> {
        self.flow_at[op].map(|number| &self.facts.flows[number as usize])
    }

    pub fn edge(&self, number: u32) -> &'a Edge {
        &self.facts.edges[number as usize]
    }
}
