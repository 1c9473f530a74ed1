//! What the rewrite would copy of contents, as an order among changes of a function.

use monopour_analysis::cost::{cost, cost_of_contents, cost_of_results};
use monopour_analysis::index::OperandId;
use monopour_analysis::one_shot::InPlaceAnalysis;
use monopour_ir::Op;

use crate::collect::Collected;
use crate::eliminate_empty_tensors::Analysed;
use crate::own_place::inserts_in_place;
use crate::subset_extraction::insertion_operands;

/// Copies of contents; less is better, the first field first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Copied {
    /// Bytes in all iterations: of operands out of place, of insertions, of what loops hand on, of results that share a buffer.
    pub(crate) bytes: u64,
    /// Operands out of place, and insertions.
    pub(crate) count: usize,
    /// Those of dynamic size.
    pub(crate) dynamic: usize,
}

/// What a function copies by its decisions.
pub(crate) fn copied(Analysed { collected, decisions }: &Analysed) -> Copied {
    let facts = &collected.facts;
    let in_place = inserts_in_place(collected, decisions);
    let is_copied = |op: &Op| !in_place.contains(op);
    let inserted: Vec<_> =
        collected.ops.iter().copied().filter(is_copied).filter_map(|op| source(collected, op)).collect();
    let out_of_place = collected.operands.ids().filter(|id| decisions.copy(*id).is_some_and(|copy| copy.contents));
    let is_dynamic = |id: &OperandId| {
        let result = decisions.copy(*id).and_then(|copy| copy.result);
        facts.values()[result.unwrap_or(facts.operands()[*id].value)].info.size_bytes.is_none()
    };
    let all: Vec<_> = out_of_place.chain(inserted.iter().copied()).collect();
    let beside = cost_of_contents(facts, &inserted).plus(cost_of_results(facts, decisions));
    Copied {
        bytes: cost(facts, decisions).plus(beside).bytes,
        count: all.len(),
        dynamic: all.iter().filter(|id| is_dynamic(id)).count(),
    }
}

/// Bytes that insertions copy whose sources are not in their places.
pub(crate) fn inserted_bytes<'c>(collected: &Collected<'c>, insertions: impl Iterator<Item = Op<'c>>) -> u64 {
    let sources: Vec<_> = insertions.filter_map(|op| source(collected, op)).collect();
    cost_of_contents(&collected.facts, &sources).bytes
}

/// The source of an insertion.
fn source<'c>(collected: &Collected<'c>, op: Op<'c>) -> Option<OperandId> {
    let (source, _) = insertion_operands(op)?;
    collected.operand_ids.get(&(op, source)).copied()
}
