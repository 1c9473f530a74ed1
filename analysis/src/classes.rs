//! Alias classes, indexed so that the test of a use is cheap.
//!
//! Putting a use in place merges the classes of its value and of the values that alias it.
//! Three facts make the test cheap.
//! 1. Whether a read and a write conflict is fixed before anything is decided.
//! 2. Reads count whether or not their use is in place; only writes enter as they are accepted.
//! 3. Classes only merge.
//!
//! Invariant: no class contains a conflicting pair, a write beside a value that is not writable, or a read beside a
//! write that parallel iterations must not share. It holds at first (no writes) and each accepted use was tested.
//! So only pairs *across* classes, and those of the new write itself, have to be tested; and two classes that cannot merge
//! never can, which is cached.
//!
//! A class of up to [`SMALL`] reads or writes is a list; a larger one has a tree ([`crate::trees`]).
//! With n uses and nesting depth d: facts O(n d), merges O(n log n) queries of O(log n), usually O(n) queries.
//! Cycles of blocks add the blocks of a cycle for each block on it with a definition.

use std::collections::HashMap;

use crate::alias_sets::AliasSets;
use crate::definitions::{Definitions, Summary};
use crate::dominance::Structure;
use crate::equivalence::copy_for;
use crate::facts::Facts;
use crate::footprints::Footprints;
use crate::forest::Range;
use crate::index::{IndexVec, OpId, OperandId, ValueId};
use crate::intervals::Intervals;
use crate::placement::{ConflictTest, Copy, Options, Reason, Strategy};
use crate::subsets::Subsets;
use crate::trees::{NONE, Root, Trees};

mod rules;

/// Lists of up to this many uses are scanned: faster than a tree, and most classes stay below.
pub(crate) const SMALL: usize = 8;

/// Operations with more tensor operands than this are looked up by class instead of scanned.
const WIDE: usize = 8;

/// Tests of single pairs per use, all uses together: an index has no footprints, so a disjoint hit starts a scan. Beyond that
/// disjoint uses conflict, which only costs copies.
const SCANS: u64 = 64;

/// The reads or the writes of a class.
#[derive(Clone, Default, Debug)]
struct Members {
    list: Vec<OperandId>,
    /// Built once the list is long. There is a class per value, and few ever have it.
    index: Option<Box<Index>>,
}

/// The index of a long list.
#[derive(Clone, Debug)]
struct Index {
    /// The tree over the list.
    root: Root,
    /// Members on operations with many operands, by operation.
    by_op: HashMap<OpId, Vec<OperandId>>,
    /// Reads by the operation of their first definition, for writes of that operation, which the tree does not cover.
    by_definition: HashMap<OpId, Vec<OperandId>>,
}

impl Index {
    fn new() -> Box<Self> {
        Box::new(Self { root: NONE, by_op: HashMap::new(), by_definition: HashMap::new() })
    }
}

#[derive(Clone, Default, Debug)]
struct Class {
    reads: Members,
    writes: Members,
    /// A value that is not writable.
    frozen: Option<ValueId>,
    /// A write to a buffer that parallel iterations must not share.
    shared: Option<OperandId>,
    /// Classes that this one cannot merge with.
    failures: HashMap<ValueId, Reason>,
    /// The reason why the class should not exist; only if its members were forced together.
    forced: Option<Reason>,
}

/// Alias classes with the indexed test.
pub(crate) struct Classes<'a> {
    facts: &'a Facts,
    structure: Structure,
    definitions: Definitions,
    subsets: Subsets,
    intervals: Intervals,
    /// What uses touch, if that counts.
    footprints: Option<Footprints>,
    /// Tests of pairs that may still be made where an index has none but disjoint ones.
    scans: u64,
    check_parallel_regions: bool,
    unordered_graphs: bool,
    small: usize,
    /// Operations with a write that defines no single value.
    is_odd: IndexVec<OpId, bool>,
    in_place: IndexVec<OperandId, bool>,
    sets: AliasSets,
    classes: IndexVec<ValueId, Class>,
    read_trees: Trees,
    write_trees: Trees,
    steps: u64,
}

