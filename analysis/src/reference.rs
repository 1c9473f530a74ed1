//! The conflict rules word by word: every read against every write, for every candidate.
//!
//! The specification of [`crate::classes`], which is tested against it.
//! Time per candidate is O(reads * writes * depth), so up to O(n^4) for a function; it is not used for decisions.

use std::collections::HashSet;

use crate::alias_sets::AliasSets;
use crate::definitions::Definitions;
use crate::dominance::{Structure, is_unordered_for, regions_are_exclusive};
use crate::equivalence::holds_by_identity;
use crate::facts::{Facts, Relation, Source, Subset};
use crate::footprints::Footprints;
use crate::index::{BlockId, IndexVec, OpId, OperandId, RegionId, SliceId, ValueId};
use crate::placement::{ConflictTest, Options, Reason, Strategy};

/// The extent of a slice: a tensor value and a part of it (none: all of it).
type Key = (ValueId, Option<SliceId>);

/// Alias classes with the literal test.
pub(crate) struct PairwiseClasses<'a> {
    facts: &'a Facts,
    structure: Structure,
    definitions: Definitions,
    check_parallel_regions: bool,
    unordered_graphs: bool,
    footprints: Option<Footprints>,
    looped: IndexVec<ValueId, bool>,
    in_place: IndexVec<OperandId, bool>,
    sets: AliasSets,
}

impl<'a> PairwiseClasses<'a> {
    pub fn new(facts: &'a Facts, options: &Options) -> Self {
        let structure = Structure::new(facts);
        let definitions = Definitions::new(facts, &structure);
        Self {
            facts,
            structure,
            definitions,
            check_parallel_regions: options.check_parallel_regions,
            unordered_graphs: options.unordered_graph_regions,
            footprints: if options.strategy == Strategy::Minimal { Footprints::new(facts) } else { None },
            looped: crate::subsets::walk(facts).looped,
            in_place: IndexVec::filled(false, facts.operands().len()),
            sets: AliasSets::new(facts.values().len()),
        }
    }

    /// The definitions that reach a value; with `leaves`, also values without sources.
    fn definitions(&self, value: ValueId, leaves: bool) -> Vec<ValueId> {
        let (mut found, mut seen, mut work) = (Vec::new(), HashSet::new(), vec![value]);
        while let Some(value) = work.pop() {
            if !seen.insert(value) {
                continue;
            }
            let sources = self.facts.sources(value);
            if self.definitions.is_definition[value] || (leaves && sources.is_empty()) {
                found.push(value);
            } else {
                work.extend(sources.iter().map(|source| self.facts.operands()[source.operand].value));
            }
        }
        found
    }

    fn shares_parallel_buffer(&self, write: OperandId) -> bool {
        let used = &self.facts.operands()[write];
        let around = |region: RegionId| self.structure.parallel[region];
        let own = around(self.facts.region_of(used.op));
        self.definitions(used.value, true).iter().any(|&value| around(self.facts.defining_region(value)) != own)
    }

    fn conflict(&self, read: OperandId, write: OperandId, definitions: &[ValueId]) -> Option<ValueId> {
        let (reader, writer) = (self.facts.operands()[read].op, self.facts.operands()[write].op);
        // Undefined contents cannot be lost, but the buffer of an iteration argument must not be written through another value.
        let Some(&first) = definitions.first() else {
            let inside = self.facts.span(reader).properly_encloses(self.facts.span(writer));
            let excluded = self.slices_exclude(read, write) || self.are_disjoint(read, write);
            return (inside && !excluded).then(|| self.facts.operands()[read].value);
        };
        let repeats = definitions.iter().any(|&definition| self.blocks_repeat(reader, writer, definition));
        let in_order = !repeats && self.is_in_order(reader, writer, definitions);
        if in_order && self.order_excludes(read, write) {
            return None;
        }
        if self.slices_exclude(read, write) || self.are_disjoint(read, write) {
            return None;
        }
        if repeats {
            return Some(first);
        }
        definitions.iter().copied().find(|&definition| {
            !(self.definition_excludes(write, definition) || (in_order && self.is_too_late(reader, writer, definition)))
        })
    }

