//! Elimination of new tensors: what is left, and what it saves.

use crate::support::{boundaries, parse, programs, upstream};
use monopour_bufferize::{FunctionBoundaryTypeConversion, Options, eliminate_empty_tensors, run_one_shot};

fn entry() -> Options {
    Options {
        allow_return_allocs_from_loops: true,
        extensions: true,
        function_boundary_type_conversion: FunctionBoundaryTypeConversion::Identity,
        ..boundaries()
    }
}

/// Uses replaced, then allocations and copies after bufferization.
fn counts(text: &str) -> (usize, u32, u32) {
    let module = parse(text);
    let replaced = eliminate_empty_tensors(module.op(), &entry()).unwrap_or_else(|e| panic!("{e}\n{text}"));
    module.op().verify_with_diagnostics().unwrap_or_else(|e| panic!("{e}\n{}", module.op()));
    let stats = run_one_shot(module.op(), &entry()).unwrap_or_else(|e| panic!("{e}\n{}", module.op()));
    module.op().verify_with_diagnostics().unwrap_or_else(|e| panic!("{e}\n{}", module.op()));
    (replaced, stats.allocs, stats.copies)
}

fn named(name: &str) -> (usize, u32, u32) {
    let (_, text) = programs().into_iter().find(|(n, _)| n == name).expect("program exists");
    counts(&text)
}

#[test]
fn both_parts_of_a_concatenation_are_computed_in_place() {
    assert_eq!(named("insert_two_producers"), (2, 1, 0));
}

#[test]
fn both_branches_write_where_the_result_is_inserted() {
    assert_eq!(named("insert_if_result"), (2, 0, 0));
}

#[test]
fn a_chain_through_a_loop_is_followed() {
    assert_eq!(named("insert_loop_result"), (1, 0, 0));
}

#[test]
fn iterations_compute_in_their_part_of_the_output() {
    assert_eq!(named("forall_private_insert"), (1, 0, 0));
}

/// The old contents of the destination are read after the computation: its slice cannot be overwritten before.
#[test]
fn what_does_not_save_a_copy_is_taken_back() {
    let (_, text) = programs().into_iter().find(|(n, _)| n == "insert_reads_old").expect("program exists");
    let module = parse(&text);
    let before = module.op().to_string();
    assert_eq!(eliminate_empty_tensors(module.op(), &entry()).expect("analyses"), 0);
    assert_eq!(module.op().to_string(), before);
}

/// Allocations and copies in a program on memrefs.
fn made(text: &str) -> (usize, usize) {
    (text.matches("memref.alloc(").count(), text.matches("memref.copy ").count())
}

/// Eight programs whose copies can be avoided, under one ABI: what is made here, and by upstream's pass.
#[test]
fn there_are_no_more_copies_than_upstreams() {
    let flags = "bufferize-function-boundaries allow-return-allocs-from-loops \
                 function-boundary-type-conversion=identity-layout-map";
    let mut table = String::new();
    for (name, text) in crate::support::programs_in("copies") {
        let module = parse(&text);
        eliminate_empty_tensors(module.op(), &entry()).unwrap_or_else(|e| panic!("{name}: {e}"));
        run_one_shot(module.op(), &entry()).unwrap_or_else(|e| panic!("{name}: {e}"));
        module.op().verify_with_diagnostics().unwrap_or_else(|e| panic!("{name}: {e}"));
        let (ours, theirs) = (made(&module.op().to_string()), made(&upstream(&text, flags)));
        assert!(ours.0 <= theirs.0 && ours.1 <= theirs.1, "{name}: {ours:?}, upstream {theirs:?}\n{}", module.op());
        table += &format!("{name}: {} allocs {} copies, upstream {} {}\n", ours.0, ours.1, theirs.0, theirs.1);
    }
    assert_eq!(table, COPIES);
}

const COPIES: &str = "\
branches: 0 allocs 0 copies, upstream 2 1
cache: 1 allocs 2 copies, upstream 1 2
call: 1 allocs 0 copies, upstream 1 0
concatenation: 1 allocs 0 copies, upstream 3 2
disjoint_halves: 1 allocs 1 copies, upstream 1 2
double_buffer: 2 allocs 2 copies, upstream 2 2
late_read: 1 allocs 1 copies, upstream 1 1
while_loop: 0 allocs 0 copies, upstream 0 0
";
