//! What a caller has to know about a function: which arguments it reads and writes, and which results may be an
//! argument's buffer.
//!
//! Decided functions are summarised callees first; a call's operands then get their facts from the summary.
//! A function that is not analysed (external, or in a cycle of calls) gets [`Summary::unknown`].

use crate::facts::{Facts, ValueDef};
use crate::index::{OperandId, ValueId};
use crate::one_shot::{Decisions, InPlaceAnalysis};

/// How a function uses one tensor argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentSummary {
    /// The contents may be loaded.
    pub reads: bool,
    /// The buffer may be stored to.
    pub writes: bool,
    /// The results that may be the argument's buffer.
    pub aliasing_results: Vec<u32>,
}

/// What is known about a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// By tensor argument.
    pub arguments: Vec<ArgumentSummary>,
    /// For each tensor result, the argument that it always is the buffer of.
    pub equivalent_arguments: Vec<Option<u32>>,
}

impl Summary {
    /// The worst case: every argument is read and written and may be every result.
    pub fn unknown(arguments: u32, results: u32) -> Self {
        let argument = ArgumentSummary { reads: true, writes: true, aliasing_results: (0..results).collect() };
        Self { arguments: vec![argument; arguments as usize], equivalent_arguments: vec![None; results as usize] }
    }

    /// Whether a call's operand for this argument aliases this result, and certainly is its buffer: the argument may
    /// be one result only, and that result always is this argument.
    pub fn is_equivalent(&self, argument: u32, result: u32) -> bool {
        let only = self.arguments.get(argument as usize).is_some_and(|info| info.aliasing_results == [result]);
        only && self.equivalent_arguments.get(result as usize) == Some(&Some(argument))
    }
}

/// Summarise a decided function.
///
/// `arguments`: the tensor arguments of the entry block. `returns`: for each return, its tensor operands in the order
/// of the results; a function without a return has no results.
/// Time O((uses + arguments * results) * returns).
pub fn summarise(facts: &Facts, decisions: &Decisions, arguments: &[ValueId], returns: &[Vec<OperandId>]) -> Summary {
    let results = returns.iter().map(Vec::len).max().unwrap_or(0);
    let returned = |result: usize| {
        returns.iter().filter_map(move |operands| operands.get(result)).map(|&operand| facts.operands()[operand].value)
    };
    let mut written = std::collections::HashSet::new();
    for (operand, used) in facts.operands().iter_enumerated() {
        if used.writes && decisions.is_in_place(operand) {
            written.insert(decisions.alias_class(used.value));
        }
    }
    let number = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
    let arguments_info = arguments
        .iter()
        .map(|&argument| {
            debug_assert!(matches!(facts.values()[argument].def, ValueDef::Argument(_)));
            let aliases = |result: &usize| returned(*result).any(|value| decisions.may_alias(value, argument));
            ArgumentSummary {
                reads: facts.is_value_read(argument),
                writes: written.contains(&decisions.alias_class(argument)),
                aliasing_results: (0..results).filter(aliases).map(number).collect(),
            }
        })
        .collect();
    let equivalent_arguments = (0..results)
        .map(|result| {
            let is_returned = |argument: &&ValueId| {
                let mut values = returned(result).peekable();
                values.peek().is_some() && values.all(|value| decisions.are_equivalent(value, **argument))
            };
            arguments.iter().position(|argument| is_returned(&argument)).map(number)
        })
        .collect();
    Summary { arguments: arguments_info, equivalent_arguments }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::{Summary, summarise};
    use crate::index::{BlockId, Id, OperandId};
    use crate::one_shot::{Options, decide};
    use crate::text;

    /// The last line of the facts is the return.
    fn check(input: &str, expected: Expect) {
        let (facts, _) = text::parse(input).expect("facts are well-formed");
        let decisions = decide(&facts, &Options::default()).expect("facts can be decided");
        let last = facts.operands().ids().last().map_or(0, Id::index);
        let op = facts.operands()[OperandId::from_index(last)].op;
        let returns = vec![facts.operands_of(op).to_vec()];
        let summary = summarise(&facts, &decisions, facts.arguments_of(BlockId::new(0)), &returns);
        expected.assert_eq(&format!("{summary:?}"));
    }

    #[test]
    fn argument_that_is_updated_and_returned() {
        check(
            "block(%a, %b)\n%0 = insert r%b, rw%a>%0\nreturn r%0",
            expect![
                "Summary { arguments: [ArgumentSummary { reads: true, writes: true, aliasing_results: [0] }, ArgumentSummary { reads: true, writes: false, aliasing_results: [] }], equivalent_arguments: [Some(0)] }"
            ],
        );
    }

    #[test]
    fn argument_that_is_copied() {
        check(
            "block(%a<frozen>)\n%0 = insert rw%a>%0\nreturn r%0",
            expect![
                "Summary { arguments: [ArgumentSummary { reads: true, writes: false, aliasing_results: [] }], equivalent_arguments: [None] }"
            ],
        );
    }

    #[test]
    fn slice_of_an_argument() {
        check(
            "block(%a)\n%0 = extract %a~%0 take 0 [0:1:1]\nreturn r%0, r%a",
            expect![
                "Summary { arguments: [ArgumentSummary { reads: true, writes: false, aliasing_results: [0, 1] }], equivalent_arguments: [None, Some(0)] }"
            ],
        );
    }

    #[test]
    fn unknown_functions_do_everything() {
        let summary = Summary::unknown(1, 1);
        assert!(summary.arguments[0].reads && summary.arguments[0].writes && !summary.is_equivalent(0, 0));
    }
}
