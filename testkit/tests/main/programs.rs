//! The references of the benchmark programs, which use plain loops, against the evaluator, which reads the program.

use monopour_ir::{Context, Module};
use monopour_testkit::evaluate;
use monopour_testkit::programs::{NAMES, Size, benchmark};

#[test]
fn references_are_what_the_evaluator_says() {
    for name in NAMES {
        let program = benchmark(name, Size::Small).expect("one of the names");
        let module =
            Module::parse(Context::new(), program.text.as_bytes(), name).unwrap_or_else(|d| panic!("{name}: {d}"));
        let results = evaluate(&module, "main", &program.inputs).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!((results.len(), &results[0].shape), (1, &program.shape), "{name}");
        let worst = results[0].to_f64().iter().zip(&program.expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        // `ew8` computes its steps before the root in f32, and a root near zero amplifies that.
        let allowed = if name == "ew8" { 1e-3 } else { 1e-9 };
        assert!(worst <= allowed && results[0].len() == program.expected.len(), "{name}: {worst:e}");
    }
}