impl<'a> Classes<'a> {
    pub fn new(facts: &'a Facts, options: &Options, small: usize) -> Self {
        let structure = Structure::new(facts);
        let definitions = Definitions::new(facts, &structure);
        let summary = |operand: OperandId| definitions.summaries[facts.operands()[operand].value];
        let intervals = Intervals::new(facts, &structure, options.unordered_graph_regions, summary);
        let is_odd = facts
            .ops()
            .ids()
            .map(|op| {
                let mut writes = facts.operands_of(op).iter().filter(|&&id| facts.operands()[id].writes);
                let [only] = facts.results_of(op) else { return !facts.results_of(op).is_empty() };
                writes.any(|&id| facts.made_by(id) != Some(*only))
            })
            .collect();
        let last = u32::try_from(facts.ops().len()).unwrap_or(u32::MAX);
        let mut this = Self {
            facts,
            subsets: Subsets::new(facts),
            structure,
            definitions,
            intervals,
            footprints: if options.strategy == Strategy::Minimal { Footprints::new(facts) } else { None },
            scans: SCANS * (facts.operands().len() as u64 + 1),
            check_parallel_regions: options.check_parallel_regions,
            unordered_graphs: options.unordered_graph_regions,
            small,
            is_odd,
            in_place: IndexVec::filled(false, facts.operands().len()),
            sets: AliasSets::new(facts.values().len()),
            classes: IndexVec::new(),
            read_trees: Trees::new(last),
            write_trees: Trees::new(last),
            steps: 0,
        };
        this.classes = facts.values().ids().map(|value| this.single(value)).collect();
        this
    }

    /// As at first: no use is in place. Steps go on.
    pub fn restart(&mut self) {
        self.steps += self.read_trees.steps + self.write_trees.steps;
        let last = u32::try_from(self.facts.ops().len()).unwrap_or(u32::MAX);
        (self.read_trees, self.write_trees) = (Trees::new(last), Trees::new(last));
        self.in_place = IndexVec::filled(false, self.facts.operands().len());
        self.sets = AliasSets::new(self.facts.values().len());
        self.scans = SCANS * (self.facts.operands().len() as u64 + 1);
        self.classes = self.facts.values().ids().map(|value| self.single(value)).collect();
    }

