//! Decisions from facts, both as text: one rule each.

use expect_test::{Expect, expect};

use crate::facts::Affine;
use crate::one_shot::{Heuristic, Options, check_forced, decide};
use crate::{print, text};

fn check_with(options: &Options, input: &str, expected: Expect) {
    let (facts, names) = text::parse(input).expect("facts are well-formed");
    let output = match decide(&facts, options) {
        Ok(decisions) => print::decisions(&facts, &names, &decisions),
        Err(error) => format!("{error}: {:?}\n", error.reason()),
    };
    expected.assert_eq(&output);
}

pub(crate) fn check(input: &str, expected: Expect) {
    check_with(&Options::default(), input, expected);
}

#[test]
fn text_round_trips() {
    let text = "\
block(%in<frozen 4096B>)
%0<alloc never> = empty
%1 = fill we%0>%1
%2 = extract %1~%2 take 0 [0:4:1]
%3 = for branch r(%i)w%1>(%i=%y)%3^%i {
  region repeat trips=10 next 0 {
    block(%i)
    %y = insert r%2, rw%i>%y put 0 1 [4+2*s7:4:1]
    yield rm%y^%3^%i
  }
}
return r%3
";
    let (facts, names) = text::parse(text).expect("facts are well-formed");
    assert_eq!(print::facts(&facts, &names), text);
}

#[test]
fn negative_numbers_keep_their_sign() {
    let text = "block(%a)\n%0 = extract %a~%0 take 0 [-4+-2*s7:4:-1]\n";
    let (facts, names) = text::parse(text).expect("facts are well-formed");
    assert_eq!(print::facts(&facts, &names), text);
}

