//! Counted steps, not seconds: the work of the whole pass on growing programs.

use monopour_bufferize::{Options, improve, order_dispatches, run_one_shot};
use monopour_ir::{Context, Module};
use monopour_testkit::growing::{SHAPES, shape};

fn steps(name: &str, n: usize) -> u64 {
    let options = Options {
        bufferize_function_boundaries: true,
        allow_return_allocs_from_loops: true,
        extensions: true,
        ..Options::default()
    };
    Context::scope(|cx| {
        let text = (shape(name).expect("a shape").text)(n);
        let module = Module::parse(cx, text.as_bytes(), name).expect("shapes are valid");
        run_one_shot(module.op(), &options).unwrap_or_else(|e| panic!("{name} at {n}: {e}")).steps
    })
}

#[test]
fn work_grows_with_the_program_and_a_logarithm() {
    for shape in SHAPES.iter().filter(|s| !s.name.ends_with("_nest")) {
        let (small, large) = (steps(shape.name, 60), steps(shape.name, 480));
        // Eight times the program; n log n is 1.5 times that from 60 to 480.
        assert!(large <= 12 * small, "{}: {small} steps at 60, {large} at 480", shape.name);
    }
}

/// With the strategy `minimal`, all analyses together.
#[test]
fn work_of_changes_grows_with_the_program_and_a_logarithm() {
    let steps = |name: &str, n: usize| {
        Context::scope(|cx| {
            let text = (shape(name).expect("a shape").text)(n);
            let module = Module::parse(cx, text.as_bytes(), name).expect("shapes are valid");
            let options = Options { entry_abi: false, ..Options::pipeline() };
            order_dispatches(module.op(), &options);
            let before = improve(module.op(), &options).unwrap_or_else(|e| panic!("{name} at {n}: {e}")).steps;
            before + run_one_shot(module.op(), &options).unwrap_or_else(|e| panic!("{name} at {n}: {e}")).steps
        })
    };
    for shape in SHAPES.iter().filter(|s| !s.name.ends_with("_nest")) {
        let (small, large) = (steps(shape.name, 60), steps(shape.name, 480));
        assert!(large <= 12 * small, "{}: {small} steps at 60, {large} at 480", shape.name);
    }
}

#[test]
fn work_grows_with_the_square_of_the_depth_at_most() {
    for name in ["loop_nest", "if_nest"] {
        let (small, large) = (steps(name, 10), steps(name, 60));
        assert!(large <= 36 * small, "{name}: {small} steps at depth 10, {large} at depth 60");
    }
}
