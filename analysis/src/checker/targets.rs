//! The values that receive the contents of operands.

use crate::facts::{Facts, ValueDef};
use crate::index::{IndexVec, OperandId, ValueId};

/// Values that each operand flows to: arguments and results of region operations, arguments of other blocks.
pub(super) fn targets(facts: &Facts) -> IndexVec<OperandId, Vec<ValueId>> {
    let mut targets = IndexVec::filled(Vec::new(), facts.operands().len());
    for value in facts.values().ids() {
        for &operand in facts.flows(value) {
            targets[operand].push(value);
        }
        // A branch forwards its operand to an argument of another block.
        if matches!(facts.values()[value].def, ValueDef::Argument(_)) {
            for source in facts.sources(value) {
                let known = &mut targets[source.operand];
                if !known.contains(&value) {
                    known.push(value);
                }
            }
        }
    }
    targets
}
