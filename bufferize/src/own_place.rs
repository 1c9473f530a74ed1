//! Insertions without effect, because their source was computed in place.
//!
//! ```text
//! %s = tensor.extract_slice %d[8] [4] [1]              the same memory as %d[8] [4] [1]
//! %a = linalg.fill ins(%z) outs(%s)                    in place
//! %r = tensor.insert_slice %a into %d[8] [4] [1]       copies nothing
//! ```

use monopour_ir::ops;
use std::collections::{HashMap, HashSet};

use monopour_analysis::facts::{Facts, Relation, Subset};
use monopour_analysis::index::{SliceId, ValueId};
use monopour_analysis::one_shot::{Decisions, InPlaceAnalysis};
use monopour_ir::{Op, Value};

use crate::collect::Collected;

/// Inserts whose source already is the slice of the destination that they overwrite.
///
/// Some slice was extracted in place from the same buffer with the same offsets, sizes and strides,
/// and the source is equivalent to that slice.
pub(crate) fn inserts_in_place<'c>(collected: &Collected<'c>, decisions: &Decisions) -> HashSet<Op<'c>> {
    let facts = &collected.facts;
    let class = |operand| decisions.equivalence_class(facts.operands()[operand].value);
    let mut places = Places { facts, decisions, slices: HashMap::new(), known: HashMap::new() };
    for op in facts.ops().iter() {
        if let Some(Subset::Extraction { container, result, slice }) = op.subset
            && decisions.is_in_place(container)
        {
            places.slices.entry(decisions.equivalence_class(result)).or_insert((class(container), slice));
        }
    }
    let mut found = HashSet::new();
    for (id, op) in facts.ops().iter_enumerated() {
        if let Some(Subset::Insertion { source: Some(source), destination, slice }) = op.subset {
            let in_place = decisions.is_in_place(source) && decisions.is_in_place(destination);
            let is_there = match slice {
                Some(slice) => places.of(facts.operands()[source].value) == Some((class(destination), slice)),
                None => class(source) == class(destination),
            };
            if in_place && is_there {
                found.insert(collected.ops[id]);
            }
        }
    }
    found.extend(materialised_in_place(collected, decisions));
    found
}

/// Tensors to be materialised in a buffer to which they already are equivalent.
fn materialised_in_place<'c>(collected: &Collected<'c>, decisions: &Decisions) -> Vec<Op<'c>> {
    let class = |value: &Value<'c>| collected.value_ids.get(value).map(|v| decisions.equivalence_class(*v));
    let is_buffer = |op: &Op<'c>| op.is(ops::bufferization::TO_TENSOR);
    let buffers: HashMap<_, _> = collected
        .ops
        .iter()
        .filter(|op| is_buffer(op))
        .filter_map(|op| Some((class(&op.result(0))?, op.operand(0))))
        .collect();
    let is_there = |op: &Op<'c>| {
        let in_place = collected.operand_ids.get(&(*op, 0)).is_some_and(|id| decisions.is_in_place(*id));
        in_place && class(&op.operand(0)).and_then(|c| buffers.get(&c)) == Some(&op.operand(1))
    };
    let materialised =
        |op: &&Op<'c>| op.is(ops::bufferization::MATERIALIZE_IN_DESTINATION) && op.operand(1).ty().is_memref();
    collected.ops.iter().filter(materialised).filter(|op| is_there(op)).copied().collect()
}

/// A slice of a buffer, by the buffer's equivalence class.
type Place = (ValueId, SliceId);

/// The slice and buffer to which values are equivalent.
struct Places<'a> {
    facts: &'a Facts,
    decisions: &'a Decisions,
    /// By equivalence class: slices extracted in place.
    slices: HashMap<ValueId, Place>,
    known: HashMap<ValueId, Option<Place>>,
}

impl Places<'_> {
    fn of(&mut self, value: ValueId) -> Option<Place> {
        if let Some(place) = self.slices.get(&self.decisions.equivalence_class(value)) {
            return Some(*place);
        }
        if let Some(known) = self.known.get(&value) {
            return *known;
        }
        // A value that is its own source is no known slice.
        self.known.insert(value, None);
        let mut places = HashSet::new();
        for source in self.facts.sources(value) {
            let stays = source.relation == Relation::Equivalent && self.decisions.is_in_place(source.operand);
            let place = if stays { self.of(self.facts.operands()[source.operand].value) } else { None };
            places.insert(place);
        }
        let place = if places.len() == 1 { places.into_iter().next().flatten() } else { None };
        self.known.insert(value, place);
        place
    }
}
