//! For each read, the positions at which a write would conflict with it.
//!
//! Without slice rules, a write conflicts with a read by the position of its
//! operation alone, except on the read's own operation and on that of the first definition.
//! So each read gets a short list of disjoint intervals:
//!
//! 1. where order is not an order in time (a repetitive region that the definition is not in, a cycle of blocks around
//!    it): the whole loop, or the blocks of the cycle;
//! 2. the positions that the first definition dominates, without those after the read, without regions exclusive
//!    with the read, and without those that graph regions leave unordered;
//! 3. positions ordered with neither: sibling regions that may run before or after the read, blocks beside that of the
//!    definition ([`crate::beside`]), and operations around the definition;
//! 4. never the read's own operation, which has a rule of its own.
//!
//! The first definition by an operation and the outermost block argument are treated apart, as a write in another
//! branch may come between the first one and the read, but not change the contents of an argument.
//!
//! At most a constant number of intervals for each region between definition and read.

use crate::beside::Beside;
use crate::cycles::BlockCycles;
use crate::definitions::Summary;
use crate::dominance::{Structure, is_unordered_for, regions_are_exclusive};
use crate::facts::{Facts, Span};
use crate::index::{BlockId, IndexVec, OpId, OperandId, RegionId};

/// The intervals of all reads.
#[derive(Clone, Debug)]
pub(crate) struct Intervals {
    starts: IndexVec<OperandId, u32>,
    items: Vec<Span>,
    /// Blocks repeat around the read, but not around the definition.
    repeats: IndexVec<OperandId, bool>,
    /// Elementary steps, beside the number of intervals.
    steps: u64,
}

impl Intervals {
    pub fn new(
        facts: &Facts,
        structure: &Structure,
        unordered_graphs: bool,
        summary: impl Fn(OperandId) -> Summary,
    ) -> Self {
        let branches: IndexVec<OpId, Branch> = facts.ops().ids().map(|op| Branch::of(facts, op)).collect();
        let mut cycles = BlockCycles::new(facts);
        let beside = Beside::new(facts, &cycles);
        let count = facts.operands().len();
        let mut this =
            Self { starts: IndexVec::new(), items: Vec::new(), repeats: IndexVec::filled(false, count), steps: 0 };
        for (operand, used) in facts.operands().iter_enumerated() {
            this.starts.push(u32::try_from(this.items.len()).unwrap_or(u32::MAX));
            let summary = summary(operand);
            if used.counts_as_read && !summary.any {
                this.items.extend(inside(facts, used.op));
            } else if used.counts_as_read {
                let finder = Finder {
                    facts,
                    structure,
                    branches: &branches,
                    beside: &beside,
                    unordered_graphs,
                    read: operand,
                    op: used.op,
                    summary,
                };
                let mut found = finder.around_cycles(&mut cycles);
                this.repeats[operand] = !found.is_empty();
                finder.find(&mut found);
                this.steps += found.len() as u64;
                this.items.extend(without(merged(found), facts.span(used.op).first));
            }
        }
        this.starts.push(u32::try_from(this.items.len()).unwrap_or(u32::MAX));
        this.steps += cycles.steps + facts.blocks().len() as u64;
        this
    }

    /// The intervals of a read, in order.
    pub fn of(&self, read: OperandId) -> &[Span] {
        let next = OperandId::new(read.number() + 1);
        &self.items[self.starts[read] as usize..self.starts[next] as usize]
    }

    /// Whether a cycle of blocks repeats the operations around the read without the definition.
    pub fn repeats(&self, read: OperandId) -> bool {
        self.repeats[read]
    }

    /// The work done.
    pub const fn steps(&self) -> u64 {
        self.items.len() as u64 + self.steps
    }

    pub fn contains(&self, read: OperandId, position: u32) -> bool {
        let spans = self.of(read);
        let index = spans.partition_point(|span| span.last < position);
        spans.get(index).is_some_and(|span| span.contains(position))
    }
}

/// A read without definitions has no contents to lose, except that a region operation in place shares its buffer with its
/// iteration arguments: a write to the operand's value inside would store to them. Those writes conflict.
fn inside(facts: &Facts, op: OpId) -> Option<Span> {
    let Span { first, last } = facts.span(op);
    (first < last).then_some(Span { first: first + 1, last })
}

/// Which regions of an operation are exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Branch {
    /// Any two.
    Exclusive,
    /// No two.
    Together,
    /// Some: test each pair.
    Mixed,
}

