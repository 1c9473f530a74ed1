//! The example with a model of an operation of another crate.

#[path = "../../examples/own_op.rs"]
mod example;

use crate::support::boundaries;
use example::{PROGRAM, bufferize};
use monopour_bufferize::{Options, run_one_shot};
use monopour_ir::{Context, Module};

#[test]
fn an_own_op_is_bufferized_in_place() {
    let (text, stats) = bufferize(Context::new(), PROGRAM).expect("the model is enough");
    assert_eq!((stats.in_place, stats.out_of_place, stats.allocs, stats.copies), (5, 0, 0, 0), "{text}");
    assert_eq!(text.matches("\"acme.axpy\"(%arg0, %arg1, %arg2)").count(), 1, "{text}");
    // The second reads and writes one buffer, element by element.
    assert_eq!(text.matches("\"acme.axpy\"(%arg0, %arg2, %arg2)").count(), 1, "{text}");
    assert!(text.contains("return %arg2"), "{text}");
}

#[test]
fn an_own_op_copies_what_is_read_later() {
    let program =
        PROGRAM.replace("return %1", "return %y").replace("\"acme.axpy\"(%a, %0, %0)", "\"acme.axpy\"(%a, %y, %0)");
    let (text, stats) = bufferize(Context::new(), &program).expect("the model is enough");
    assert_eq!((stats.out_of_place, stats.allocs, stats.copies), (1, 1, 1), "{text}");
    assert!(text.contains("memref.copy %arg2, %alloc") && text.contains("return %arg2"), "{text}");
}

#[test]
fn an_own_op_without_its_model_is_refused() {
    let cx = Context::new();
    cx.allow_unregistered_dialects(true);
    let module = Module::parse(cx, PROGRAM.as_bytes(), "own_op.mlir").expect("is valid");
    let errors = run_one_shot(module.op(), &boundaries()).expect_err("nothing is known of it");
    assert_eq!(errors.0[0].message, "op was not bufferized");
    let extensions = Options { extensions: true, ..boundaries() };
    let module = Module::parse(cx, PROGRAM.as_bytes(), "own_op.mlir").expect("is valid");
    let errors = run_one_shot(module.op(), &extensions).expect_err("nothing is known of it");
    assert!(errors.to_string().contains("acme.axpy"), "{errors}");
}
