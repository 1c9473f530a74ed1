//! Random programs against the evaluator, and without leaks.

use crate::backend::Monopour;
use monopour::{CompileOptions, compile};
use monopour_ir::{Context, Module};
use monopour_testkit::approx::{Tolerance, compare};
use monopour_testkit::generate_graphs::{self, Features};
use monopour_testkit::random::seeds;
use monopour_testkit::suite::Backend;
use monopour_testkit::text::Input;
use monopour_testkit::{Dtype, EvalError, HostTensor, evaluate_in_type, generate, generate_guards};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// All types are exact but f32; devices may flush denormals.
fn tolerance(dtype: Dtype, largest: f64) -> Tolerance {
    let flushed = |exponent: i32| Tolerance { absolute: 2f64.powi(exponent), relative: 0.0 };
    match dtype {
        Dtype::F16 => flushed(-14),
        Dtype::Bf16 => flushed(-126),
        Dtype::F64 => flushed(-1022),
        Dtype::F32 => Tolerance { absolute: 5e-5 * largest, relative: 1e-4 },
        _ => Tolerance::EXACT,
    }
}

fn check_program(backend: &Monopour, text: &str, inputs: &[HostTensor]) -> Result<(), String> {
    let expected = Context::scope(|cx| {
        let module = Module::parse(cx, text.as_bytes(), "random.mlir").map_err(|d| d.to_string())?;
        Ok::<_, String>(evaluate_in_type(&module, "main", inputs))
    })?;
    let options = CompileOptions { targets: vec![backend.target().clone()], verify: true, ..Default::default() };
    let compiled = compile(text.as_bytes(), "random.mlir", &options).map_err(|d| d.to_string())?;
    let run = backend.run_program(compiled.program, inputs);
    if let Err(EvalError::Undefined { what, .. }) = &expected {
        // Only host code reports undefined cases.
        let checked = |e: &String| e.starts_with("a check of the program failed");
        return if run.as_ref().is_err_and(checked) { Ok(()) } else { Err(format!("{what} has gone unnoticed")) };
    }
    let (run, expected) = (run?, expected.map_err(|e| e.to_string())?);
    if run.outputs.len() != expected.len() {
        return Err(format!("{} results, expected {}", run.outputs.len(), expected.len()));
    }
    for (got, expected) in run.outputs.iter().zip(&expected) {
        // Products of products: errors grow as values do, so the tolerance is relative to the largest.
        let largest = expected.to_f64().iter().fold(1.0f64, |m, v| m.max(v.abs()));
        compare(got, expected, tolerance(got.dtype, largest))?;
    }
    let cost = run.cost.ok_or("no cost")?;
    if cost.leaks + cost.transfers + cost.created_when_warm == 0 { Ok(()) } else { Err(format!("it cost {cost:?}")) }
}

fn check(backend: &Monopour, seeds: std::ops::Range<u64>, make: impl Fn(u64) -> (String, Vec<Input>)) {
    let mut failures = vec![];
    let total = seeds.end - seeds.start;
    for seed in seeds {
        let (text, inputs) = make(seed);
        let values: Vec<_> = inputs.iter().zip(seed..).map(|(input, s)| input.values(s)).collect();
        let outcome = catch_unwind(AssertUnwindSafe(|| check_program(backend, &text, &values)));
        if let Err(message) = outcome.unwrap_or_else(|_| Err("panicked".to_owned())) {
            failures.push(format!("seed {seed}: {message}\n{text}"));
        }
    }
    println!("{}: {} of {total} random programs are right", backend.name(), total - failures.len() as u64);
    assert!(failures.is_empty(), "{} failed\n{}", failures.len(), failures.join("\n"));
}

/// Small perceptron-like programs: products and elementwise ops on shared destinations.
fn product_program(seed: u64) -> (String, Vec<Input>) {
    let text = generate::program(seed, 6);
    let module = Module::parse(Context::new(), text.as_bytes(), "random.mlir").expect("a generated program parses");
    let (types, _) = module.symbol("main").and_then(|f| f.function_type()).expect("an entry");
    let shape =
        |t: &monopour_ir::Type| t.shape().unwrap_or_default().into_iter().map(|d| d as usize).collect::<Vec<_>>();
    (text, types.iter().map(|t| Input::new(Dtype::F32, &shape(t))).collect())
}

/// The number of ops follows from the seed, so that a short graph shows what a long one hides.
fn graph(seed: u64) -> (String, Vec<Input>) {
    generate_graphs::graph(seed, 2 + (seed % 7) as usize)
}

/// The types of WebGPU, and those packed into its words.
const PORTABLE: &[Dtype] = &[
    Dtype::Bf16,
    Dtype::Int(1),
    Dtype::Int(8),
    Dtype::Int(16),
    Dtype::Int(32),
    Dtype::Unsigned(8),
    Dtype::Unsigned(16),
    Dtype::Unsigned(32),
];

/// As [`graph`], with dynamic sizes and other types.
fn wide_graph(features: Features) -> impl Fn(u64) -> (String, Vec<Input>) {
    move |seed| generate_graphs::graph_with(seed, 4 + (seed % 13) as usize, features)
}

/// Indices out of range, divisors of zero, and slices at dynamic offsets.
fn guarded(seed: u64) -> (String, Vec<Input>) {
    generate_guards::program(seed, 2 + (seed % 9) as usize)
}

#[test]
fn random_guards_are_right_on_the_cpu() {
    check(&Monopour::cpu(), seeds(25, 1000), guarded);
}

#[test]
fn random_guards_are_right_on_a_gpu() {
    if let Some(gpu) = Monopour::gpu() {
        check(&gpu, seeds(25, 1000), guarded);
    }
}

#[test]
fn random_products_are_right_on_the_cpu() {
    check(&Monopour::cpu(), seeds(8, 300), product_program);
}

#[test]
fn random_products_are_right_on_a_gpu() {
    if let Some(gpu) = Monopour::gpu() {
        check(&gpu, seeds(8, 300), product_program);
    }
}

#[test]
fn random_graphs_are_right_on_the_cpu() {
    check(&Monopour::cpu(), seeds(25, 1000), graph);
}

#[test]
fn random_graphs_are_right_on_a_gpu() {
    if let Some(gpu) = Monopour::gpu() {
        check(&gpu, seeds(25, 1000), graph);
    }
}

#[test]
fn random_graphs_of_everything_are_right_on_the_cpu() {
    check(&Monopour::cpu(), seeds(25, 3000), wide_graph(Features::EVERYTHING));
}

#[test]
fn random_graphs_of_everything_are_right_on_a_gpu() {
    if let Some(gpu) = Monopour::gpu() {
        check(&gpu, seeds(25, 3000), wide_graph(Features::EVERYTHING));
    }
}

#[test]
fn random_graphs_of_everything_are_right_on_a_portable_gpu() {
    if let Some(portable) = Monopour::portable() {
        check(&portable, seeds(15, 3000), wide_graph(Features { types: PORTABLE, ..Features::EVERYTHING }));
    }
}
