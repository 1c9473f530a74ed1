//! Turns reasons into sentences.
//!
//! ```text
//! copy of %0 (4096 bytes): linalg.fill at a.mlir:3:8 writes to its buffer, and tensor.extract at a.mlir:5:8 reads
//!   %0 as tensor.insert at a.mlir:2:8 left it
//! ```
//!
//! The caller gives names and locations by label.

use crate::facts::{Facts, Label, ValueDef};
use crate::index::{OperandId, ValueId};
use crate::one_shot::{Decisions, InPlaceAnalysis, Reason};

/// Names and locations of the caller, by label.
pub trait Describe {
    /// The name and location of an operation, such as `linalg.fill at a.mlir:3:8`.
    fn op(&self, label: Label) -> String;
    /// The name of a value, such as `%0`.
    fn value(&self, label: Label) -> String;
}

/// One copy or allocation that decisions make, explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The operand that is copied.
    pub operand: OperandId,
    /// The bytes that are copied, when known: 0 if only a buffer is allocated.
    pub copied_bytes: Option<u64>,
    /// The bytes that are allocated, when known.
    pub allocated_bytes: Option<u64>,
    /// How often at least one execution runs it: the product of the known trip counts around it.
    pub times: u64,
    /// The whole sentence.
    pub sentence: String,
}

/// Explain every operand that is out of place, in the order of operands.
pub fn explain(facts: &Facts, decisions: &Decisions, names: &impl Describe) -> Vec<Explanation> {
    let out = facts.operands().ids().filter(|&operand| !decisions.is_in_place(operand));
    out.map(|operand| explain_operand(facts, decisions, names, operand)).collect()
}

fn explain_operand(facts: &Facts, decisions: &Decisions, names: &impl Describe, operand: OperandId) -> Explanation {
    let used = facts.operands()[operand];
    let copy = decisions.copy(operand);
    let copied = copy.and_then(|copy| copy.result).unwrap_or(used.value);
    let bytes = facts.values()[copied].info.size_bytes;
    let contents = copy.is_some_and(|copy| copy.contents);
    let size = bytes.map_or(String::new(), |bytes| format!(" ({bytes} bytes)"));
    let what = if contents { "copy of" } else { "new buffer for" };
    let value = |id: ValueId| names.value(facts.values()[id].info.label);
    let reason = decisions.reason(operand).map_or(String::new(), |reason| format!(": {}", why(facts, names, reason)));
    Explanation {
        operand,
        copied_bytes: if contents { bytes } else { Some(0) },
        allocated_bytes: bytes,
        times: times(facts, operand),
        sentence: format!("{what} {}{size}{reason}", value(copied)),
    }
}

/// The clause with the reason.
pub fn why(facts: &Facts, names: &impl Describe, reason: Reason) -> String {
    let value = |id: ValueId| names.value(facts.values()[id].info.label);
    let op = |id: OperandId| names.op(facts.ops()[facts.operands()[id].op].label);
    match reason {
        Reason::NotWritable { write, value: frozen } => {
            let made = match facts.values()[frozen].def {
                ValueDef::Result(_) => "a constant or read-only memory",
                ValueDef::Argument(_) => "an input that is not donated",
            };
            format!("{} writes to its buffer, which may be that of {}, {made}", op(write), value(frozen))
        }
        Reason::SharedByParallelIterations { read, write } => {
            format!("{} writes to a buffer that parallel iterations would share, and {} reads it", op(write), op(read))
        }
        Reason::ReadAfterWrite { read, write, .. } if facts.operands()[read].op == facts.operands()[write].op => {
            format!("{} writes to its buffer while it still reads {}", op(write), value(facts.operands()[read].value))
        }
        Reason::ReadAfterWrite { read, write, definition } => {
            let read_value = facts.operands()[read].value;
            let origin = match facts.values()[definition].def {
                ValueDef::Result(defining) if definition != read_value => {
                    format!(" as {} left it", names.op(facts.ops()[defining].label))
                }
                _ => String::new(),
            };
            format!("{} writes to its buffer, and {} reads {}{origin}", op(write), op(read), value(read_value))
        }
        Reason::CopyBeforeWrite => "every write is copied, as no analysis was asked for".to_owned(),
    }
}

fn times(facts: &Facts, operand: OperandId) -> u64 {
    let mut times = 1_u64;
    let mut region = Some(facts.region_of(facts.operands()[operand].op));
    while let Some(current) = region {
        times = times.saturating_mul(facts.regions()[current].info.trip_count.unwrap_or(1));
        region = facts.enclosing_region(current);
    }
    times
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::{Describe, explain};
    use crate::facts::Label;
    use crate::one_shot::{Options, decide};
    use crate::text::{self, Names};

    impl Describe for Names {
        fn op(&self, label: Label) -> String {
            format!("{} at {label}", self.get(label).unwrap_or("?"))
        }

        fn value(&self, label: Label) -> String {
            self.get(label).unwrap_or("?").to_owned()
        }
    }

    fn check(input: &str, expected: Expect) {
        let (facts, names) = text::parse(input).expect("facts are well-formed");
        let decisions = decide(&facts, &Options::default()).expect("facts can be decided");
        let sentences: Vec<_> = explain(&facts, &decisions, &names)
            .into_iter()
            .map(|found| format!("{} [{:?} bytes, {} times]", found.sentence, found.copied_bytes, found.times))
            .collect();
        expected.assert_eq(&sentences.join("\n"));
    }

    #[test]
    fn frozen_input() {
        check(
            "block(%a<frozen 64B>)\n%0 = insert rw%a>%0\nreturn r%0",
            expect![
                "copy of %a (64 bytes): insert at 2 writes to its buffer, which may be that of %a, an input that is not donated [Some(64) bytes, 1 times]"
            ],
        );
    }

    #[test]
    fn later_read() {
        check(
            "%0<64B> = make\n%1 = cast %0>%1\n%2 = fill w%0>%2\nread r%1\nread r%2",
            expect![
                "copy of %1: fill at 5 writes to its buffer, and read at 6 reads %1 as make at 1 left it [None bytes, 1 times]"
            ],
        );
    }

    #[test]
    fn read_by_the_same_operation() {
        check(
            "block(%a)\n%0 = transpose r%a, w%a>%0\nreturn r%0",
            expect![
                "new buffer for %a: transpose at 2 writes to its buffer while it still reads %a [Some(0) bytes, 1 times]"
            ],
        );
    }

    #[test]
    fn in_loops() {
        check(
            "%0<8B> = make\nfor branch {\nregion repeat trips=10 next 0 {\nfor branch {\n\
             region repeat trips=4 next 0 {\nread r%0\n%1 = insert rw%0>%1\nread r%1\n}\n}\n}\n}",
            expect![
                "copy of %0 (8 bytes): insert at 6 writes to its buffer, and read at 4 reads %0 [Some(8) bytes, 40 times]"
            ],
        );
    }

    #[test]
    fn shared_by_iterations() {
        check(
            "block(%c)\nforall branch {\nregion repeat parallel next 0 {\n%1 = fill w%c>%1\nread r%1\n}\n}",
            expect![
                "new buffer for %c: fill at 3 writes to a buffer that parallel iterations would share, and read at 4 reads it [Some(0) bytes, 1 times]"
            ],
        );
    }
}
