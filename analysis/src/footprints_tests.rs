//! Parts of buffers that do not overlap, and for each a twin that does.

use crate::checker::check_elements;
use crate::index::IndexVec;
use crate::one_shot::{InPlaceAnalysis, Options, Placement, Strategy, decide, decisions_from_placements};
use crate::text;

/// The number of operands out of place.
fn copies(input: &str, strategy: Strategy) -> usize {
    let (facts, _) = text::parse(input).unwrap_or_else(|e| panic!("{e}\n{input}"));
    let decisions = decide(&facts, &Options { strategy, ..Options::default() }).expect("nothing must be in place");
    facts.operands().ids().filter(|&operand| !decisions.is_in_place(operand)).count()
}

/// Whether the checker accepts all operands in place.
fn is_right_in_place(input: &str) -> bool {
    let (facts, _) = text::parse(input).unwrap_or_else(|e| panic!("{e}\n{input}"));
    let placements = IndexVec::filled(Placement::InPlace, facts.operands().len());
    let ended = check_elements(&facts, &decisions_from_placements(&facts, placements));
    assert_ne!(ended, Ok(0), "no execution came to an end\n{input}");
    ended.is_ok()
}

/// Nothing is copied in the program, and something in its twin, in which `from` is replaced. The checker finds the same.
fn check(input: &str, from: &str, to: &str) {
    assert_eq!(copies(input, Strategy::Minimal), 0, "{input}");
    assert!(copies(input, Strategy::Greedy) > 0, "{input}");
    let twin = input.replacen(from, to, 1);
    assert_ne!(twin, input);
    assert!(copies(&twin, Strategy::Minimal) > 0, "{twin}");
    assert!(is_right_in_place(input), "{input}");
    assert!(!is_right_in_place(&twin), "{twin}");
}

/// A slice is read behind the write of another one.
fn read_behind_write(read: &str, write: &str) -> String {
    format!(
        "symbols s0, s1\nblock(%a, %x)\n%h = extract %a~%h take 0 [{read}]\n\
         %b = insert r%x, rw%a>%b put 0 1 [{write}]\nread r%h\nreturn r%b"
    )
}

#[test]
fn constants_and_symbols_keep_slices_apart() {
    for (read, write, twin) in [
        ("0:4:1", "4:4:1", "3:4:1"),
        ("4:4:1", "0:4:1", "0:5:1"),
        ("0:s0:1", "s0:1:1", "-1+s0:1:1"),
        ("s0:s1:1", "s0+s1:4:1", "s0:4:1"),
        ("2*s0:2:1", "2+2*s0:2:1", "1+2*s0:2:1"),
        ("0:4:2", "7:1:1", "6:1:1"),
        ("0:s0:2", "1:s1:2", "2:s1:2"),
        ("s0:8:4", "2+s0:8:4", "4+s0:8:4"),
        ("0:9:1, 0:4:1", "0:9:1, 4:4:1", "0:9:1, 2:4:1"),
    ] {
        check(&read_behind_write(read, write), write, twin);
    }
    // An empty slice.
    assert_eq!(copies(&read_behind_write("0:s0:s1", "0:0:1"), Strategy::Minimal), 0);
    // Unknown strides, and sums of unknown sign.
    for (read, write) in [("0:4:s0", "4:4:1"), ("0:4:1", "4+s0:4:1"), ("s0:4:1", "4+s1:4:1"), ("0:4:-1", "4:4:1")] {
        assert!(copies(&read_behind_write(read, write), Strategy::Minimal) > 0, "{read} {write}");
    }
}

