//! Decisions where several values may be, or are, one buffer: choices, views, tensors of known memory.

use expect_test::expect;

use crate::one_shot_tests::check;

#[test]
fn two_writes_may_make_one_value_unless_they_are_to_one_buffer() {
    check(
        "block(%a, %b)\n%0 = call w%a~?%0, rw%b~?%0\nreturn r%0",
        expect![[r#"
        call: %a in %b OUT(call#0 writes, call#1 reads %b)
        return: %0 in
        ~ %a %0
    "#]],
    );
    check(
        "block(%a)\n%0 = call w%a~?%0, w%a~?%0\nreturn r%0",
        expect![[r#"
        call: %a OUT(call#0 writes, return#0 reads %0) %a OUT(call#1 writes, return#0 reads %0)
        return: %0 in
    "#]],
    );
}

/// Buffers that the function sees as memory, too: a value for the memory, a new one after each store to it.
/// `tensor` is a `bufferization.to_tensor` without `restrict`, `store` a `memref.store`.
#[test]
fn tensors_of_known_memory_are_values_that_share_it() {
    // Another tensor of the same memory wants what is there without the insertion.
    check(
        "block(%m)
         %a = tensor %m>%a
         %1 = insert rw%a>%1
         %b = tensor %m>%b
         read r%b
         return r%1",
        expect![[r#"
            tensor: %m OUT(insert#0 writes, tensor#0 reads %m)
            insert: %a in
            tensor: %m in
            read: %b in
            return: %1 in
            ~ %m %b
            ~ %a %1
            = %m %b
            = %a %1
        "#]],
    );
    // The memory changes while the tensor is still read: that tensor is a copy. One made later is not.
    check(
        "block(%m)
         %a = tensor %m>%a
         %m1 = store wm%m>%m1
         read r%a
         %b = tensor %m1>%b
         read r%b",
        expect![[r#"
            tensor: %m OUT(store#0 writes, read#0 reads %m)
            store: %m in
            read: %a in
            tensor: %m1 in
            read: %b in
            ~ %m %m1 %b
            = %m %m1 %b
        "#]],
    );
}

/// A value that may be one of two wants the contents of both: the fill would overwrite one of them.
#[test]
fn a_choice_wants_the_contents_of_both() {
    check(
        "%0<always> = tensor\n%1 = fill w%0>%1\n%2<always> = tensor\n%3 = select %0>?%3, %2>?%3\nread r%3\nread r%1",
        expect![[r#"
            fill: %0 OUT(fill#0 writes, select#0 reads %0)
            select: %0 in %2 in
            read: %3 in
            read: %1 in
            ~ %0 %2 %3
        "#]],
    );
}

/// Several sources, all of them one buffer: so is the result.
#[test]
fn a_choice_of_one_buffer_is_that_buffer() {
    check(
        "block(%a)\n%0 = select %a>?%0, %a>?%0\nread r%0",
        expect![[r#"
        select: %a in %a in
        read: %0 in
        ~ %a %0
        = %a %0
    "#]],
    );
    check(
        "block(%a, %b)\n%0 = select %a>?%0, %b>?%0\nread r%0",
        expect![[r#"
        select: %a in %b in
        read: %0 in
        ~ %a %b %0
    "#]],
    );
}

/// As in the reference, the order of a choice's operands decides: see `revisits.rs`.
#[test]
fn a_choice_that_is_walked_twice_is_no_slice() {
    let first = "block(%t)\n%s = extract %t~%s take 0 [0:4:1]\n%x = cast %s>%x\n%y = cast %x>%y\n\
                 %v = select %x>?%v, %y>?%v\n%f = fill w%v>%f\n%r = insert r%f, rw%t>%r put 0 1 [0:4:1]\nreturn r%r";
    check(
        first,
        expect![[r#"
        extract: %t in
        cast: %s in
        cast: %x in
        select: %x in %y in
        fill: %v in
        insert: %f in %t in
        return: %r in
        ~ %t %s %x %y %v %f %r
        = %t %r
        = %s %x %y %v %f
    "#]],
    );
    check(
        &first.replace("%x>?%v, %y>?%v", "%y>?%v, %x>?%v"),
        expect![[r#"
        extract: %t OUT(fill#0 writes, insert#1 reads %t)
        cast: %s in
        cast: %x in
        select: %y in %x in
        fill: %v in
        insert: %f in %t in
        return: %r in
        ~ %t %r
        ~ %s %x %y %v %f
        = %t %r
        = %s %x %y %v %f
    "#]],
    );
}

/// Two writes whose buffers may be one, by way of views: neither may spoil what the other one makes.
#[test]
fn writes_to_a_tensor_and_a_view_of_a_view_may_be_to_one_buffer() {
    check(
        "block(%a)\n%u = view %a~%u\n%v = view %u~%v\n%0 = call w%a~?%0, w%v~?%0\nreturn r%0",
        expect![[r#"
            view: %a in
            view: %u in
            call: %a OUT(call#0 writes, return#0 reads %0) %v OUT(call#1 writes, return#0 reads %0)
            return: %0 in
            ~ %a %u %v
        "#]],
    );
}

/// The same buffer if two pairs of values are: then each position may be overwritten as it is read.
#[test]
fn both_pairs_must_be_identical() {
    let same = "block(%a, %b)\n%x = step %a>(%a=%a,%b=%b)%x\n%0 = map re%x, we%a>%0\nread r%0";
    check(
        same,
        expect![[r#"
        step: %a in
        map: %x in %a in
        read: %0 in
        ~ %a %x %0
        = %a %x %0
    "#]],
    );
    check(
        &same.replace("%b=%b", "%a=%b"),
        expect![[r#"
        step: %a OUT(map#1 writes, map#0 reads %a)
        map: %x in %a in
        read: %0 in
        ~ %a %0
        = %a %0
    "#]],
    );
    check(
        &same.replace("%a=%a", "%a=%b"),
        expect![[r#"
        step: %a OUT(map#1 writes, map#0 reads %a)
        map: %x in %a in
        read: %0 in
        ~ %a %0
        = %a %0
    "#]],
    );
}
