//! Decisions in regions with several blocks: one behaviour each.

use expect_test::{Expect, expect};

use crate::one_shot::{InPlaceAnalysis, Options, decide};
use crate::text;

/// The operations with a copied operand.
fn check(input: &str, expected: Expect) {
    let (facts, names) = text::parse(input).expect("facts are well-formed");
    let decisions = decide(&facts, &Options::default()).expect("facts can be decided");
    let copied = facts.operands().ids().filter(|&operand| !decisions.is_in_place(operand));
    let name = |operand| names.get(facts.ops()[facts.operands()[operand].op].label).unwrap_or("?");
    expected.assert_eq(&copied.map(name).collect::<Vec<_>>().join(" "));
}

/// The write is in another block than the argument, and comes before the read of the old value.
#[test]
fn argument_is_read_after_a_write_in_a_later_block() {
    check(
        "block(%a) next 1
         br
         block
         %0 = write rw%a>%0
         read r%a
         return r%0",
        expect!["write"],
    );
}

/// The next iteration of the loop reads the contents that the nested write stored.
#[test]
fn write_nested_in_a_block_that_repeats() {
    let looped = "block(%a) next 1
         br
         block next 1, 2
         read r%a
         if branch {
           region {
             %0 = write rw%a>%0
             use r%0
           }
         }
         block
         return";
    check(looped, expect!["write"]);
    // Without the back edge the read comes first.
    check(&looped.replace("next 1, 2", "next 2"), expect![""]);
}

/// Read and write are nested in one operation of the block that repeats.
#[test]
fn read_and_write_nested_in_a_block_that_repeats() {
    check(
        "block(%a) next 1
         br
         block next 1, 2
         if branch {
           region {
             read r%a
             %0 = write rw%a>%0
             use r%0
           }
         }
         block
         return",
        expect!["write"],
    );
}

/// Each iteration has its own contents, made in the block or bound to its argument.
#[test]
fn contents_of_each_round() {
    check(
        "block next 1
         br
         block next 1, 2
         %a = make
         read r%a
         %0 = write rw%a>%0
         use r%0
         block
         return",
        expect![""],
    );
    check(
        "block(%a) next 1
         br %a>?%x
         block(%x) next 1, 2
         read r%x
         %0 = write rw%x>%0
         br %0>?%x
         block
         return",
        expect![""],
    );
}

/// The value that left the loop is read after it; inside it was written in each iteration.
#[test]
fn value_of_before_is_read_after_the_loop() {
    check(
        "block(%a) next 1
         br %a>?%x
         block(%x) next 1, 2
         %0 = write rw%x>%0
         br %0>?%x
         block
         read r%a
         return",
        expect!["br"],
    );
}

/// A branch reads a value that the other one writes: only one of them runs.
#[test]
fn other_branches_do_not_come_before() {
    check(
        "block(%a) next 1, 2
         br
         block next 3
         %0 = write rw%a>%0
         use r%0
         block next 3
         read r%a
         block
         return",
        expect![""],
    );
    // The join block reads it.
    check(
        "block(%a) next 1, 2
         br
         block next 3
         %0 = write rw%a>%0
         use r%0
         block next 3
         br
         block
         read r%a",
        expect!["write"],
    );
}

/// An argument of a block of an enclosing region: the reference excludes no branches, so neither does this.
#[test]
fn other_branches_of_an_inner_region_may_come_before() {
    check(
        "block(%a)
         execute {
           region {
             block next 1, 2
             br
             block next 3
             %0 = write rw%a>%0
             use r%0
             block next 3
             read r%a
             block
             leave
           }
         }
         return",
        expect!["write"],
    );
}

/// Blocks may be in any order in the text, and some are unreachable.
#[test]
fn order_of_the_text_means_nothing() {
    check(
        "block(%a) next 2
         br
         block
         read r%0
         return
         block next 1
         %0 = write rw%a>%0
         br
         block next 3
         %1 = dead rw%1>%1
         use r%0",
        expect![""],
    );
}
