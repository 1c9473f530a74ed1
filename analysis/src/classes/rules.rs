//! The conflict rules for one read and one write, in constant time except for the search of an interval.
//!
//! A write conflicts with a read if its position is in one of the read's intervals ([`crate::intervals`]), or it is on
//! the operation of the read's first definition and does not define that; unless slices exclude it.
//! A read and a write of one operation have a rule of their own.

use super::Classes;
use crate::definitions::{DefiningResult, ParallelRegion};
use crate::dominance::is_unordered_for;
use crate::index::OperandId;
use crate::trees::NONE;

impl Classes<'_> {
    /// Whether the read may see what the write stores, if they are in one class.
    pub fn is_conflict(&self, read: OperandId, write: OperandId, steps: &mut u64) -> bool {
        *steps += 1;
        let (used, stored) = (&self.facts.operands()[read], &self.facts.operands()[write]);
        if used.op == stored.op {
            return self.is_conflict_on_op(read, write);
        }
        let hit = self.intervals.contains(read, self.position(write)) || self.is_conflict_at_definition(read, write);
        hit && !self.slices_exclude(read, write) && !self.are_disjoint(read, write)
    }

    /// Whether the two touch no common element, as far as that counts.
    pub(super) fn are_disjoint(&self, read: OperandId, write: OperandId) -> bool {
        let Some(footprints) = &self.footprints else { return false };
        let scope = self.structure.repeated(self.facts, self.facts.operands()[read].op, self.summary(read).repetitive);
        footprints.are_disjoint(self.facts, read, write, scope)
    }

    /// The write is on the operation of the read's first definition, and does not define that value.
    fn is_conflict_at_definition(&self, read: OperandId, write: OperandId) -> bool {
        let op = self.facts.operands()[write].op;
        match self.summary(read).first_op {
            Some((first, result)) if first == op => {
                let graph = is_unordered_for(self.facts, read, self.facts.region_of(op), self.unordered_graphs);
                let made = self.facts.made_by(write).is_some_and(|value| result == DefiningResult::One(value));
                !made && !graph
            }
            _ => false,
        }
    }

    fn is_conflict_on_op(&self, read: OperandId, write: OperandId) -> bool {
        let (used, stored) = (&self.facts.operands()[read], &self.facts.operands()[write]);
        let summary = self.summary(read);
        if !summary.any {
            return false;
        }
        let region = self.facts.region_of(used.op);
        let in_order = !self.intervals.repeats(read) && self.structure.repetitive[region] == summary.repetitive;
        // A single use, unordered operations, or elementwise access.
        let excluded = in_order
            && (read == write
                || is_unordered_for(self.facts, read, region, self.unordered_graphs)
                || (used.elementwise
                    && stored.elementwise
                    && self.subsets.are_same_buffer(self.facts, used.value, stored.value)));
        !excluded && !self.slices_exclude(read, write) && !self.are_disjoint(read, write)
    }

    fn slices_exclude(&self, read: OperandId, write: OperandId) -> bool {
        let (used, stored) = (&self.facts.operands()[read], &self.facts.operands()[write]);
        // The operation overwrites the slice that the write touches, so the read does not need it.
        let overwritten = self.subsets.overwritten_by(self.facts, read);
        if overwritten.is_some_and(|range| self.subsets.matches(stored.value, range)) {
            return true;
        }
        // The write restores the contents that its source, and every other reader of that value (or of its slices), reads anyway.
        self.subsets.rewritten_source(self.facts, write).is_some_and(|source| {
            let source = self.facts.operands()[source].value;
            source == used.value || (self.footprints.is_some() && self.facts.is_slice_of(used.value, source))
        })
    }

    /// Whether two that conflict for an index do not by what it does not know.
    pub(super) fn are_excused(&self, read: OperandId, write: OperandId) -> bool {
        self.footprints.is_some() && (self.are_disjoint(read, write) || self.slices_exclude(read, write))
    }

    pub(super) fn colour_of_write(&self, write: OperandId) -> u32 {
        let source = self.subsets.rewritten_source(self.facts, write);
        source.map_or(NONE, |source| self.facts.operands()[source].value.number())
    }

    pub(super) fn is_shared_by_iterations(&self, write: OperandId) -> bool {
        let own = self.structure.parallel[self.facts.region_of(self.facts.operands()[write].op)];
        self.summary(write).parallel != ParallelRegion::Same(own)
    }
}
