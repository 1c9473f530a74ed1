//! Elimination of new tensors: what is left, and what it saves.

use crate::support::{boundaries, parse, programs};
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
