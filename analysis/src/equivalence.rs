//! Consequences of placements: equivalence classes, and the contents of each copy.

use crate::alias_sets::AliasSets;
use crate::facts::{Facts, Relation, Source};
use crate::index::{IndexVec, OperandId, ValueId};
use crate::order::dominance_post_order;
use crate::placement::{Copy, Placement};

/// The equivalence class of each value, by a representative.
///
/// Operations in post-order: a loop's body comes before the loop, so that the equivalence of a yielded value and the
/// iteration argument is known when the loop's results are processed.
pub(crate) fn classes(facts: &Facts, placements: &IndexVec<OperandId, Placement>) -> IndexVec<ValueId, ValueId> {
    let mut sets = AliasSets::new(facts.values().len());
    for op in dominance_post_order(facts) {
        for &result in facts.results_of(op) {
            join_result(facts, placements, &mut sets, result);
        }
    }
    facts.values().ids().map(|value| sets.find(value)).collect()
}

/// Join a result with the values that it is equivalent to; results before it are joined.
pub(crate) fn join_result(
    facts: &Facts,
    placements: &IndexVec<OperandId, Placement>,
    sets: &mut AliasSets,
    result: ValueId,
) {
    let sources = facts.sources(result);
    let is_equivalent = |sets: &mut AliasSets, source: &Source| {
        placements[source.operand] == Placement::InPlace && holds(sets, source.relation)
    };
    // One definite source is enough.
    if let Some(source) = sources.iter().find(|source| source.definite && is_equivalent(sets, source)) {
        sets.union(result, facts.operands()[source.operand].value);
        return;
    }
    // Several possible sources, all equivalent.
    let Some(first) = sources.first() else { return };
    let first = facts.operands()[first.operand].value;
    if facts.values()[result].info.buffer.allocates {
        return;
    }
    let same = sources.iter().all(|source| {
        is_equivalent(sets, source) && sets.find(facts.operands()[source.operand].value) == sets.find(first)
    });
    if same {
        sets.union(result, first);
    }
}

fn holds(sets: &mut AliasSets, relation: Relation) -> bool {
    match relation {
        Relation::Equivalent => true,
        Relation::Unknown => false,
        Relation::EquivalentIf { first, second } => {
            [Some(first), second].into_iter().flatten().all(|(a, b)| sets.find(a) == sets.find(b))
        }
    }
}

/// Whether a relation holds by identity of values alone, without equivalence classes.
pub(crate) fn holds_by_identity(relation: Relation) -> bool {
    match relation {
        Relation::Equivalent => true,
        Relation::Unknown => false,
        Relation::EquivalentIf { first, second } => first.0 == first.1 && second.is_none_or(|(a, b)| a == b),
    }
}

/// The copy for a use that is out of place; `is_defined`: some definition reaches its value.
pub(crate) fn copy_for(facts: &Facts, operand: OperandId, is_defined: bool) -> Copy {
    let used = &facts.operands()[operand];
    let aliases = facts.aliasing_values(operand);
    // A slice that must not share memory with its container: copy the slice, it is smaller.
    let result = match aliases {
        [alias] if !used.writes && facts.sources(alias.value).len() == 1 => {
            // An unranked tensor cannot be copied.
            Some(alias.value).filter(|&v| facts.defining_op(v).is_some() && facts.values()[v].info.ranked)
        }
        _ => None,
    };
    // No contents are needed if they are undefined, overwritten before a read, or never read.
    let overwritten = used.writes && !used.reads;
    let unread = !used.reads && aliases.iter().all(|alias| !facts.is_value_read(alias.value));
    let contents = !overwritten && !unread && is_defined;
    Copy { result, contents }
}