#[test]
fn slices_of_slices_are_composed() {
    let input = "symbols s0\nblock(%a, %x)\n%g = extract %a~%g take 0 [8:8:1]\n%h = extract %g~%h take 0 [2:2:1]\n\
                 %b = insert r%x, rw%a>%b put 0 1 [12:4:1]\nread r%h\nreturn r%b";
    check(input, "[2:2:1]", "[2:3:1]");
    check(input, "[8:8:1]", "[2+s0:8:1]");
    // Strides multiply: 1, 5 of [0, 8).
    let input = "block(%a, %x)\n%g = extract %a~%g take 0 [1:4:2]\n%h = extract %g~%h take 0 [0:2:2]\n\
                 %b = insert r%x, rw%a>%b put 0 1 [3:1:1]\nread r%h\nreturn r%b";
    check(input, "[3:1:1]", "[5:1:1]");
    // A slice of unknown place in a slice is within that.
    let input = "block(%a, %x)\n%g = extract %a~%g take 0 [0:8:1]\n%h = extract %g~%h take 0 [s3:2:s4]\n\
                 %b = insert r%x, rw%a>%b put 0 1 [8:1:1]\nread r%h\nreturn r%b";
    check(input, "[8:1:1]", "[7:1:1]");
    // A dimension of size 1 is left out.
    let input = "block(%a, %x)\n%g = extract %a~%g take 0 [3:1:1, 0:8:1]\n%h = extract %g~%h take 0 [2:2:1]\n\
                 %b = insert r%x, rw%a>%b put 0 1 [3:1:1, 4:1:1]\nread r%h\nreturn r%b";
    check(input, "[3:1:1, 4:1:1]", "[3:1:1, 3:1:1]");
    // Behind a reshape nothing is known but where the whole lies.
    let input = "block(%a, %x)\n%g = extract %a~%g take 0 [0:8:1]\n%e = expand %g>!%e\n\
                 %h = extract %e~%h take 0 [9:1:1, 0:1:1]\n\
                 %b = insert r%x, rw%a>%b put 0 1 [8:1:1]\nread r%h\nreturn r%b";
    check(input, "[8:1:1]", "[7:1:1]");
}

/// The result of a branch lies where both of its operands do.
#[test]
fn a_value_of_two_places_is_within_both() {
    let input = "block(%a, %x)\n%g = extract %a~%g take 0 [0:8:1]\n%h = extract %a~%h take 0 [8:8:1]\n\
                 %p = extract %g~%p take 0 [0:1:1]\n%q = extract %g~%q take 0 [4:1:1]\n%s = select %p>?%s, %q>?%s\n\
                 %b = fill w%h>%b\nread r%s\nreturn r%b";
    check(input, "%g~%q", "%h~%q");
}

/// An insertion of what is in place already changes nothing for slices of it.
#[test]
fn slices_of_what_is_inserted_where_it_is_are_in_place() {
    let input = "block(%a)\n%g = extract %a~%g take 0 [0:8:1]\n%f = fill w%g>%f\n%b = insert r%f, rw%a>%b put 0 1 [0:8:1]\n\
                 %h = extract %f~%h take 0 [2:2:1]\nread r%h\nreturn r%b";
    check(input, "put 0 1 [0:8:1]", "put 0 1 [1:8:1]");
}

/// `row i += row i - 1`, in a loop.
#[test]
fn a_symbol_has_one_value_in_an_iteration() {
    let input = "block(%t)\n%r = for branch rw%t>(%a=%b)%r^%a {\nregion repeat next 0 {\nsymbols s5\nblock(%a)\n\
                 %x = extract %a~%x take 0 [-1+s5:1:1, 0:8:1]\n%y = extract %a~%y take 0 [s5:1:1, 0:8:1]\n\
                 %z = add r%x, rw%y>%z\n%b = insert r%z, rw%a>%b put 0 1 [s5:1:1, 0:8:1]\nyield rm%b^%a^%r\n}\n}\nreturn r%r";
    check(input, "[-1+s5:1:1", "[s5:2:1");
    // The same slice of a tensor from outside of the loop holds what an earlier iteration wrote.
    let outer = "block(%t)\n%r = for branch rw%t>(%a=%b)%r^%a {\nregion repeat next 0 {\nsymbols s5\nblock(%a)\n\
                 %x = extract %t~%x take 0 [-1+s5:1:1]\n%y = extract %a~%y take 0 [s5:1:1]\n\
                 %z = add r%x, rw%y>%z\n%b = insert r%z, rw%a>%b put 0 1 [s5:1:1]\nyield rm%b^%a^%r\n}\n}\nreturn r%r";
    assert!(copies(outer, Strategy::Minimal) > 0);
}

