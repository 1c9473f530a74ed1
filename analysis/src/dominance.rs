//! Order and nesting: what happens before what, what runs several times, what never runs together.
//!
//! In structured code `a` happens before `b` iff `a` stands earlier, does not enclose `b`, and the innermost thing
//! around both is a block (not an operation with two regions).
//! Regions with several blocks are *unordered*: nothing in them happens before anything else in them, which is what
//! loops of blocks need, and is more than straight branches need.

use crate::facts::Facts;
use crate::index::{IndexVec, OpId, RegionId, ValueId};

/// Facts about each region that depend on the regions around it.
#[derive(Clone, Debug)]
pub(crate) struct Structure {
    /// How many regions are around the region.
    pub depth: IndexVec<RegionId, u32>,
    /// The innermost repetitive region around operations of the region (itself included).
    pub repetitive: IndexVec<RegionId, Option<RegionId>>,
    /// The innermost parallel region around operations of the region (itself included).
    pub parallel: IndexVec<RegionId, Option<RegionId>>,
    /// The outermost region with several blocks around operations of the region (itself included).
    pub unordered: IndexVec<RegionId, Option<RegionId>>,
}

impl Structure {
    pub fn new(facts: &Facts) -> Self {
        let count = facts.regions().len();
        let mut this = Self {
            depth: IndexVec::filled(0, count),
            repetitive: IndexVec::filled(None, count),
            parallel: IndexVec::filled(None, count),
            unordered: IndexVec::filled(None, count),
        };
        this.enter(facts, RegionId::new(0));
        // Pre-order: the region around an operation is known before those of the operation.
        for &op in &facts.order {
            for &region in facts.regions_of(op) {
                this.enter(facts, region);
            }
        }
        this
    }

    fn enter(&mut self, facts: &Facts, region: RegionId) {
        let outer = facts.enclosing_region(region);
        let info = facts.regions()[region].info;
        let several = facts.blocks_of(region).len() > 1;
        self.depth[region] = outer.map_or(0, |outer| self.depth[outer] + 1);
        self.repetitive[region] = if info.repetitive {
            Some(region)
        } else {
            outer.and_then(|r| self.repetitive[r])
        };
        self.parallel[region] = if info.parallel {
            Some(region)
        } else {
            outer.and_then(|r| self.parallel[r])
        };
        let inherited = outer.and_then(|outer| self.unordered[outer]);
        self.unordered[region] = inherited.or(if several { Some(region) } else { None });
    }

    /// Whether both operations are in one region with several blocks.
    pub fn are_unordered(&self, facts: &Facts, a: OpId, b: OpId) -> bool {
        self.unordered[facts.region_of(a)]
            .is_some_and(|region| facts.region_spans[region].contains(facts.span(b).first))
    }

    /// The repetitive region around the value's definition.
    pub fn repetitive_around(&self, facts: &Facts, value: ValueId) -> Option<RegionId> {
        self.repetitive[facts.defining_region(value)]
    }
}

/// Whether the first operation happens before the second one (its effects are complete before the other begins).
pub(crate) fn happens_before(facts: &Facts, a: OpId, b: OpId) -> bool {
    match common(facts, a, b) {
        Common::Nested {
            inner_is_same_or_encloses_first: true,
            outer,
        } => facts.regions()[facts.region_of(outer)].info.graph,
        Common::Nested { .. } | Common::Siblings(..) => false,
        Common::Block(region) => {
            facts.regions()[region].info.graph || facts.span(a).first < facts.span(b).first
        }
    }
}

/// Whether the two operations are in regions of one region branch op of which only one runs.
pub(crate) fn are_exclusive(facts: &Facts, a: OpId, b: OpId) -> bool {
    match common(facts, a, b) {
        Common::Siblings(op, first, second) => {
            facts.ops()[op].region_branch && regions_are_exclusive(facts, first, second)
        }
        _ => false,
    }
}

/// Whether neither of two regions of a region branch op is reachable from the other.
pub(crate) fn regions_are_exclusive(facts: &Facts, a: RegionId, b: RegionId) -> bool {
    !is_reachable(facts, a, b) && !is_reachable(facts, b, a)
}

fn is_reachable(facts: &Facts, from: RegionId, to: RegionId) -> bool {
    let mut seen = vec![from];
    let mut next = 0;
    while next < seen.len() {
        for &successor in facts.region_successors.of(seen[next]) {
            if successor == to {
                return true;
            }
            if !seen.contains(&successor) {
                seen.push(successor);
            }
        }
        next += 1;
    }
    false
}

/// What the innermost thing around two operations is.
enum Common {
    /// One encloses the other or is the other: `outer`. True if the second one is the outer one.
    Nested {
        inner_is_same_or_encloses_first: bool,
        outer: OpId,
    },
    /// They, or operations around them, stand in this region.
    Block(RegionId),
    /// They are in two regions of one operation.
    Siblings(OpId, RegionId, RegionId),
}

fn common(facts: &Facts, a: OpId, b: OpId) -> Common {
    let (span_a, span_b) = (facts.span(a), facts.span(b));
    if span_b.contains(span_a.first) {
        return Common::Nested {
            inner_is_same_or_encloses_first: true,
            outer: b,
        };
    }
    if span_a.contains(span_b.first) {
        return Common::Nested {
            inner_is_same_or_encloses_first: false,
            outer: a,
        };
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
    let other = facts
        .regions_of(op)
        .iter()
        .find(|&&region| facts.region_spans[region].contains(position));
    Common::Siblings(op, first, *other.unwrap_or(&first))
}