    fn are_disjoint(&self, read: OperandId, write: OperandId) -> bool {
        let used = self.facts.operands()[read];
        let defined = self.definitions.summaries[used.value].repetitive;
        let scope = self.structure.repeated(self.facts, used.op, defined);
        self.footprints.as_ref().is_some_and(|known| known.are_disjoint(self.facts, read, write, scope))
    }

    /// Whether blocks around both operations reach each other without the block of the definition.
    fn blocks_repeat(&self, reader: OpId, writer: OpId, definition: ValueId) -> bool {
        let facts = self.facts;
        let (outermost, without) = (facts.defining_region(definition), Some(facts.defining_block(definition)));
        let mut around = Some(reader);
        while let Some(op) = around {
            let region = facts.region_of(op);
            if let Some(other) = ancestor_in(facts, writer, region) {
                let (read, write) = (facts.ops()[op].block, facts.ops()[other].block);
                if leads_to(facts, read, write, without) && leads_to(facts, write, read, without) {
                    return true;
                }
            }
            around = facts.parent_of(op).filter(|_| region != outermost);
        }
        false
    }

    /// Whether the order of operations is an order in time, given the definitions of the read.
    fn is_in_order(&self, reader: OpId, writer: OpId, definitions: &[ValueId]) -> bool {
        let around_read = self.structure.repetitive[self.facts.region_of(reader)];
        definitions.iter().all(|&definition| {
            let around_definition = self.structure.repetitive[self.facts.defining_region(definition)];
            if around_definition == around_read {
                return true;
            }
            let mut current = around_read;
            while let Some(region) = current {
                let outer = self.facts.enclosing_region(region).and_then(|outer| self.structure.repetitive[outer]);
                if outer == around_definition {
                    let op = self.facts.regions()[region].op;
                    let inside = |op: OpId| self.facts.span(op).contains(self.facts.span(writer).first);
                    return !op.is_some_and(inside);
                }
                current = outer;
            }
            false
        })
    }

    fn order_excludes(&self, read: OperandId, write: OperandId) -> bool {
        let facts = self.facts;
        let (used, stored) = (&facts.operands()[read], &facts.operands()[write]);
        // The read is complete before the write begins, or they are one use, or only one of them runs.
        if read == write
            || happens_before(
                facts,
                |region| is_unordered_for(facts, read, region, self.unordered_graphs),
                used.op,
                stored.op,
            )
            || are_exclusive(facts, used.op, stored.op)
        {
            return true;
        }
        // Elementwise access: each position is loaded before it is stored.
        used.op == stored.op && used.elementwise && stored.elementwise && self.are_same_buffer(used.value, stored.value)
    }

    /// Whether the values are equivalent, or may be and both are whole buffers.
    fn are_same_buffer(&self, a: ValueId, b: ValueId) -> bool {
        let whole = |value| {
            self.behind(value).into_iter().all(|value| {
                let keeps = |source: &Source| source.relation != Relation::Unknown;
                let is_shared = self.facts.shared_values().iter().any(|pair| pair.0 == value || pair.1 == value);
                self.facts.sources(value).iter().all(keeps) && !self.looped[value] && !is_shared
            })
        };
        let leads = |from, to| self.behind_equivalent(from).contains(&to);
        let is_possible = || leads(a, b) || leads(b, a);
        let is_certain = || self.reaches_equivalent(a, b) || self.reaches_equivalent(b, a);
        is_possible() && (is_certain() || (whole(a) && whole(b)))
    }

    /// The value and its transitive sources.
    fn behind(&self, value: ValueId) -> HashSet<ValueId> {
        self.behind_over(value, |_| true)
    }

    /// The value and its transitive sources that may be the same buffer, of the same type.
    fn behind_equivalent(&self, value: ValueId) -> HashSet<ValueId> {
        self.behind_over(value, |source| holds_by_identity(source.relation) && !source.retypes)
    }

    fn behind_over(&self, value: ValueId, follows: impl Fn(&Source) -> bool) -> HashSet<ValueId> {
        let (mut seen, mut work) = (HashSet::new(), vec![value]);
        while let Some(value) = work.pop() {
            if seen.insert(value) {
                let sources = self.facts.sources(value).iter().filter(|source| follows(source));
                work.extend(sources.map(|source| self.facts.operands()[source.operand].value));
            }
        }
        seen
    }

