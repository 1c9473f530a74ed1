//! Values that are made in buffers which have served their purpose, and twins that are not.

use crate::index::{IndexVec, OperandId};
use crate::one_shot::{Options, decide};
use crate::reuse::{OwnParts, reuses};
use crate::text;

/// The chosen destinations, as `operand <- value`; all values of one size are of one type.
fn chosen(input: &str) -> String {
    chosen_with(input, &[])
}

/// As [`chosen`]; each operation of `own` reads by parts what it writes, of the value named with it.
fn chosen_with(input: &str, own: &[(&str, &str)]) -> String {
    let (facts, names) = text::parse(input).unwrap_or_else(|e| panic!("{e}\n{input}"));
    let decisions = decide(&facts, &Options::default()).expect("nothing must be in place");
    let sizes = facts.values().iter().map(|value| value.info.size_bytes.and_then(|bytes| u32::try_from(bytes).ok()));
    let kinds: IndexVec<_, _> = sizes.collect();
    let name = |label| names.get(label).unwrap_or("?").to_owned();
    let part = |(op, read): &(&str, &str)| {
        let of_op = |id: &OperandId| name(facts.ops()[facts.operands()[*id].op].label) == *op;
        let operand = facts.operands().ids().filter(of_op).find(|id| facts.operands()[*id].writes);
        let value = facts.values().ids().find(|id| name(facts.values()[*id].info.label) == *read);
        OwnParts { operand: operand.expect("it writes"), value: value.expect("it is there") }
    };
    let own: Vec<OwnParts> = own.iter().map(part).collect();
    let found = reuses(&facts, &decisions, &kinds, &own).into_iter().map(|reuse| {
        let used = facts.operands()[reuse.operand];
        format!("{} <- {}", name(facts.ops()[used.op].label), name(facts.values()[reuse.value].info.label))
    });
    found.collect::<Vec<_>>().join(", ")
}

/// Steps `a`, `b`, .. that each read the value before, from `%x`, and make one in a new tensor.
fn chain(steps: &str, argument: &str, end: &str) -> String {
    let mut text = format!("block({argument})\n");
    let mut before = "x".to_owned();
    for step in steps.chars() {
        text += &format!("%e{step}<never alloc 64> = empty\n%{step}<64> = {step} r%{before}, rw%e{step}>%{step}\n");
        before = step.to_string();
    }
    text + end
}

#[test]
fn a_donated_input_takes_what_comes_behind_its_last_use() {
    assert_eq!(chosen(&chain("ab", "%x<64>", "return r%b")), "b <- %x");
    assert_eq!(chosen(&chain("abc", "%x<64>", "return r%c")), "b <- %x, c <- %a");
    // Read later, returned, not writable, of another size.
    assert_eq!(chosen(&chain("ab", "%x<64>", "read r%x\nreturn r%b")), "");
    assert_eq!(chosen(&chain("ab", "%x<64>", "return r%b, r%x")), "");
    assert_eq!(chosen(&chain("ab", "%x<frozen 64>", "return r%b")), "");
    assert_eq!(chosen(&chain("ab", "%x<32>", "return r%b")), "");
}

#[test]
fn a_result_takes_in_what_is_gone_before_it_is_made() {
    let frozen = "%x<frozen 64>";
    assert_eq!(chosen(&chain("abcd", frozen, "return r%d")), "d <- %b");
    assert_eq!(chosen(&chain("abc", frozen, "return r%c")), "c <- %a");
    assert_eq!(chosen(&chain("abc", frozen, "return r%c, r%a")), "");
}

/// An operation that reads by parts what it writes takes the buffer of what it reads, if nothing else does later.
#[test]
fn what_is_read_by_parts_is_handed_over() {
    let own = [("a", "%x"), ("b", "%a"), ("c", "%b")];
    assert_eq!(chosen_with(&chain("a", "%x<64>", "return r%a"), &own[..1]), "a <- %x");
    assert_eq!(chosen_with(&chain("abc", "%x<64>", "return r%c"), &own), "a <- %x, b <- %a, c <- %b");
    // What is made in between is handed on to the result, or to another transient.
    let frozen = "%x<frozen 64>";
    assert_eq!(chosen_with(&chain("abc", frozen, "return r%c"), &own), "b <- %a, c <- %b");
    assert_eq!(chosen_with(&chain("abc", frozen, "read r%c\nread r%x"), &own), "b <- %a, c <- %b");
    assert_eq!(chosen_with(&chain("abc", frozen, "read r%c\nread r%x"), &own[..1]), "");
    // Read later, returned, of another size.
    assert_eq!(chosen_with(&chain("a", "%x<64>", "read r%x\nreturn r%a"), &own[..1]), "");
    assert_eq!(chosen_with(&chain("a", "%x<64>", "return r%a, r%x"), &own[..1]), "");
    assert_eq!(chosen_with(&chain("a", "%x<32>", "return r%a"), &own[..1]), "");
    // The operation uses another value of the same buffer, too.
    let twice =
        "block(%x<64>)\n%y<64> = fill w%x>%y\n%e<never alloc 64> = empty\n%a<64> = a r%x, r%y, rw%e>%a\nreturn r%a";
    assert_eq!(chosen_with(twice, &[("a", "%y")]), "");
}

/// An argument of a loop is free in an iteration that does not use it, or no more.
#[test]
fn arguments_of_loops_are_free_after_their_last_use() {
    let program = |body: &str, yielded: &str| {
        format!(
            "block(%x<64>, %y<64>)\n%r<64>, %s<64> = for branch w%x>(%a=%w)%r^%a, w%y>(%b=%a)%s^%b {{\nregion repeat next 0 {{\n\
             block(%a<64>, %b<64>)\n%e<never alloc 64> = empty\n{body}%w<64> = step r%a, rw%e>%w\nyield rm%w^%a^%r, rm{yielded}^%b^%s\n}}\n}}\n\
             return r%r, r%s"
        )
    };
    assert_eq!(chosen(&program("", "%a")), "step <- %b");
    assert_eq!(chosen(&program("read r%b\n", "%a")), "step <- %b");
    assert_eq!(chosen(&program("", "%b")), "");
}

/// Of values that may be one buffer the last one stands for it: what it was before may be another by then.
#[test]
fn the_last_value_of_a_buffer_is_handed_on() {
    let input = "block(%x<64>)\n%y<64> = fill w%x>%y\n%ea<never alloc 64> = empty\n%a<64> = a r%y, rw%ea>%a\n\
                 %eb<never alloc 64> = empty\n%b<64> = b r%a, rw%eb>%b\nreturn r%b";
    assert_eq!(chosen(input), "b <- %y");
    // Iterations of a parallel loop take nothing from each other.
    let parallel = "block(%x<64>)\nforall branch {\nregion repeat parallel next 0 {\n%ea<never alloc 64> = empty\n\
                    %a<64> = a r%x, rw%ea>%a\n%eb<never alloc 64> = empty\n%b<64> = b r%a, rw%eb>%b\n\
                    %ec<never alloc 64> = empty\n%c<64> = c r%b, rw%ec>%c\nread r%c\n}\n}";
    assert_eq!(chosen(parallel), "");
}
