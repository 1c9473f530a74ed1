//! From a read to the positions at which a write would conflict with it.
//!
//! Without slice rules, whether a write conflicts with a read depends on the write only through the position of its
//! operation, except on the read's own operation and on the one that made the first definition.
//! So each read gets a short list of disjoint intervals:
//!
//! 1. where order is not an order in time (a repetitive region that the definition is not in): the whole loop;
//! 2. what stands between the first definition and the end of the reading operation, without regions that never run
//!    together with the read, and without what graph regions leave unordered;
//! 3. sibling regions that may run before or after the read;
//! 4. operations around the first definition, which are ordered with neither;
//! 5. never the read's own operation, which is looked at by itself.
//!
//! At most a constant number of intervals for each region between definition and read.

use crate::definitions::Summary;
use crate::dominance::{Structure, is_unordered_for, regions_are_exclusive};
use crate::facts::{Facts, Span};
use crate::index::{IndexVec, OpId, OperandId, RegionId};

/// The intervals of all reads.
#[derive(Clone, Debug)]
pub(crate) struct Intervals {
    starts: IndexVec<OperandId, u32>,
    items: Vec<Span>,
}

impl Intervals {
    pub fn new(
        facts: &Facts,
        structure: &Structure,
        unordered_graphs: bool,
        summary: impl Fn(OperandId) -> Summary,
    ) -> Self {
        let branches: IndexVec<OpId, Branch> = facts.ops().ids().map(|op| Branch::of(facts, op)).collect();
        let mut this = Self { starts: IndexVec::new(), items: Vec::new() };
        for (operand, used) in facts.operands().iter_enumerated() {
            this.starts.push(u32::try_from(this.items.len()).unwrap_or(u32::MAX));
            let summary = summary(operand);
            if used.counts_as_read && !summary.any {
                this.items.extend(inside(facts, used.op));
            } else if used.counts_as_read {
                let found = Finder {
                    facts,
                    structure,
                    branches: &branches,
                    unordered_graphs,
                    read: operand,
                    op: used.op,
                    summary,
                }
                .find();
                this.items.extend(found);
            }
        }
        this.starts.push(u32::try_from(this.items.len()).unwrap_or(u32::MAX));
        this
    }

    /// The intervals of a read, in order.
    pub fn of(&self, read: OperandId) -> &[Span] {
        let next = OperandId::new(read.number() + 1);
        &self.items[self.starts[read] as usize..self.starts[next] as usize]
    }

    /// How many intervals there are in all.
    pub const fn len(&self) -> usize {
        self.items.len()
    }

    pub fn contains(&self, read: OperandId, position: u32) -> bool {
        let spans = self.of(read);
        let index = spans.partition_point(|span| span.last < position);
        spans.get(index).is_some_and(|span| span.contains(position))
    }
}

/// A read without definitions has nothing to lose, except that a region operation in place shares its buffer with its
/// iteration arguments: a write to the operand's value inside would store to them. Those writes conflict.
fn inside(facts: &Facts, op: OpId) -> Option<Span> {
    let Span { first, last } = facts.span(op);
    (first < last).then_some(Span { first: first + 1, last })
}

/// How the regions of an operation relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Branch {
    /// Any two are exclusive.
    Exclusive,
    /// No two are.
    Together,
    /// Some are: ask for each pair.
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
    unordered_graphs: bool,
    read: OperandId,
    op: OpId,
    summary: Summary,
}

impl Finder<'_> {
    fn find(&self) -> Vec<Span> {
        let (mut found, mut excluded) = (Vec::new(), Vec::new());
        self.add_unordered(&mut found);
        self.walk_outwards(&mut found, &mut excluded);
        self.add_straight(&mut found, &excluded);
        self.add_around_definition(&mut found);
        without(merged(found), self.facts.span(self.op).first)
    }

    fn is_unordered(&self, region: RegionId) -> bool {
        is_unordered_for(self.facts, self.read, region, self.unordered_graphs)
    }

    /// Rule 1, and regions with several blocks.
    fn add_unordered(&self, found: &mut Vec<Span>) {
        let region = self.facts.region_of(self.op);
        if let Some(unordered) = self.structure.unordered[region] {
            found.push(self.facts.region_spans[unordered]);
        }
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
        // The definition is in a loop that the read is not in: assume nothing.
        found.push(self.facts.region_spans[RegionId::new(0)]);
    }

    /// Rule 3, and what rule 2 leaves out, outwards: both lists of positions decrease.
    fn walk_outwards(&self, found: &mut Vec<Span>, excluded: &mut Vec<Span>) {
        let facts = self.facts;
        let mut op = self.op;
        loop {
            let region = facts.region_of(op);
            let span = facts.region_spans[region];
            if self.is_unordered(region) {
                excluded.push(Span { first: span.first, last: facts.span(op).first });
            }
            let Some(parent) = facts.regions()[region].op else { return };
            let around = facts.span(parent);
            let before = Span { first: around.first + 1, last: span.first - 1 };
            let after = Span { first: span.last + 1, last: around.last };
            match self.branches[parent] {
                Branch::Exclusive => excluded.push(before),
                Branch::Together if self.is_known_around(parent) => found.extend([before, after]),
                Branch::Together => {}
                Branch::Mixed => self.ask_siblings(parent, region, found, excluded),
            }
            op = parent;
        }
    }

    fn ask_siblings(&self, op: OpId, region: RegionId, found: &mut Vec<Span>, excluded: &mut Vec<Span>) {
        let start = self.facts.region_spans[region].first;
        // Last to first, to keep the exclusions in decreasing order.
        for &other in self.facts.regions_of(op).iter().rev().filter(|&&other| other != region) {
            let span = self.facts.region_spans[other];
            if !regions_are_exclusive(self.facts, region, other) {
                if self.is_known_around(op) {
                    found.push(span);
                }
            } else if span.first < start {
                excluded.push(span);
            }
        }
    }

    /// Whether a write in another region of `op` can come between a definition and the read.
    fn is_known_around(&self, op: OpId) -> bool {
        let position = self.facts.span(op).first;
        self.summary.first_op.is_some()
            || self.summary.outermost_argument.is_some_and(|region| self.facts.region_spans[region].contains(position))
    }

    /// Rule 2.
    fn add_straight(&self, found: &mut Vec<Span>, excluded: &[Span]) {
        let after_op = self.summary.first_op.map(|(op, _)| self.facts.span(op).last + 1);
        let in_region = self.summary.outermost_argument.map(|region| self.facts.region_spans[region].first);
        let Some(first) = after_op.into_iter().chain(in_region).min() else { return };
        let mut last = self.facts.span(self.op).last;
        for gap in excluded.iter().filter(|gap| gap.first <= gap.last) {
            if gap.last < first {
                break;
            }
            found.push(Span { first: gap.last + 1, last });
            if gap.first == 0 {
                return;
            }
            last = gap.first - 1;
        }
        found.push(Span { first, last });
    }

    /// Rule 4.
    fn add_around_definition(&self, found: &mut Vec<Span>) {
        let Some((op, _)) = self.summary.first_op else { return };
        let mut current = self.facts.parent_of(op);
        while let Some(op) = current {
            let writes = self.facts.operands_of(op).iter().any(|&operand| self.facts.operands()[operand].writes);
            if writes && !self.is_unordered(self.facts.region_of(op)) {
                let position = self.facts.span(op).first;
                found.push(Span { first: position, last: position });
            }
            current = self.facts.parent_of(op);
        }
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

/// Rule 5.
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