    /// Whether every walk backwards from the first value leads to the second, over edges that keep buffer and type.
    fn reaches_equivalent(&self, from: ValueId, to: ValueId) -> bool {
        let extracted = |value| self.facts.extracted(value);
        let (mut seen, mut work) = (HashSet::new(), vec![from]);
        while let Some(value) = work.pop() {
            let same_slice = extracted(value).is_some() && extracted(value) == extracted(to);
            if value == to || same_slice || !seen.insert(value) {
                continue;
            }
            let sources = self.facts.sources(value);
            let breaks = sources.iter().any(|source| !holds_by_identity(source.relation) || source.retypes);
            if sources.is_empty() || breaks || self.looped[value] {
                return false;
            }
            work.extend(sources.iter().map(|source| self.facts.operands()[source.operand].value));
        }
        true
    }

    fn slices_exclude(&self, read: OperandId, write: OperandId) -> bool {
        let facts = self.facts;
        let (used, stored) = (&facts.operands()[read], &facts.operands()[write]);
        // The operation overwrites the slice that the write touches, so the read does not need it.
        if let Some(Subset::Insertion { destination, slice, .. }) = facts.ops()[used.op].subset
            && destination == read
            && self.is_within(stored.value, (used.value, slice), false)
        {
            return true;
        }
        let Some(Subset::Insertion { source: Some(source), destination, slice }) = facts.ops()[stored.op].subset else {
            return false;
        };
        let source_value = facts.operands()[source].value;
        let is_part = self.footprints.is_some() && facts.is_slice_of(used.value, source_value);
        // The operation writes back the present contents: to its own source, and to the other readers of that value.
        destination == write
            && (source == read || used.value == source_value || is_part)
            && self.is_within(source_value, (stored.value, slice), true)
    }

    /// Whether all sources of the value are extractions of this slice; `exactly`: and the value is all of it.
    fn is_within(&self, value: ValueId, key: Key, exactly: bool) -> bool {
        let (mut seen, mut work) = (HashSet::new(), vec![value]);
        while let Some(value) = work.pop() {
            let is_new = seen.insert(value);
            if self.matches(value, key) {
                continue;
            }
            let sources = self.facts.sources(value);
            // A value that is its own source (around a loop of blocks), or is met twice, proves nothing.
            let is_part = |source: &Source| {
                source.relation == Relation::Unknown && (key.1.is_none() || !self.facts.is_extraction(source))
            };
            let parts = exactly && sources.iter().any(is_part);
            if sources.is_empty() || parts || self.looped[value] || !is_new {
                return false;
            }
            for source in sources {
                let other = self.facts.operands()[source.operand].value;
                if !work.contains(&other) {
                    work.push(other);
                }
            }
        }
        true
    }

    fn matches(&self, value: ValueId, key: Key) -> bool {
        let Some(op) = self.facts.defining_op(value) else {
            return false;
        };
        match (key.1, self.facts.ops()[op].subset) {
            (None, _) => {
                let extracted = |value| self.facts.extracted(value);
                self.facts.defining_op(key.0).is_some()
                    && (value == key.0 || (extracted(value).is_some() && extracted(value) == extracted(key.0)))
            }
            (Some(wanted), Some(Subset::Extraction { container, result, slice })) => {
                result == value && slice == wanted && self.facts.operands()[container].value == key.0
            }
            _ => false,
        }
    }

    fn definition_excludes(&self, write: OperandId, definition: ValueId) -> bool {
        let writer = self.facts.operands()[write].op;
        let excluded = match self.facts.defining_op(definition) {
            Some(op) => {
                happens_before(self.facts, |_| false, writer, op)
                    || self.facts.span(op).properly_encloses(self.facts.span(writer))
                    || !can_run_together(self.facts, op, writer)
            }
            None => {
                // The write is outside the scope of the argument.
                let block = self.facts.defining_block(definition);
                ancestor_in(self.facts, writer, self.facts.blocks()[block].region)
                    .is_none_or(|outer| !self.facts.dominates(block, self.facts.ops()[outer].block))
            }
        };
        // The write makes the definition.
        let makes = self.facts.made_by(write) == Some(definition);
        excluded || makes
    }