impl Branch {
    fn of(facts: &Facts, op: OpId) -> Self {
        if !facts.ops()[op].region_branch {
            return Self::Together;
        }
        let leads_on = |region: &RegionId| facts.region_successors.of(*region).iter().any(|next| next != region);
        if facts.regions_of(op).iter().any(leads_on) { Self::Mixed } else { Self::Exclusive }
    }
}

struct Finder<'a> {
    facts: &'a Facts,
    structure: &'a Structure,
    branches: &'a IndexVec<OpId, Branch>,
    beside: &'a Beside,
    unordered_graphs: bool,
    read: OperandId,
    op: OpId,
    summary: Summary,
}

/// Positions that never conflict with a read, whatever the definition.
#[derive(Default)]
struct Excluded {
    /// Exclusive with the read, or unordered with it. Outwards, so decreasing.
    before: Vec<Span>,
    /// After the read. Outwards, so increasing.
    after: Vec<Span>,
    /// As `after`, for an argument: in the region of its block all positions count that can come before the read in time.
    later: Vec<Span>,
}

impl Finder<'_> {
    fn find(&self, found: &mut Vec<Span>) {
        self.add_repeated(found);
        let excluded = self.walk_outwards(found);
        if let Some((op, _)) = self.summary.first_op {
            let block = self.facts.ops()[op].block;
            let (start, end) = (self.facts.span(op).last + 1, self.facts.places[block].end);
            add_rest(found, start, end, excluded.before.iter().rev().chain(&excluded.after));
            self.add_around_definition(op, found);
        }
        if let Some(block) = self.summary.outermost_argument {
            let place = self.facts.places[block];
            let mut other: Vec<Span> = excluded.before;
            self.beside.add_other_branches(self.facts, self.op, block, &mut other);
            other.extend(excluded.later);
            other.sort_unstable_by_key(|span| span.first);
            add_rest(found, place.start, place.end, other.iter());
        }
    }

    fn is_unordered(&self, region: RegionId) -> bool {
        is_unordered_for(self.facts, self.read, region, self.unordered_graphs)
    }

    /// The block of the first definition, which dominates the others.
    fn first_block(&self) -> Option<BlockId> {
        let made = self.summary.first_op.map(|(op, _)| self.facts.ops()[op].block);
        match (made, self.summary.outermost_argument) {
            (Some(a), Some(b)) => Some(self.structure.outer_block(self.facts, a, b)),
            (a, b) => a.or(b),
        }
    }

    /// Rule 1 for cycles of blocks.
    fn around_cycles(&self, cycles: &mut BlockCycles<'_>) -> Vec<Span> {
        let mut found = Vec::new();
        let Some(first) = self.first_block() else { return found };
        let outermost = self.facts.blocks()[first].region;
        let mut op = Some(self.op);
        while let Some(current) = op {
            let block = self.facts.ops()[current].block;
            let region = self.facts.region_of(current);
            if cycles.is_on_cycle(block) {
                found.extend(cycles.around(block, Some(first).filter(|_| region == outermost)));
            }
            // Further out, every cycle includes the definition.
            if region == outermost {
                break;
            }
            op = self.facts.parent_of(current);
        }
        found
    }

    /// Rule 1 for repetitive regions.
    fn add_repeated(&self, found: &mut Vec<Span>) {
        let region = self.facts.region_of(self.op);
        let mut current = self.structure.repetitive[region];
        if current == self.summary.repetitive {
            return;
        }
        while let Some(inner) = current {
            let outer = self.facts.enclosing_region(inner).and_then(|outer| self.structure.repetitive[outer]);
            if outer == self.summary.repetitive {
                found.extend(self.facts.regions()[inner].op.map(|op| self.facts.span(op)));
                return;
            }
            current = outer;
        }
        // The definition is in a loop without the read: be conservative.
        found.push(self.facts.region_spans[RegionId::new(0)]);
    }

    /// Rule 3 for sibling regions, and the exclusions of rule 2.
    fn walk_outwards(&self, found: &mut Vec<Span>) -> Excluded {
        let facts = self.facts;
        let mut excluded = Excluded::default();
        let of_argument = self.summary.outermost_argument.map(|block| facts.blocks()[block].region);
        let mut op = self.op;
        loop {
            let region = facts.region_of(op);
            let span = facts.region_spans[region];
            if self.is_unordered(region) {
                excluded.before.push(Span { first: span.first, last: facts.span(op).first });
            }
            let first = facts.span(op).last + 1;
            let dominated = facts.places[facts.ops()[op].block].end;
            let in_time = of_argument == Some(region) && self.beside.is_in_time_order(region);
            let last = if in_time { span.last } else { dominated - 1 };
            extend(&mut excluded.after, Span { first, last: dominated - 1 });
            extend(&mut excluded.later, Span { first, last });
            let Some(parent) = facts.regions()[region].op else { return excluded };
            let around = facts.span(parent);
            let before = Span { first: around.first + 1, last: span.first - 1 };
            let after = Span { first: span.last + 1, last: around.last };
            match self.branches[parent] {
                Branch::Exclusive => {
                    excluded.before.push(before);
                    extend(&mut excluded.after, after);
                    extend(&mut excluded.later, after);
                }
                Branch::Together if self.is_known_around(parent) => found.extend([before, after]),
                Branch::Together => {}
                Branch::Mixed => self.ask_siblings(parent, region, found, &mut excluded),
            }
            op = parent;
        }
    }

    fn ask_siblings(&self, op: OpId, region: RegionId, found: &mut Vec<Span>, excluded: &mut Excluded) {
        let start = self.facts.region_spans[region].first;
        let siblings = || self.facts.regions_of(op).iter().filter(|&&other| other != region);
        let is_exclusive = |other: &&RegionId| regions_are_exclusive(self.facts, region, **other);
        if self.is_known_around(op) {
            found.extend(siblings().filter(|other| !is_exclusive(other)).map(|&other| self.facts.region_spans[other]));
        }
        let spans = || siblings().filter(is_exclusive).map(|&other| self.facts.region_spans[other]);
        // Last to first, to keep the exclusions in decreasing order.
        let mut before: Vec<_> = spans().filter(|span| span.first < start).collect();
        before.reverse();
        excluded.before.extend(before);
        for span in spans().filter(|span| span.first >= start) {
            extend(&mut excluded.after, span);
            extend(&mut excluded.later, span);
        }
    }

    /// Whether a write in another region of `op` can come between a definition and the read.
    fn is_known_around(&self, op: OpId) -> bool {
        let position = self.facts.span(op).first;
        self.summary.first_op.is_some()
            || self.summary.outermost_argument.is_some_and(|block| {
                let place = self.facts.places[block];
                place.start <= position && position < place.end
            })
    }

    /// Rule 3 for positions around the definition, or beside it.
    fn add_around_definition(&self, op: OpId, found: &mut Vec<Span>) {
        self.beside.add_unordered(self.facts, self.facts.ops()[op].block, found);
        let mut current = self.facts.parent_of(op);
        while let Some(op) = current {
            let writes = self.facts.operands_of(op).iter().any(|&operand| self.facts.operands()[operand].writes);
            if writes && !self.is_unordered(self.facts.region_of(op)) {
                let position = self.facts.span(op).first;
                found.push(Span { first: position, last: position });
            }
            self.beside.add_unordered(self.facts, self.facts.ops()[op].block, found);
            current = self.facts.parent_of(op);
        }
    }
}

