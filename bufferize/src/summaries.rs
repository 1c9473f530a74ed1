//! Summaries of decided functions, for their callers.

use std::collections::HashMap;

use monopour_analysis::calls::{self, Summary};
use monopour_analysis::one_shot::Decisions;
use monopour_ir::{Op, Value};

use crate::boundary::{declared_access, returns_of};
use crate::collect::Collected;

/// The summary of a decided function.
pub(crate) fn summarise(function: Op, collected: &Collected, decisions: &Decisions) -> Summary {
    let id = |value: Value| collected.value_ids.get(&value).copied();
    let arguments: Vec<_> = function.body().map(|b| b.args()).unwrap_or_default().into_iter().map(id).collect();
    let returns: Vec<Vec<_>> =
        returns_of(function).into_iter().map(|op| op.operands().into_iter().map(id).collect()).collect();
    let mut summary = calls::summarise(&collected.facts, decisions, &arguments, &returns);
    declared_access(function, &mut summary);
    summary
}

/// For each operand of a return the first equivalent argument.
pub(crate) fn equivalent_arguments(
    function: Op,
    returned: Op,
    collected: &Collected,
    decisions: &Decisions,
) -> Vec<Option<usize>> {
    let class = |value: &Value| collected.value_ids.get(value).map(|id| decisions.equivalence_class(*id));
    let mut by_class = HashMap::new();
    for (index, argument) in function.body().map(|b| b.args()).unwrap_or_default().iter().enumerate() {
        if let Some(class) = class(argument) {
            by_class.entry(class).or_insert(index);
        }
    }
    returned.operands().iter().map(|value| by_class.get(&class(value)?).copied()).collect()
}