    /// Whether the definition is an argument, and every path from the write to the read binds it
    /// again, as far as that is easy to see in the region of its block.
    fn is_too_late(&self, reader: OpId, writer: OpId, definition: ValueId) -> bool {
        let facts = self.facts;
        if facts.defining_op(definition).is_some() {
            return false;
        }
        let Common::Block(region) = common(facts, reader, writer) else { return false };
        if region != facts.defining_region(definition) {
            return false;
        }
        let (Some(reader), Some(writer)) = (ancestor_in(facts, reader, region), ancestor_in(facts, writer, region))
        else {
            return false;
        };
        let blocks = facts.blocks_of(region);
        if blocks.iter().any(|&block| leads_to(facts, block, block, None)) {
            return false;
        }
        let (read, write) = (facts.ops()[reader].block, facts.ops()[writer].block);
        if read == write || facts.dominates(write, read) {
            return false;
        }
        if facts.span(reader).last < facts.span(writer).first {
            return true;
        }
        // The last branch above the read that is not also above the write: can it be entered from other branches?
        let mut branch = read;
        while let Some(above) = facts.places[branch].dominator.filter(|&above| !facts.dominates(above, write)) {
            branch = above;
        }
        let above = facts.places[branch].dominator;
        let enters = |from: &BlockId| facts.successors(*from).contains(&branch);
        above.is_some() && blocks.iter().filter(|from| enters(from)).all(|&from| Some(from) == above)
    }

    fn joined(&mut self, operand: OperandId) -> HashSet<ValueId> {
        let value = self.facts.operands()[operand].value;
        let aliases = self.facts.aliasing_values(operand).iter().map(|alias| alias.value);
        let values: Vec<_> = aliases.chain([value]).collect();
        values.into_iter().map(|value| self.sets.find(value)).collect()
    }
}

impl ConflictTest for PairwiseClasses<'_> {
    fn test(&mut self, operand: OperandId) -> Result<(), Reason> {
        let joined = self.joined(operand);
        let values: Vec<_> =
            self.facts.values().ids().filter(|&value| joined.contains(&self.sets.find(value))).collect();
        let uses: Vec<_> = values.iter().flat_map(|&value| self.facts.uses(value).iter().copied()).collect();
        let facts = self.facts;
        let reads: Vec<_> = uses.iter().copied().filter(|&id| facts.operands()[id].counts_as_read).collect();
        let is_write = |id: &OperandId| facts.operands()[*id].writes && (self.in_place[*id] || *id == operand);
        let writes: Vec<_> = uses.iter().copied().filter(is_write).collect();
        let frozen = values.iter().copied().find(|&value| !facts.values()[value].info.buffer.writable);
        if let (Some(&write), Some(value)) = (writes.first(), frozen) {
            return Err(Reason::NotWritable { write, value });
        }
        if self.check_parallel_regions
            && let Some(&write) = writes.iter().find(|&&write| self.shares_parallel_buffer(write))
            && let Some(&read) = reads.first().or_else(|| {
                // A loop-carried value is in another class: assume that its body reads it.
                let mut shared = writes.iter().filter(|&&write| self.shares_parallel_buffer(write));
                shared.find(|&&write| facts.has_body(facts.operands()[write].op))
            })
        {
            return Err(Reason::SharedByParallelIterations { read, write });
        }
        for &read in &reads {
            let definitions = self.definitions(facts.operands()[read].value, false);
            for &write in &writes {
                if let Some(definition) = self.conflict(read, write, &definitions) {
                    return Err(Reason::ReadAfterWrite { read, write, definition });
                }
            }
        }
        Ok(())
    }

    fn join(&mut self, a: ValueId, b: ValueId) {
        self.sets.union(a, b);
    }

    fn accept(&mut self, operand: OperandId) {
        self.in_place[operand] = true;
        for alias in self.facts.aliasing_values(operand) {
            self.sets.union(self.facts.operands()[operand].value, alias.value);
        }
    }

    fn finish(&mut self) -> (AliasSets, u64) {
        self.in_place = IndexVec::filled(false, self.facts.operands().len());
        (std::mem::replace(&mut self.sets, AliasSets::new(self.facts.values().len())), 0)
    }
}