/// Append an interval to increasing ones; an adjacent one extends the last.
fn extend(spans: &mut Vec<Span>, span: Span) {
    if span.first > span.last {
        return;
    }
    match spans.last_mut() {
        Some(last) if last.last + 1 >= span.first => last.last = last.last.max(span.last),
        _ => spans.push(span),
    }
}

/// Add `start..end` without the excluded intervals, which increase.
fn add_rest<'a>(found: &mut Vec<Span>, start: u32, end: u32, excluded: impl Iterator<Item = &'a Span>) {
    let mut next = start;
    for gap in excluded.filter(|gap| gap.first <= gap.last) {
        if gap.first >= end {
            break;
        }
        if gap.first > next {
            found.push(Span { first: next, last: gap.first - 1 });
        }
        next = next.max(gap.last + 1);
    }
    if next < end {
        found.push(Span { first: next, last: end - 1 });
    }
}

/// The same positions as sorted, disjoint intervals.
fn merged(mut spans: Vec<Span>) -> Vec<Span> {
    spans.retain(|span| span.first <= span.last);
    spans.sort_unstable_by_key(|span| (span.first, span.last));
    let mut merged: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.first <= last.last.saturating_add(1) => last.last = last.last.max(span.last),
            _ => merged.push(span),
        }
    }
    merged
}

/// Rule 4: the intervals without the read's own operation.
fn without(spans: Vec<Span>, position: u32) -> Vec<Span> {
    spans
        .into_iter()
        .flat_map(|span| {
            if !span.contains(position) {
                return [Some(span), None];
            }
            let before = (span.first < position).then(|| Span { first: span.first, last: position - 1 });
            let after = (position < span.last).then(|| Span { first: position + 1, last: span.last });
            [before, after]
        })
        .flatten()
        .collect()
}
