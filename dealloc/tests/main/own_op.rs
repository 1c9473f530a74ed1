//! The example with models of operations of another crate.

#[path = "../../examples/own_op.rs"]
mod example;

use example::{PROGRAM, deallocate};
use monopour_dealloc::run_ownership;
use monopour_ir::Context;

use crate::support::{EXTENSIONS, parse};

/// Lines of the text that have one of these words, without their operands.
fn order(text: &str, words: &[&str]) -> Vec<String> {
    let found = text.lines().filter_map(|line| words.iter().find(|w| line.contains(**w)));
    found.map(|word| (*word).to_owned()).collect()
}

#[test]
fn a_buffer_of_an_own_op_is_freed_after_the_last_use_of_its_part() {
    let text = deallocate(Context::new(), PROGRAM, true).expect("the models are enough");
    let expected = ["acme.queue", "acme.slot", "linalg.fill", "memref.dealloc", "linalg.fill", "return"];
    assert_eq!(
        order(&text, &["acme.queue", "acme.slot", "linalg.fill", "memref.dealloc", "return"]),
        expected,
        "{text}"
    );
    assert!(text.contains("memref.dealloc %0"), "the whole buffer goes, not its part: {text}");
}

#[test]
fn a_buffer_of_an_own_op_goes_to_the_caller() {
    let program = PROGRAM
        .replace("%other: memref<4xf32>) {", "%other: memref<4xf32>) -> memref<?xf32> {")
        .replace("  return\n", "  return %q : memref<?xf32>\n");
    let text = deallocate(Context::new(), &program, true).expect("the models are enough");
    assert_eq!(order(&text, &["memref.dealloc", "memref.copy", "return %0"]), ["return %0"], "{text}");
}

#[test]
fn upstreams_form_owns_it_at_the_end_of_the_block() {
    let text = deallocate(Context::new(), PROGRAM, false).expect("the models are enough");
    let expected = ["acme.queue", "linalg.fill", "linalg.fill", "bufferization.dealloc", "return"];
    assert_eq!(order(&text, &["acme.queue", "linalg.fill", "bufferization.dealloc", "return"]), expected, "{text}");
}

#[test]
fn an_own_op_without_its_model_is_refused() {
    let errors = run_ownership(parse(PROGRAM).op(), &EXTENSIONS).expect_err("nothing is known of it");
    assert!(errors.to_string().contains("acme.queue makes a memref"), "{errors}");
}

#[test]
fn what_allocates_by_its_effects_is_freed() {
    let text = "func.func @f(%n: index, %x: f32) {
        %a = gpu.alloc (%n) : memref<?xf32>
        linalg.fill ins(%x : f32) outs(%a : memref<?xf32>)
        return }";
    let module = parse(text);
    run_ownership(module.op(), &EXTENSIONS).expect("its effects say that it allocates");
    let text = module.op().to_string();
    assert_eq!(
        order(&text, &["gpu.alloc", "linalg.fill", "memref.dealloc"]),
        ["gpu.alloc", "linalg.fill", "memref.dealloc"]
    );
}
