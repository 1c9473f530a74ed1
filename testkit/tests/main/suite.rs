//! The suite itself: every case parses, has a value, and agrees with itself in f32.

use monopour_ir::{Context, Module};
use monopour_testkit::generate_graphs::{self, Features};
use monopour_testkit::suite::{Backend, Case, Run, all, run, selected};
use monopour_testkit::{Dtype, HostTensor, evaluate, generate};
use std::collections::BTreeSet;

#[test]
fn every_case_parses_and_names_are_unique() {
    let cases = all();
    let names: BTreeSet<_> = cases.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names.len(), cases.len());
    assert!(cases.len() >= 600, "{} cases", cases.len());
    let cx = Context::new();
    for case in &cases {
        Module::parse(cx, case.text.as_bytes(), &case.name)
            .unwrap_or_else(|d| panic!("{}\n{d}\n{}", case.name, case.text));
    }
}

/// Poison in a result would be an element that was never written.
#[test]
fn every_case_has_a_value() {
    let mut failures = vec![];
    let whole = monopour_testkit::device::full_is_asked_for();
    for case in all().iter().filter(|c| whole || c.work <= 20_000_000) {
        match case.reference(&case.input_values()) {
            Ok(values) if values.iter().all(|v| v.to_f64().iter().all(|x| x.is_finite())) => {}
            Ok(_) => failures.push(format!("{}: a value is not finite\n{}", case.name, case.text)),
            Err(message) => failures.push(format!("{}: {message}", case.name)),
        }
    }
    assert!(failures.is_empty(), "{} without a value\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn the_sample_is_quick_and_always_the_same() {
    let names = |cases: Vec<Case>| cases.into_iter().map(|c| c.name).collect::<Vec<_>>();
    assert_eq!(names(selected(false)), names(selected(false)));
    assert!(selected(false).len() * 2 < all().len());
}

/// Rounds the evaluator's results to f32, and changes one element of one case.
struct Rounded {
    spoil: &'static str,
}

impl Backend for Rounded {
    fn name(&self) -> &str {
        "rounded"
    }
    fn submits(&self) -> u64 {
        0
    }
    fn run(&mut self, case: &Case, inputs: &[HostTensor]) -> Result<Run, String> {
        let mut outputs = case.reference(inputs)?;
        for output in &mut outputs {
            let mut bytes = output.to_bytes();
            if case.name == self.spoil {
                let last = bytes.len() - 1;
                bytes[last] ^= 0x40;
            }
            *output = HostTensor::from_bytes(output.dtype, &output.shape, &bytes).expect("as many bytes as before");
        }
        Ok(Run { outputs, cost: None })
    }
}

#[test]
fn values_have_no_hole_and_a_wrong_element_is_found() {
    let spoil = "generic/window";
    let mut cases = selected(false);
    // The sample changes with every case that is added.
    cases.retain(|case| case.name != spoil);
    cases.extend(all().into_iter().filter(|case| case.name == spoil));
    let report = run(&mut [Box::new(Rounded { spoil })], &cases);
    assert_eq!(report.passed, cases.len() - 1, "{:#?}", report.failures);
    assert!(
        report.failures[0].starts_with("rounded: generic/window: result 0: 1 of 32 elements"),
        "{:?}",
        report.failures
    );
    for case in &cases {
        let values = case.reference(&case.input_values()).expect("has a value");
        assert!(values.iter().all(|v| v.to_f64().iter().all(|x| x.is_finite())), "{}", case.name);
    }
}

#[test]
fn random_programs_verify_and_have_a_value() {
    let cx = Context::new();
    for seed in 0..200 {
        let text = generate::program(seed, 8);
        let module =
            Module::parse(cx, text.as_bytes(), "random.mlir").unwrap_or_else(|d| panic!("seed {seed}\n{d}\n{text}"));
        let (types, _) = module.symbol("main").expect("has an entry").function_type().expect("is a function");
        let shape = |s: Vec<i64>| s.into_iter().map(|d| d as usize).collect::<Vec<_>>();
        let inputs: Vec<_> =
            types.iter().map(|t| HostTensor::random(Dtype::F32, &shape(t.shape().expect("ranked")), seed)).collect();
        let results = evaluate(&module, "main", &inputs).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
        assert!(results[0].to_f64().iter().all(|x| !x.is_nan()), "seed {seed} reads what nothing wrote\n{text}");
    }
}

#[test]
fn random_graphs_verify_and_have_a_value_of_moderate_size() {
    let cx = Context::new();
    for seed in 0..1000 {
        let (text, inputs) = generate_graphs::graph(seed, 2 + seed as usize % 7);
        let module =
            Module::parse(cx, text.as_bytes(), "random.mlir").unwrap_or_else(|d| panic!("seed {seed}\n{d}\n{text}"));
        let values: Vec<_> = inputs.iter().zip(seed..).map(|(input, s)| input.values(s)).collect();
        let results = evaluate(&module, "main", &values).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
        // A NaN was never written.
        assert!(results.iter().all(|r| r.to_f64().iter().all(|x| x.abs() <= 17.0)), "seed {seed}\n{text}");
    }
}

/// Ops that must occur in random graphs of everything.
const KINDS: [&str; 51] = [
    "x?x",
    "tensor<?x",
    "arith.index_cast",
    "tensor.concat dim(0) %v",
    "xi1>",
    "xi8>",
    "xi16>",
    "xi32>",
    "xi64>",
    "xui8>",
    "xui16>",
    "xui32>",
    "xui64>",
    "xf16>",
    "xbf16>",
    "xf64>",
    "arith.maxui",
    "arith.minui",
    "arith.divui",
    "arith.remui",
    "arith.divsi",
    "arith.shli",
    "arith.shrui",
    "arith.shrsi",
    "arith.extui",
    "arith.extsi",
    "arith.trunci",
    "arith.uitofp",
    "arith.fptosi",
    "arith.fptoui",
    "arith.cmpi u",
    "arith.cmpi s",
    "arith.cmpf",
    "arith.remf",
    "math.ipowi",
    "math.fpowi",
    "math.isinf",
    "math.isnan",
    "math.ctpop",
    "tensor.bitcast",
    "tensor.reshape",
    "arith.bitcast",
    "low[-",
    "linalg.matmul",
    "scf.index_switch",
    "scf.for",
    "scf.if",
    "cf.assert",
    "bufferization.alloc_tensor",
    "bufferization.materialize_in_destination",
    "tensor.pad",
];

#[test]
fn random_graphs_of_everything_verify_and_have_a_value_of_moderate_size() {
    let features = Features { bad_indices: false, ..Features::EVERYTHING };
    let cx = Context::new();
    let mut found = [0; KINDS.len()];
    // The last one collapsed known sizes to a computed one.
    for seed in (0..1000).chain([2932]) {
        let (text, inputs) = generate_graphs::graph_with(seed, 4 + seed as usize % 13, features);
        let module =
            Module::parse(cx, text.as_bytes(), "random.mlir").unwrap_or_else(|d| panic!("seed {seed}\n{d}\n{text}"));
        let values: Vec<_> = inputs.iter().zip(seed..).map(|(input, s)| input.values(s)).collect();
        let results = evaluate(&module, "main", &values).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
        let floats = results.iter().filter(|r| r.dtype.is_float());
        assert!(floats.flat_map(|r| r.to_f64()).all(|x| x.abs() <= 17.0), "seed {seed}\n{text}");
        for (count, part) in found.iter_mut().zip(KINDS) {
            *count += usize::from(text.contains(part));
        }
    }
    let rare: Vec<_> = found.iter().zip(KINDS).filter(|(count, _)| **count < 10).collect();
    assert!(rare.is_empty(), "some kinds are rare: {rare:?}");
}