/// Whether the first operation happens before the second one (its effects are complete before the other begins).
fn happens_before(facts: &Facts, unordered: impl Fn(RegionId) -> bool, a: OpId, b: OpId) -> bool {
    match common(facts, a, b) {
        Common::Nested { inner_is_same_or_encloses_first: true, outer } => unordered(facts.region_of(outer)),
        Common::Nested { .. } | Common::Siblings(..) => false,
        Common::Block(region) => unordered(region) || dominates(facts, region, a, b),
    }
}

/// Whether the ancestor of the first operation in a region dominates that of the second one.
fn dominates(facts: &Facts, region: RegionId, a: OpId, b: OpId) -> bool {
    let (Some(a), Some(b)) = (ancestor_in(facts, a, region), ancestor_in(facts, b, region)) else { return false };
    let (block_a, block_b) = (facts.ops()[a].block, facts.ops()[b].block);
    if block_a == block_b { facts.span(a).first < facts.span(b).first } else { facts.dominates(block_a, block_b) }
}

/// The operation of the region that is or encloses `op`.
fn ancestor_in(facts: &Facts, op: OpId, region: RegionId) -> Option<OpId> {
    let mut op = op;
    while facts.region_of(op) != region {
        op = facts.parent_of(op)?;
    }
    Some(op)
}

/// Whether a path of at least one step leads from one block to the other without a third one.
fn leads_to(facts: &Facts, from: BlockId, to: BlockId, without: Option<BlockId>) -> bool {
    if Some(from) == without || Some(to) == without {
        return false;
    }
    let (mut seen, mut work) = (HashSet::new(), facts.successors(from).to_vec());
    while let Some(block) = work.pop() {
        if block == to {
            return true;
        }
        if Some(block) != without && seen.insert(block) {
            work.extend(facts.successors(block));
        }
    }
    false
}

/// Whether blocks around both operations are in one dominator tree, so that one activation may run both.
fn can_run_together(facts: &Facts, a: OpId, b: OpId) -> bool {
    let Common::Block(region) = common(facts, a, b) else { return true };
    let root = |op: OpId| {
        let mut block = facts.ops()[ancestor_in(facts, op, region)?].block;
        while let Some(above) = facts.places[block].dominator {
            block = above;
        }
        Some(block)
    };
    root(a) == root(b)
}

/// Whether the two operations are in regions of one region branch op of which only one runs.
fn are_exclusive(facts: &Facts, a: OpId, b: OpId) -> bool {
    match common(facts, a, b) {
        Common::Siblings(op, first, second) => {
            facts.ops()[op].region_branch && regions_are_exclusive(facts, first, second)
        }
        _ => false,
    }
}

/// The innermost common ancestor of two operations.
enum Common {
    /// One encloses the other or is the other: `outer`. True if the second one is the outer one.
    Nested { inner_is_same_or_encloses_first: bool, outer: OpId },
    /// Their ancestors are in this region.
    Block(RegionId),
    /// They are in two regions of one operation.
    Siblings(OpId, RegionId, RegionId),
}

fn common(facts: &Facts, a: OpId, b: OpId) -> Common {
    let (span_a, span_b) = (facts.span(a), facts.span(b));
    if span_b.contains(span_a.first) {
        return Common::Nested { inner_is_same_or_encloses_first: true, outer: b };
    }
    if span_a.contains(span_b.first) {
        return Common::Nested { inner_is_same_or_encloses_first: false, outer: a };
    }
    let mut region = facts.region_of(a);
    loop {
        if facts.region_spans[region].contains(span_b.first) {
            return Common::Block(region);
        }
        let Some(op) = facts.regions()[region].op else {
            return Common::Block(region);
        };
        if facts.span(op).contains(span_b.first) {
            return sibling(facts, op, region, span_b.first);
        }
        region = facts.region_of(op);
    }
}

fn sibling(facts: &Facts, op: OpId, first: RegionId, position: u32) -> Common {
    let other = facts.regions_of(op).iter().find(|&&region| facts.region_spans[region].contains(position));
    Common::Siblings(op, first, *other.unwrap_or(&first))
}