#[test]
fn read_after_write_is_copied() {
    check(
        "%0<always> = tensor\n%1 = insert rw%0>%1\nread r%0\nread r%1",
        expect![[r#"
        insert: %0 OUT(insert#0 writes, read#0 reads %0)
        read: %0 in
        read: %1 in
    "#]],
    );
}

#[test]
fn chain_through_undefined_contents_is_in_place() {
    check(
        "block(%a<frozen>, %b<frozen>)
         %0<never alloc> = empty
         %1 = fill we%0>%1
         %2 = matmul r%a, r%b, rw%1>%2
         %3 = relu rwe%2>%3
         return r%3",
        expect![[r#"
            fill: %0 in
            matmul: %a in %b in %1 in
            relu: %2 in
            return: %3 in
            ~ %0 %1 %2 %3
            = %0 %1 %2 %3
        "#]],
    );
}

#[test]
fn write_to_a_frozen_argument_is_copied() {
    check(
        "block(%a<frozen>)\n%0 = insert rw%a>%0\nreturn r%0",
        expect![[r#"
        insert: %a OUT(insert#0 writes, %a is not writable)
        return: %0 in
    "#]],
    );
}

#[test]
fn matching_insertion_of_an_extracted_slice_is_in_place() {
    check(
        "block(%a)
         %0 = extract %a~%0 take 0 [0:4:1]
         %1 = fill we%0>%1
         %2 = insert r%1, rw%a>%2 put 0 1 [0:4:1]
         return r%2",
        expect![[r#"
            extract: %a in
            fill: %0 in
            insert: %1 in %a in
            return: %2 in
            ~ %a %0 %1 %2
            = %a %2
            = %0 %1
        "#]],
    );
}

#[test]
fn insertion_of_another_slice_is_copied() {
    check(
        "block(%a)
         %0 = extract %a~%0 take 0 [0:4:1]
         %1 = fill we%0>%1
         %2 = insert r%1, rw%a>%2 put 0 1 [4:4:1]
         return r%2",
        expect![[r#"
            extract: %a OUT(fill#0 writes, insert#1 reads %a)
            fill: %0 in
            insert: %1 in %a in
            return: %2 in
            ~ %a %2
            ~ %0 %1
            = %a %2
            = %0 %1
        "#]],
    );
}

/// Of an operation that takes a slice, only the first result is the slice.
#[test]
fn another_result_of_an_extraction_is_not_its_slice() {
    let program = |written: &str| {
        format!(
            "block(%a, %s)
             %0, %1 = split %a~%0~%1 take 0 [0:4:1]
             %2 = fill we{written}>%2
             %3 = insert r%s, rw%a>%3 put 0 1 [0:4:1]
             return r%3"
        )
    };
    check(
        &program("%1"),
        expect![[r#"
            split: %a OUT(fill#0 writes, insert#1 reads %a)
            fill: %1 in
            insert: %s in %a in
            return: %3 in
            ~ %a %3
            ~ %0 %1 %2
            = %a %3
            = %1 %2
        "#]],
    );
    let (facts, _) = text::parse(&program("%0")).expect("facts are well-formed");
    let counts = decide(&facts, &Options::default()).expect("decides").counts();
    assert_eq!(counts.out_of_place, 0);
}

/// A tiled matmul with a fused epilogue, as tiling produces it.
#[test]
fn tiled_forall_with_chained_destinations_is_in_place() {
    check(
        "block(%a<frozen>, %w<frozen>)
         %0<never alloc> = empty
         %r = forall branch rw%0>%r^%o {
           region repeat parallel next 0 {
             block(%o)
             %as = extract %a~%as take 0 [s1:64:1, 0:256:1]
             %ws = extract %w~%ws take 0 [0:256:1, s2:64:1]
             %os = extract %o~%os take 0 [s1:64:1, s2:64:1]
             %1 = fill we%os>%1
             %2 = matmul r%as, r%ws, rw%1>%2
             %3 = relu rwe%2>%3
             in_parallel {
               region graph {
                 parallel_insert r%3, rwm%o^%r put 0 1 [s1:64:1, s2:64:1]
               }
             }
           }
         }
         return r%r",
        expect![[r#"
            forall: %0 in
            extract: %a in
            extract: %w in
            extract: %o in
            fill: %os in
            matmul: %as in %ws in %1 in
            relu: %2 in
            parallel_insert: %3 in %o in
            return: %r in
            ~ %a %as
            ~ %w %ws
            ~ %0 %r
            ~ %o %os %1 %2 %3
            = %0 %r
            = %os %1 %2 %3
        "#]],
    );
}

#[test]
fn buffer_written_by_parallel_iterations_is_private() {
    check(
        "block(%c)
         %0<never alloc> = empty
         forall branch rw%0^%o {
           region repeat parallel next 0 {
             block(%o)
             %1 = fill we%c>%1
             read r%1
           }
         }",
        expect![[r#"
            forall: %0 in
            fill: %c OUT(fill#0 writes what iterations share, read#0 reads)
            read: %1 in
        "#]],
    );
}

/// The loop's own class has no read; its carried value is in another class, and is read in the body. A buffer that parallel
/// iterations share and a loop carries must not be taken for one without reads.
#[test]
fn buffer_carried_by_a_loop_of_parallel_iterations_is_private() {
    check(
        "block(%c)
         %0<never alloc> = empty
         forall branch rw%0^%o {
           region repeat parallel next 0 {
             block(%o)
             %r = for branch w%c>(%i=%1)%r^%i {
               region repeat next 0 {
                 block(%i)
                 %1 = fill we%i>%1
                 read r%1
                 yield rm%1^%i^%r
               }
             }
           }
         }",
        expect![[r#"
            forall: %0 in
            for: %c OUT(for#0 writes what iterations share, for#0 reads)
            fill: %i in
            read: %1 in
            yield: %1 in
            ~ %i %1
            = %i %1
        "#]],
    );
}

#[test]
fn loop_that_writes_its_argument_is_in_place() {
    check(
        "block(%a)
         %r = for branch r(%i)w%a>(%i=%1)%r^%i {
           region repeat next 0 {
             block(%i)
             %1 = insert rw%i>%1
             yield rm%1^%i^%r
           }
         }
         return r%r",
        expect![[r#"
            for: %a in
            insert: %i in
            yield: %1 in
            return: %r in
            ~ %a %r
            ~ %i %1
            = %a %r
            = %i %1
        "#]],
    );
}

#[test]
fn write_in_a_loop_to_what_the_next_iteration_reads_is_copied() {
    check(
        "block(%a)
         for branch {
           region repeat next 0 {
             read r%a
             %1 = insert rw%a>%1
             read r%1
           }
         }",
        expect![[r#"
            read: %a in
            insert: %a OUT(insert#0 writes, read#0 reads %a)
            read: %1 in
        "#]],
    );
}

#[test]
fn order_of_visits_moves_the_copy() {
    let input = "block(%a)\n%0 = fill w%a>%0\n%1 = fill w%a>%1\nread r%0\nread r%1";
    check(
        input,
        expect![[r#"
        fill: %a OUT(fill#0 writes, read#0 reads %0)
        fill: %a in
        read: %0 in
        read: %1 in
        ~ %a %1
        = %a %1
    "#]],
    );
    let top_down = Options { heuristic: Heuristic::TopDown, ..Options::default() };
    check_with(
        &top_down,
        input,
        expect![[r#"
        fill: %a in
        fill: %a OUT(fill#0 writes, read#0 reads %0)
        read: %0 in
        read: %1 in
        ~ %a %0
        = %a %0
    "#]],
    );
}

#[test]
fn copy_before_write_copies_writes_only() {
    let options = Options { copy_before_write: true, ..Options::default() };
    check_with(
        &options,
        "block(%a)\n%0 = cast %a>%0\n%1 = insert rw%0>%1\nreturn r%1",
        expect![[r#"
        cast: %a in
        insert: %0 OUT(no analysis)
        return: %1 in
        ~ %a %0
        = %a %0
    "#]],
    );
}

#[test]
fn elementwise_operation_may_overwrite_what_it_reads() {
    check(
        "block(%a)\n%0 = add re%a, rwe%a>%0\nreturn r%0",
        expect![[r#"
        add: %a in %a in
        return: %0 in
        ~ %a %0
        = %a %0
    "#]],
    );
    check(
        "block(%a)\n%0 = transpose r%a, w%a>%0\nreturn r%0",
        expect![[r#"
        transpose: %a in %a OUT(transpose#1 writes, transpose#0 reads %a)
        return: %0 in
    "#]],
    );
}

#[test]
fn must_be_in_place_and_cannot() {
    check(
        "block(%a<frozen>)\n%0 = store wm%a>%0",
        expect![[r#"
        operand u0 must be in place and cannot be: NotWritable { write: u0, value: v0 }
    "#]],
    );
    check(
        "block(%a<frozen unranked>)\n%0 = store w%a>%0",
        expect![[r#"
        operand u0 needs a copy of an unranked tensor: NotWritable { write: u0, value: v0 }
    "#]],
    );
}

fn forced(input: &str, expected: Expect) {
    let (facts, _) = text::parse(input).expect("facts are well-formed");
    let output = match check_forced(&facts, &Options::default()) {
        Ok(()) => "nothing".to_owned(),
        Err(error) => format!("{}: {:?}", error.operand(), error.reason()),
    };
    expected.assert_eq(&output);
}

#[test]
fn what_must_be_in_place_may_conflict_before_anything_is_decided() {
    // The write is in place, and the old contents are read later.
    let store = "block(%a, %b)\n%0 = store r%b, wm%a>%0\nread r%a\nreturn r%0";
    forced(store, expect!["u1: ReadAfterWrite { read: u2, write: u1, definition: v0 }"]);
    // A use that would join the two, and could be copied.
    let joined = "block(%a, %b, %c)\n%0 = store r%b, wm%a>%0\n%1 = select %c>?%1, %0>?%1\nread r%1\nreturn r%0";
    forced(joined, expect!["u3: ReadAfterWrite { read: u4, write: u1, definition: v2 }"]);
    forced("block(%a<frozen>)\n%0 = store wm%a>%0\nreturn r%0", expect!["u0: NotWritable { write: u0, value: v0 }"]);
    forced("block(%a)\n%0 = store wm%a>%0\nreturn r%0", expect!["nothing"]);
}

#[test]
fn bad_text_is_an_error_with_a_line() {
    let error = |text: &str| text::parse(text).expect_err("the text is wrong").to_string();
    let errors = [
        error("read r%0"),
        error("\n%0 = a\n%0 = b"),
        error("a {"),
        error("}"),
        error("a {\n b"),
        error("%0 = a\n%1 = b %0 take 3 [0:1:1]"),
        error("%0 = a\nb %0>%9"),
        error("%0 = a<"),
        error("a {\n region next 4 {\n }\n}"),
        error("a {\n region {\n %0 = b\n }\n}\nread r%0"),
        error("%0 = a\nb r%0 put - 0 [99999999999999999999:1:1]"),
        error("%0<huge> = a"),
    ];
    expect![[r#"
        line 1: no value is named %0
        line 3: two values are named %0
        line 1: unbalanced braces
        line 1: unbalanced braces
        line 2: expected `region` or `}`
        line 2: the operation has no operand 3
        line 2: no value is named %9
        line 1: expected a value
        line 2: there is no 4 to pass control to
        line 0: operand u0 uses a value that its operation does not see
        line 2: expected a number
        line 1: expected a property of a value"#]]
    .assert_eq(&errors.join("\n"));
}

#[test]
fn decisions_are_counted() {
    let input = "block(%a)\n%0 = insert rw%a>%0\n%1 = insert rw%a>%1\nread r%a\nread r%0\nread r%1\nread r%1";
    let (facts, _) = text::parse(input).expect("facts are well-formed");
    let counts = decide(&facts, &Options::default()).expect("nothing must be in place").counts();
    assert_eq!((counts.in_place, counts.out_of_place), (4, 2));
}

#[test]
fn equal_numbers_have_one_normal_form() {
    let number = |terms: &[(u32, i64)]| Affine { constant: 1, terms: terms.to_vec() }.normalised().terms;
    assert_eq!(number(&[(2, 1), (1, 3), (2, 4)]), [(1, 3), (2, 5)]);
    assert_eq!(number(&[(1, 2), (1, -2)]), []);
    assert_eq!(number(&[(1, i64::MAX), (1, 1)]), [(1, 1), (1, i64::MAX)]);
}

/// The first region of a `while` writes what the second one gets: that comes after the write.
#[test]
fn what_a_region_gets_is_read_after_the_region_before_it() {
    check(
        "block(%a)
         %r = while branch w%a>(%i=%x)%r^%i {
           region repeat next 0, 1 {
             block(%i)
             %0 = fill rw%i>%0
             yield rm%0>?%x>?%r^%x
           }
           region repeat next 0 {
             block(%x)
             read r%x
             yield rm%x^%i
           }
         }
         return r%r",
        expect![[r#"
            while: %a OUT(while#0 writes, yield#0 reads %0)
            fill: %i in
            yield: %0 in
            read: %x in
            yield: %x in
            return: %r in
            ~ %r %i %0 %x
            = %i %0
        "#]],
    );
}

#[test]
fn facts_have_a_region() {
    let error = crate::builder::FactsBuilder::new().finish().expect_err("nothing was added");
    expect!["expected region 0 to be the only region without an operation"].assert_eq(&error.to_string());
}