    /// The facts that it decides on.
    pub const fn facts(&self) -> &'a Facts {
        self.facts
    }

    /// The copy that an operand needs if it is not in place.
    pub fn copy_for(&self, operand: OperandId) -> Copy {
        copy_for(self.facts, operand, self.summary(operand).any)
    }

    /// Whether parallel iterations must not share what the write stores to, if something reads it.
    pub fn must_not_share(&self, write: OperandId) -> bool {
        self.check_parallel_regions && self.is_shared_by_iterations(write)
    }

    /// The class of one value: its reads, in place or not, and no writes yet.
    fn single(&mut self, value: ValueId) -> Class {
        let is_read = |id: &&OperandId| self.facts.operands()[**id].counts_as_read;
        let list: Vec<_> = self.facts.uses(value).iter().filter(is_read).copied().collect();
        let mut reads = Members { list, index: None };
        self.index_long(&mut reads, true);
        let frozen = Some(value).filter(|&value| !self.facts.values()[value].info.buffer.writable);
        Class { reads, frozen, ..Class::default() }
    }

    fn summary(&self, read: OperandId) -> &Summary {
        &self.definitions.summaries[self.facts.operands()[read].value]
    }

    fn position(&self, operand: OperandId) -> u32 {
        self.facts.span(self.facts.operands()[operand].op).first
    }

    // ---- Indices of long lists. ----

    /// Indexes the reads or the writes of a class, if they are many and have no index yet.
    fn index_long(&mut self, members: &mut Members, reads: bool) {
        if members.list.len() > self.small && members.index.is_none() {
            let mut index = Index::new();
            for &operand in &members.list {
                self.index_member(&mut index, operand, reads);
            }
            members.index = Some(index);
        }
    }

    fn index_member(&mut self, index: &mut Index, operand: OperandId, reads: bool) {
        if reads { self.index_read(index, operand) } else { self.index_write(index, operand) }
    }

    fn index_read(&mut self, reads: &mut Index, read: OperandId) {
        let used = self.facts.operands()[read];
        let exempt = self.subsets.overwritten_by(self.facts, read);
        let (colour, number) = (used.value.number(), read.number());
        for &span in self.intervals.of(read) {
            self.read_trees.add_read(&mut reads.root, span, exempt, colour, number);
        }
        if let Some((op, _)) = self.summary(read).first_op
            && self.is_odd[op]
        {
            reads.by_definition.entry(op).or_default().push(read);
        }
        if self.facts.operands_of(used.op).len() > WIDE {
            reads.by_op.entry(used.op).or_default().push(read);
        }
    }

    fn index_write(&mut self, writes: &mut Index, write: OperandId) {
        let used = self.facts.operands()[write];
        let (value, colour) = (self.subsets.number(used.value), self.colour_of_write(write));
        self.write_trees.add_write(&mut writes.root, self.position(write), value, colour, write.number());
        if self.facts.operands_of(used.op).len() > WIDE {
            writes.by_op.entry(used.op).or_default().push(write);
        }
    }

    // ---- Queries. ----

    /// A write of the class that conflicts with the read, by the index of the class.
    fn find_write(&mut self, class: ValueId, read: OperandId) -> Option<OperandId> {
        let mut steps = 0;
        let writes = &self.classes[class].writes;
        let Some(index) = &writes.index else {
            let hit = writes.list.iter().copied().find(|&write| self.is_conflict(read, write, &mut steps));
            self.steps += steps;
            return hit;
        };
        let (root, colour) = (index.root, self.facts.operands()[read].value.number());
        let exempt: Option<Range> = self.subsets.overwritten_by(self.facts, read);
        for &span in self.intervals.of(read) {
            if let Some(write) = self.write_trees.find_write(root, span, exempt, colour).map(OperandId::new) {
                return if self.are_excused(read, write) { self.scan_writes(class, read, write) } else { Some(write) };
            }
        }
        let first = self.summary(read).first_op.map(|(op, _)| op).filter(|&op| self.is_odd[op]);
        let special: Vec<_> = [Some(self.facts.operands()[read].op), first].into_iter().flatten().collect();
        for op in special {
            let candidates = self.members_on(class, op, false);
            let hit = candidates.into_iter().find(|&write| self.is_conflict(read, write, &mut steps));
            self.steps += std::mem::take(&mut steps);
            if hit.is_some() {
                return hit;
            }
        }
        None
    }

    /// A read of the class that conflicts with the write, by the index of the class.
    fn find_read(&mut self, class: ValueId, write: OperandId) -> Option<OperandId> {
        let mut steps = 0;
        let reads = &self.classes[class].reads;
        let Some(index) = &reads.index else {
            let hit = reads.list.iter().copied().find(|&read| self.is_conflict(read, write, &mut steps));
            self.steps += steps;
            return hit;
        };
        let stored = self.facts.operands()[write];
        let (value, colour) = (self.subsets.number(stored.value), self.colour_of_write(write));
        if let Some(read) = self.read_trees.find_read(index.root, self.position(write), value, colour) {
            let read = OperandId::new(read);
            return if self.are_excused(read, write) { self.scan_reads(class, read, write) } else { Some(read) };
        }
        let index = self.classes[class].reads.index.as_ref();
        let at_definition = index.and_then(|index| index.by_definition.get(&stored.op));
        let hit = at_definition
            .into_iter()
            .flatten()
            .copied()
            .find(|&read| self.is_conflict(read, write, &mut steps))
            .or_else(|| {
                let candidates = self.members_on(class, stored.op, true);
                candidates.into_iter().find(|&read| self.is_conflict(read, write, &mut steps))
            });
        self.steps += steps;
        hit
    }

    /// A write of the class that conflicts with the read, one by one; `found`: one that does but for its footprint.
    fn scan_writes(&mut self, class: ValueId, read: OperandId, found: OperandId) -> Option<OperandId> {
        let list = &self.classes[class].writes.list;
        let Some(left) = self.scans.checked_sub(list.len() as u64) else { return Some(found) };
        let mut steps = 0;
        let hit = list.iter().copied().find(|&write| self.is_conflict(read, write, &mut steps));
        (self.scans, self.steps) = (left, self.steps + steps);
        hit
    }

    /// A read of the class that conflicts with the write, one by one; `found`: one that does but for its footprint.
    fn scan_reads(&mut self, class: ValueId, found: OperandId, write: OperandId) -> Option<OperandId> {
        let list = &self.classes[class].reads.list;
        let Some(left) = self.scans.checked_sub(list.len() as u64) else { return Some(found) };
        let mut steps = 0;
        let hit = list.iter().copied().find(|&read| self.is_conflict(read, write, &mut steps));
        (self.scans, self.steps) = (left, self.steps + steps);
        hit
    }

    /// The reads or writes of a class on one operation.
    fn members_on(&self, class: ValueId, op: OpId, reads: bool) -> Vec<OperandId> {
        let operands = self.facts.operands_of(op);
        if operands.len() > WIDE {
            let members = if reads { &self.classes[class].reads } else { &self.classes[class].writes };
            return members.index.as_ref().and_then(|index| index.by_op.get(&op)).cloned().unwrap_or_default();
        }
        let is_member = |id: &OperandId| {
            let used = &self.facts.operands()[*id];
            let counts = if reads { used.counts_as_read } else { used.writes && self.in_place[*id] };
            counts && self.class_of(used.value) == class
        };
        operands.iter().copied().filter(is_member).collect()
    }

    fn class_of(&self, value: ValueId) -> ValueId {
        self.sets.find_unchanged(value)
    }

    fn conflict(&self, read: OperandId, write: OperandId) -> Reason {
        let value = self.facts.operands()[read].value;
        let definition = self.summary(read).latest.unwrap_or(value);
        Reason::ReadAfterWrite { read, write, definition }
    }

    // ---- The test. ----

    fn joined(&mut self, operand: OperandId) -> Vec<ValueId> {
        let value = self.facts.operands()[operand].value;
        let aliases = self.facts.aliasing_values(operand).iter().map(|alias| alias.value);
        let mut joined: Vec<_> = aliases.chain([value]).map(|value| self.sets.find(value)).collect();
        joined.sort_unstable();
        joined.dedup();
        joined
    }

    fn test_flags(&self, operand: OperandId, joined: &[ValueId]) -> Result<(), Reason> {
        let own = self.facts.operands()[operand].writes.then_some(operand);
        self.test_writable(own, joined)?;
        self.test_shared(own, joined)
    }

    /// `own`: a write that would join the classes.
    fn test_writable(&self, own: Option<OperandId>, joined: &[ValueId]) -> Result<(), Reason> {
        let classes = || joined.iter().map(|&class| &self.classes[class]);
        let write = own.or_else(|| classes().find_map(|class| class.writes.list.first().copied()));
        match (write, classes().find_map(|class| class.frozen)) {
            (Some(write), Some(value)) => Err(Reason::NotWritable { write, value }),
            _ => Ok(()),
        }
    }

    fn test_shared(&self, own: Option<OperandId>, joined: &[ValueId]) -> Result<(), Reason> {
        if !self.check_parallel_regions {
            return Ok(());
        }
        let classes = || joined.iter().map(|&class| &self.classes[class]);
        let shared = own.filter(|&write| self.is_shared_by_iterations(write));
        let write = shared.or_else(|| classes().find_map(|class| class.shared));
        // A loop-carried value is in another class, so reads in its body do not count here: assume that there are some.
        let carried = shared.filter(|&write| self.facts.has_body(self.facts.operands()[write].op));
        let read = carried.or_else(|| classes().find_map(|class| class.reads.list.first().copied()));
        match (read, write) {
            (Some(read), Some(write)) => Err(Reason::SharedByParallelIterations { read, write }),
            _ => Ok(()),
        }
    }

    /// Conflicts among the members of classes and, if `own` is a write, with it.
    fn test_members(&mut self, own: Option<OperandId>, joined: &[ValueId]) -> Result<(), Reason> {
        if let Some(write) = own {
            for &class in joined {
                if let Some(read) = self.find_read(class, write) {
                    return Err(self.conflict(read, write));
                }
            }
        }
        for (index, &a) in joined.iter().enumerate() {
            for &b in &joined[index + 1..] {
                self.test_pair(a, b)?;
            }
        }
        Ok(())
    }

    /// Put a use in place that must be, whatever its conflicts.
    pub fn force(&mut self, operand: OperandId) {
        let joined = self.joined(operand);
        let own = self.facts.operands()[operand].writes.then_some(operand);
        let conflict = self.test_shared(own, &joined).and_then(|()| self.test_members(own, &joined)).err();
        self.accept(operand);
        let class = self.sets.find(self.facts.operands()[operand].value);
        self.classes[class].forced = self.classes[class].forced.or(conflict);
    }

    /// Whether the uses in place would conflict if this one were in place, too.
    /// The use does not count as a write unless it is in place already.
    pub fn test_forced(&mut self, operand: OperandId) -> Result<(), Reason> {
        self.steps += 1;
        let joined = self.joined(operand);
        if let Some(reason) = joined.iter().find_map(|&class| self.classes[class].forced) {
            return Err(reason);
        }
        self.test_shared(None, &joined)?;
        self.test_members(None, &joined)?;
        if self.in_place[operand] { self.test_writable(None, &joined) } else { Ok(()) }
    }

    fn test_pair(&mut self, a: ValueId, b: ValueId) -> Result<(), Reason> {
        self.steps += 1;
        if let Some(&reason) = self.classes[a].failures.get(&b) {
            return Err(reason);
        }
        let hit = self.find_across(a, b).or_else(|| self.find_across(b, a));
        let Some((read, write)) = hit else { return Ok(()) };
        let reason = self.conflict(read, write);
        self.classes[a].failures.insert(b, reason);
        self.classes[b].failures.insert(a, reason);
        Err(reason)
    }

    /// A conflicting read of the first class and write of the second one: iterate over the shorter list.
    fn find_across(&mut self, readers: ValueId, writers: ValueId) -> Option<(OperandId, OperandId)> {
        let reads = self.classes[readers].reads.list.len();
        let writes = self.classes[writers].writes.list.len();
        for index in 0..reads.min(writes) {
            self.steps += 1;
            let hit = if reads <= writes {
                let read = self.classes[readers].reads.list[index];
                self.find_write(writers, read).map(|write| (read, write))
            } else {
                let write = self.classes[writers].writes.list[index];
                self.find_read(readers, write).map(|read| (read, write))
            };
            if hit.is_some() {
                // A member that fails once is likely to fail again: keep it in front.
                let list = if reads <= writes {
                    &mut self.classes[readers].reads.list
                } else {
                    &mut self.classes[writers].writes.list
                };
                list.swap(0, index);
                return hit;
            }
        }
        None
    }

    // ---- Merging. ----

    fn merge(&mut self, a: ValueId, b: ValueId) -> ValueId {
        let survivor = self.sets.union(a, b);
        let gone = if survivor == a { b } else { a };
        let from = std::mem::take(&mut self.classes[gone]);
        let mut into = std::mem::take(&mut self.classes[survivor]);
        into.frozen = into.frozen.or(from.frozen);
        into.shared = into.shared.or(from.shared);
        into.forced = into.forced.or(from.forced);
        for (other, reason) in from.failures {
            self.steps += 1;
            self.classes[other].failures.remove(&gone);
            self.classes[other].failures.insert(survivor, reason);
            into.failures.insert(other, reason);
        }
        into.reads = self.merge_members(into.reads, from.reads, true);
        into.writes = self.merge_members(into.writes, from.writes, false);
        self.classes[survivor] = into;
        survivor
    }

    fn merge_members(&mut self, a: Members, b: Members, reads: bool) -> Members {
        let (mut large, small) = if a.list.len() >= b.list.len() { (a, b) } else { (b, a) };
        self.steps += small.list.len() as u64;
        let known = large.list.len();
        large.list.extend_from_slice(&small.list);
        match (&mut large.index, small.index) {
            (Some(large), Some(small)) => {
                let trees = if reads { &mut self.read_trees } else { &mut self.write_trees };
                large.root = trees.merge(large.root, small.root);
                append(&mut large.by_op, small.by_op);
                append(&mut large.by_definition, small.by_definition);
            }
            (Some(index), None) => {
                for &operand in &large.list[known..] {
                    self.index_member(index, operand, reads);
                }
            }
            _ => self.index_long(&mut large, reads),
        }
        large
    }
}

