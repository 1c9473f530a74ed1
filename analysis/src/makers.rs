//! The value that the write of an operand makes, so that a read of that value expects the written contents.
//!
//! ```text
//! %1 = fill %0                 the write to %0 makes %1
//! %1, %2 = unknown %0          it makes neither: which one is unknown
//! %2 = call %0, %1             both writes may make %2, if %0 and %1 are two buffers: then one write cannot overwrite
//!                              the other's contents. If they may be one buffer, nothing is known.
//! ```
//!
//! Two values may be one buffer if a common value is behind both. Walks end after [`MOST`] values, with
//! the conservative answer. (The reference does not check: `f(%0, %0)` with two written arguments loses one write.)

use crate::facts::Facts;
use crate::index::{IndexVec, OperandId, ValueId};

/// The most values visited behind an operand, and the most writes to one value.
const MOST: usize = 64;

/// For each operand that writes, the value that it makes.
pub(crate) fn makers(facts: &Facts) -> IndexVec<OperandId, Option<ValueId>> {
    let mut is_shared = IndexVec::filled(false, facts.values.len());
    for &(a, b) in &facts.shared {
        (is_shared[a], is_shared[b]) = (true, true);
    }
    let writers: IndexVec<ValueId, Writers> = facts.values.ids().map(|value| writers_of(facts, value)).collect();
    facts.operands.ids().map(|operand| made_by(facts, &is_shared, &writers, operand)).collect()
}

/// The operands that write to the buffer of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writers {
    None,
    One(OperandId),
    Several,
}

/// Computed once per value, not per operand: a result of a switch has as many sources as there are cases.
fn writers_of(facts: &Facts, value: ValueId) -> Writers {
    let sources = facts.sources.of(value).iter().map(|source| source.operand);
    sources.filter(|&id| facts.operands[id].writes).fold(Writers::None, |found, id| match found {
        Writers::None => Writers::One(id),
        Writers::One(other) if other == id => found,
        _ => Writers::Several,
    })
}

fn made_by(
    facts: &Facts,
    is_shared: &IndexVec<ValueId, bool>,
    writers: &IndexVec<ValueId, Writers>,
    write: OperandId,
) -> Option<ValueId> {
    let [alias] = facts.aliases.of(write) else { return None };
    if [Writers::None, Writers::One(write)].contains(&writers[alias.value]) {
        return Some(alias.value);
    }
    let sources = facts.sources.of(alias.value);
    if sources.len() > MOST {
        return None;
    }
    let others = || sources.iter().map(|source| source.operand).filter(|&id| id != write && facts.operands[id].writes);
    let own = behind(facts, is_shared, facts.operands[write].value)?;
    let is_apart = |other: OperandId| {
        behind(facts, is_shared, facts.operands[other].value)
            .is_some_and(|values| values.iter().all(|value| !own.contains(value)))
    };
    others().all(is_apart).then_some(alias.value)
}

/// The value and all values that it may alias through operands, loops included; `None` if unknown or too many.
fn behind(facts: &Facts, is_shared: &IndexVec<ValueId, bool>, value: ValueId) -> Option<Vec<ValueId>> {
    let (mut seen, mut next) = (vec![value], 0);
    while next < seen.len() {
        if seen.len() > MOST || is_shared[seen[next]] {
            return None;
        }
        let sources = facts.sources.of(seen[next]).iter().map(|source| source.operand);
        for operand in sources.chain(facts.flows.of(seen[next]).iter().copied()) {
            let other = facts.operands[operand].value;
            if !seen.contains(&other) {
                seen.push(other);
            }
        }
        next += 1;
    }
    Some(seen)
}
