//! Values that a backward walk meets twice, where the reference gives up.
//!
//! ```text
//! %s = extract %t [K]       A walk from %v: %v, %y, %x, %s (the second operand first, to the end), then %x again:
//! %x = cast %s              not an extraction, so %v is not taken for the slice K. Had the select named %x first
//!                              and %y second, %x would still be pending, and it is.
//! %v = select %x, %y
//! ```
//!
//! The walk is last in, first out; a pending value is not added again. It stops at slices that match.
//! All walks from a value pass its parent in the tree of [`crate::subsets`], so the walk above the parent is determined
//! by the first value there that it reaches, and only the part below it is walked again:
//! * a value below the parent that is met twice excludes every slice;
//! * the value at the parent excludes every slice except itself, if it is one. A second extraction of the same slice
//!   meets the same container again.
//!
//! The steps of all walks are limited to [`STEPS`] per value; beyond, values with several sources match no
//! slice, which only adds copies.

use std::collections::HashSet;

use crate::facts::Facts;
use crate::forest::{Forest, Node, ROOT, slice_depth};
use crate::index::{IndexVec, ValueId};

/// Steps per value of the function. Reconvergent ladders would take quadratically many.
const STEPS: u64 = 16;

/// The least depth of a slice that each value may match.
#[derive(Clone, Debug)]
pub(crate) struct Revisits {
    pub least_depths: IndexVec<ValueId, u32>,
    pub steps: u64,
}

/// Computes the least depths; `order` has the sources of a value before it.
pub(crate) fn least_depths(
    facts: &Facts,
    forest: &Forest,
    nodes: &IndexVec<ValueId, Node>,
    order: &[ValueId],
) -> Revisits {
    let count = facts.values().len();
    let mut finder = Finder {
        facts,
        forest,
        nodes,
        known: Revisits { least_depths: IndexVec::filled(0, count), steps: 0 },
        left: STEPS.saturating_mul(count as u64),
    };
    for &value in order {
        finder.known.least_depths[value] = finder.least_depth(value);
    }
    finder.known
}

struct Finder<'a> {
    facts: &'a Facts,
    forest: &'a Forest,
    nodes: &'a IndexVec<ValueId, Node>,
    known: Revisits,
    left: u64,
}

impl Finder<'_> {
    fn behind(&self, value: ValueId) -> impl Iterator<Item = ValueId> {
        self.facts.sources(value).iter().map(|source| self.facts.operands()[source.operand].value)
    }

    fn least_depth(&mut self, value: ValueId) -> u32 {
        let Some(first) = self.behind(value).next() else { return 0 };
        if self.behind(value).all(|other| other == first) {
            return self.known.least_depths[first];
        }
        // All walks from a value with several sources pass its parent.
        let parent = self.forest.parent(self.nodes[value]);
        if parent == ROOT { 0 } else { self.replay(value, parent) }
    }

    /// Walk from the value to the parent.
    fn replay(&mut self, start: ValueId, parent: Node) -> u32 {
        let depth = self.forest.depth(parent);
        let (mut stack, mut waits, mut seen) = (vec![start], HashSet::from([start]), HashSet::new());
        let mut reached: Option<ValueId> = None;
        let mut least = 0;
        while let Some(value) = stack.pop() {
            self.known.steps += 1;
            self.left = self.left.saturating_sub(1);
            if self.left == 0 {
                return slice_depth(depth) + 2;
            }
            waits.remove(&value);
            if self.forest.depth(self.nodes[value]) <= depth {
                match reached {
                    None => {
                        reached = Some(value);
                        least = least.max(self.known.least_depths[value]);
                    }
                    Some(first) => least = least.max(self.second_visit(first, value)),
                }
                continue;
            }
            if !seen.insert(value) {
                return slice_depth(depth) + 2;
            }
            let behind: Vec<_> = self.behind(value).collect();
            stack.extend(behind.into_iter().filter(|&other| waits.insert(other)));
        }
        least
    }

    /// The least depth after the walk reaches the parent again.
    fn second_visit(&self, first: ValueId, second: ValueId) -> u32 {
        let slice = self.facts.extracted(second);
        let again = match slice {
            Some((container, _)) if first != second => container,
            _ => second,
        };
        let is_slice = self.facts.extracted(again).is_some();
        slice_depth(self.forest.depth(self.nodes[again])) + u32::from(!is_slice)
    }
}