/// A loop writes what its body writes: the lower half, while the upper one is read.
#[test]
fn a_loop_writes_what_its_body_writes() {
    let input = "symbols s1\nblock(%t)\n%h = extract %t~%h take 0 [8:8:1]\n\
                 %r = for branch rw%t>(%a=%b)%r^%a {\nregion repeat next 0 {\nsymbols s5\nblock(%a)\n\
                 %l = extract %a~%l take 0 [0:8:1]\n%y = extract %l~%y take 0 [s5:1:1]\n%z = add r%h, rw%y>%z\n\
                 %k = insert r%z, rw%l>%k put 0 1 [s5:1:1]\n\
                 %b = insert r%k, rw%a>%b put 0 1 [0:8:1]\nyield rm%b^%a^%r\n}\n}\nreturn r%r";
    check(input, "[8:8:1]", "[7:8:1]");
    // Another loop inside of it, and two parts.
    let nested = "block(%t, %x)\n%h = extract %t~%h take 0 [8:8:1]\n\
                  %r = for branch rw%t>(%a=%c)%r^%a {\nregion repeat next 0 {\nsymbols s5\nblock(%a)\n\
                  %q = for branch rw%a>(%i=%b)%q^%i {\nregion repeat next 0 {\nsymbols s6\nblock(%i)\n\
                  %l = extract %i~%l take 0 [0:4:1]\n%z = add r%h, rw%l>%z\n\
                  %b = insert r%z, rw%i>%b put 0 1 [0:4:1]\nyield rm%b^%i^%q\n}\n}\n\
                  %c = insert r%x, rw%q>%c put 0 1 [4:4:1]\nyield rm%c^%a^%r\n}\n}\nreturn r%r";
    check(nested, "[4:4:1]", "[4:5:1]");
    // An argument that changes places with another one is written wherever that is.
    let swap = "block(%t, %u)\n%h = extract %t~%h take 0 [8:8:1]\n\
                %r, %s = for branch rw%t>(%a=%b)%r^%a, rw%u>(%c=%d)%s^%c {\nregion repeat next 0 {\nblock(%a, %c)\n\
                %z = add r%h\n%b = insert r%z, rw%c>%b put 0 1 [8:8:1]\n%d = insert r%z, rw%a>%d put 0 1 [0:8:1]\n\
                yield rm%b^%a^%r, rm%d^%c^%s\n}\n}\nreturn r%r, r%s";
    assert!(copies(swap, Strategy::Minimal) > 0);
}

/// Behind a cycle of blocks a symbol has its last value, and earlier ones were others.
#[test]
fn cycles_of_blocks_keep_nothing_apart() {
    let input = "block(%a, %x)\n%r = run {\nregion {\nsymbols s2\nblock next 1\nblock next 1, 2\n\
                 %b = insert r%x, rw%a>%b put 0 1 [s2:1:1]\nread r%b\nblock\n%h = extract %a~%h take 0 [0:s2:1]\nread r%h\n\
                 yield rm%h>?%r^%r\n}\n}\nread r%r";
    assert!(copies(input, Strategy::Minimal) > 0);
    let chain = input.replace("next 1, 2", "next 2");
    assert_eq!(copies(&chain, Strategy::Minimal), 0, "{chain}");
}

/// More uses than an index keeps apart one by one: all in place, in a number of steps that grows with their number.
#[test]
fn many_disjoint_parts_are_in_place() {
    let program = |count: u32| {
        let reads = (0..count).map(|i| format!("%h{i} = extract %a~%h{i} take 0 [{}:1:1]\n", 2 * i));
        let writes = (0..count).map(|i| {
            let from = if i == 0 { "%a".to_owned() } else { format!("%b{}", i - 1) };
            format!("%b{i} = insert r%x, rw{from}>%b{i} put 0 1 [{}:1:1]\nread r%h{i}\n", 2 * i + 1)
        });
        format!("block(%a, %x)\n{}{}return r%b{}", reads.collect::<String>(), writes.collect::<String>(), count - 1)
    };
    assert_eq!(copies(&program(12), Strategy::Minimal), 0);
    let steps = |count: u32| {
        let (facts, _) = text::parse(&program(count)).expect("facts are well-formed");
        let options = Options { strategy: Strategy::Minimal, ..Options::default() };
        decide(&facts, &options).expect("nothing must be in place").steps()
    };
    let (small, large) = (steps(500), steps(4000));
    assert!(large < 10 * small, "{small} steps for 500 parts, {large} for 4000");
}
