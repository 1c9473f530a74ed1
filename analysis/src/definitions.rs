//! Definitions: values that determine the contents of their buffer, and a constant-size summary of those behind each value.
//!
//! `D(v)`, the definitions that reach a value `v`, is `{v}` if `v` is one, else the union over the values that `v` may
//! alias through its operands.
//! All definitions behind a value dominate each other in a chain, so conflict queries on the
//! whole set are answered by its first element of each kind (operation results, block arguments); the two kinds are
//! not comparable, and neither are two results of one operation, which is why [`DefiningResult::Several`] exists.
//!
//! Values are summarised once: block arguments first, then results in post-order along dominance, so that all values
//! behind a value are known (except in unreachable blocks). Time O(edges).

use crate::dominance::Structure;
use crate::facts::{Definition, Facts, ValueDef};
use crate::index::{BlockId, IndexVec, OpId, RegionId, ValueId};
use crate::order::dominance_post_order;

/// The results of the first defining operation that reach a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefiningResult {
    One(ValueId),
    Several,
}

/// Summary of the definitions behind a value, for conflicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    /// There is a definition.
    pub any: bool,
    /// The first defining operation and its results.
    pub first_op: Option<(OpId, DefiningResult)>,
    /// The block of the outermost block argument among the definitions.
    pub outermost_argument: Option<BlockId>,
    /// The outermost repetitive region around a definition (`None`: some definition is in no such region).
    pub repetitive: Option<RegionId>,
    /// One definition, for messages: the latest.
    pub latest: Option<ValueId>,
    /// Its position: twice that of its operation; for an argument just before the first one of its block.
    latest_place: u32,
    /// The innermost parallel region of all definitions and leaves.
    pub parallel: ParallelRegion,
}

/// The innermost parallel region around all definitions and leaves behind a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ParallelRegion {
    /// No definition or leaf seen yet.
    #[default]
    Unseen,
    /// The same for all (`None`: no parallel region).
    Same(Option<RegionId>),
    /// Not the same.
    Mixed,
}

impl ParallelRegion {
    fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unseen, known) | (known, Self::Unseen) => known,
            (a, b) if a == b => a,
            _ => Self::Mixed,
        }
    }
}

/// The summaries of all values.
#[derive(Clone, Debug)]
pub(crate) struct Definitions {
    pub summaries: IndexVec<ValueId, Summary>,
    pub is_definition: IndexVec<ValueId, bool>,
}

impl Definitions {
    pub fn new(facts: &Facts, structure: &Structure) -> Self {
        let mut this = Self {
            summaries: IndexVec::filled(Summary::default(), facts.values().len()),
            is_definition: IndexVec::filled(false, facts.values().len()),
        };
        for (value, info) in facts.values().iter_enumerated() {
            if matches!(info.def, ValueDef::Argument(_)) {
                this.is_definition[value] = true;
                this.summaries[value] = leaf(facts, structure, value, true);
            }
        }
        for op in dominance_post_order(facts) {
            for &result in facts.results_of(op) {
                this.summarise(facts, structure, op, result);
            }
        }
        this
    }

    fn summarise(&mut self, facts: &Facts, structure: &Structure, op: OpId, result: ValueId) {
        let is_definition = match facts.values()[result].info.buffer.definition {
            Definition::Always => true,
            Definition::Never => false,
            Definition::Inferred => self.infers_definition(facts, op, result),
        };
        self.is_definition[result] = is_definition;
        let sources = facts.sources(result);
        if is_definition || sources.is_empty() {
            self.summaries[result] = leaf(facts, structure, result, is_definition);
            return;
        }
        let mut summary = Summary::default();
        for (index, source) in sources.iter().enumerate() {
            let other = self.summaries[facts.operands()[source.operand].value];
            summary = if index == 0 { other } else { join(facts, structure, summary, other) };
        }
        self.summaries[result] = summary;
    }

    fn infers_definition(&self, facts: &Facts, op: OpId, result: ValueId) -> bool {
        let sources = facts.sources(result);
        let span = facts.span(op);
        let made_inside = |value: ValueId| {
            let summary = &self.summaries[value];
            summary.any && summary.latest_place > 2 * span.first && summary.latest_place <= 2 * span.last + 1
        };
        sources.is_empty()
            || sources.iter().any(|source| {
                let used = &facts.operands()[source.operand];
                used.writes || made_inside(used.value)
            })
    }
}

fn leaf(facts: &Facts, structure: &Structure, value: ValueId, is_definition: bool) -> Summary {
    let region = facts.defining_region(value);
    let parallel = ParallelRegion::Same(structure.parallel[region]);
    if !is_definition {
        return Summary { parallel, ..Summary::default() };
    }
    let first_op = facts.defining_op(value).map(|op| (op, DefiningResult::One(value)));
    let (outermost_argument, latest_place) = match facts.values()[value].def {
        ValueDef::Result(op) => (None, 2 * facts.span(op).first),
        ValueDef::Argument(block) => (Some(block), (2 * facts.places[block].start).saturating_sub(1)),
    };
    Summary {
        any: true,
        first_op,
        outermost_argument,
        repetitive: structure.repetitive[region],
        latest: Some(value),
        latest_place,
        parallel,
    }
}

fn join(facts: &Facts, structure: &Structure, a: Summary, b: Summary) -> Summary {
    let parallel = a.parallel.join(b.parallel);
    if !a.any || !b.any {
        return Summary { parallel, ..if a.any { a } else { b } };
    }
    let first_op = match (a.first_op, b.first_op) {
        (Some(first), Some(second)) if first.0 == second.0 => {
            Some((first.0, if first.1 == second.1 { first.1 } else { DefiningResult::Several }))
        }
        (Some(first), Some(second)) => {
            Some(if facts.span(first.0).first < facts.span(second.0).first { first } else { second })
        }
        (first, second) => first.or(second),
    };
    let outer = |a: RegionId, b: RegionId| {
        if structure.depth[a] <= structure.depth[b] { a } else { b }
    };
    let outermost_argument = match (a.outermost_argument, b.outermost_argument) {
        (Some(first), Some(second)) => Some(structure.outer_block(facts, first, second)),
        (first, second) => first.or(second),
    };
    let repetitive = match (a.repetitive, b.repetitive) {
        (Some(first), Some(second)) => Some(outer(first, second)),
        _ => None,
    };
    let later = if b.latest_place > a.latest_place { b } else { a };
    Summary {
        any: true,
        first_op,
        outermost_argument,
        repetitive,
        latest: later.latest,
        latest_place: later.latest_place,
        parallel,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text;

    /// Whichever operand it is, the earlier operation counts as the first.
    #[test]
    fn the_first_definition_is_the_earlier_one() {
        for operands in ["%0>?%2, %1>?%2", "%1>?%2, %0>?%2"] {
            let input = format!("%0<always> = tensor\n%1<always> = tensor\n%2 = select {operands}\nread r%2");
            let (facts, _) = text::parse(&input).expect("facts are well-formed");
            let definitions = Definitions::new(&facts, &Structure::new(&facts));
            let summary = definitions.summaries[ValueId::new(2)];
            let ops = [0, 1].map(|value| facts.defining_op(ValueId::new(value)));
            assert_eq!(summary.first_op.map(|(op, _)| Some(op)), Some(ops[0]), "{operands}");
            assert_eq!(summary.latest, Some(ValueId::new(1)), "{operands}");
        }
    }
}