fn append(into: &mut HashMap<OpId, Vec<OperandId>>, from: HashMap<OpId, Vec<OperandId>>) {
    if into.is_empty() {
        *into = from;
        return;
    }
    for (op, operands) in from {
        into.entry(op).or_default().extend(operands);
    }
}

impl ConflictTest for Classes<'_> {
    fn test(&mut self, operand: OperandId) -> Result<(), Reason> {
        self.steps += 1;
        let joined = self.joined(operand);
        self.test_flags(operand, &joined)?;
        let own = self.facts.operands()[operand].writes.then_some(operand);
        self.test_members(own, &joined)
    }

    fn join(&mut self, a: ValueId, b: ValueId) {
        let (a, b) = (self.sets.find(a), self.sets.find(b));
        if a != b {
            self.merge(a, b);
        }
    }

    fn accept(&mut self, operand: OperandId) {
        let joined = self.joined(operand);
        let class = joined.into_iter().reduce(|a, b| self.merge(a, b));
        self.in_place[operand] = true;
        let Some(class) = class.filter(|_| self.facts.operands()[operand].writes) else { return };
        if self.is_shared_by_iterations(operand) {
            self.classes[class].shared.get_or_insert(operand);
        }
        let mut writes = std::mem::take(&mut self.classes[class].writes);
        writes.list.push(operand);
        match &mut writes.index {
            Some(index) => self.index_write(index, operand),
            None => self.index_long(&mut writes, false),
        }
        self.classes[class].writes = writes;
    }

    fn finish(&mut self) -> (AliasSets, u64) {
        let steps = self.steps + self.read_trees.steps + self.write_trees.steps;
        let facts = self.facts.operands().len() + self.facts.values().len();
        let sets = std::mem::replace(&mut self.sets, AliasSets::new(self.facts.values().len()));
        (sets, steps + facts as u64 + self.intervals.steps() + self.subsets.steps)
    }
}
