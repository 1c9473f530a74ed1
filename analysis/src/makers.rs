//! Which value the write of an operand makes: then a read of that value wants what was written.
//!
//! ```text
//! %1 = fill %0                 the write to %0 makes %1
//! %1, %2 = unknown %0          it makes neither: who knows which
//! %2 = call %0, %1             both writes may make %2, if %0 and %1 are two buffers: then one write cannot spoil
//!                              what the other one made. If they may be one buffer, nothing is known.
//! ```
//!
//! Two values may be one buffer if something behind both is the same value. Walks end after [`MOST`] values, and then
//! the answer is the cautious one. (The reference does not ask: `f(%0, %0)` with two written arguments loses one.)

use crate::facts::Facts;
use crate::index::{IndexVec, OperandId, ValueId};

/// How many values behind an operand are looked at, and how many writes to one value.
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

/// The operands that write to what becomes a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writers {
    None,
    One(OperandId),
    Several,
}

/// Looked up once per value, not per operand: a result of a switch has as many sources as there are cases.
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

/// The value and everything whose buffer it may be, loops included; none if that is not known or too much.
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
