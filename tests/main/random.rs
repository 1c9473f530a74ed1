//! Random small programs: what comes out is what the evaluator says, and nothing leaks, whatever was fused or copied.

use crate::backend::Monopour;
use monopour::{CompileOptions, compile};
use monopour_ir::{Context, Module};
use monopour_testkit::approx::{Tolerance, compare};
use monopour_testkit::device::full_is_asked_for;
use monopour_testkit::{Dtype, HostTensor, evaluate, generate};

fn check(backend: &Monopour) {
    let seeds = if full_is_asked_for() { 300 } else { 12 };
    for seed in 0..seeds {
        let text = generate::program(seed, 6);
        check_program(backend, seed, &text).unwrap_or_else(|message| panic!("seed {seed}: {message}\n{text}"));
    }
}

fn check_program(backend: &Monopour, seed: u64, text: &str) -> Result<(), String> {
    let module = Module::parse(Context::new(), text.as_bytes(), "random.mlir").map_err(|d| d.to_string())?;
    let (types, _) = module.symbol("main").and_then(|f| f.function_type()).ok_or("no entry")?;
    let shape =
        |t: &monopour_ir::Type| t.shape().unwrap_or_default().into_iter().map(|d| d as usize).collect::<Vec<_>>();
    let inputs: Vec<_> = types.iter().zip(seed..).map(|(t, s)| HostTensor::random(Dtype::F32, &shape(t), s)).collect();
    let expected = evaluate(&module, "main", &inputs).map_err(|e| e.to_string())?;
    let options = CompileOptions { targets: vec![backend.target().clone()], verify: true, ..Default::default() };
    let compiled = compile(text.as_bytes(), "random.mlir", &options).map_err(|d| d.to_string())?;
    let run = backend.run_program(compiled.program, &inputs)?;
    // Products of products: values grow, so the tolerance is relative to the largest.
    let largest = expected[0].to_f64().iter().fold(1.0f64, |m, v| m.max(v.abs()));
    compare(&run.outputs[0], &expected[0], Tolerance { absolute: 1e-5 * largest, relative: 1e-4 })?;
    let cost = run.cost.ok_or("no cost")?;
    if cost.leaks + cost.transfers + cost.created_when_warm == 0 { Ok(()) } else { Err(format!("it cost {cost:?}")) }
}

#[test]
fn random_programs_are_right_on_the_cpu() {
    check(&Monopour::cpu());
}

#[test]
fn random_programs_are_right_on_a_gpu() {
    if let Some(gpu) = Monopour::gpu() {
        check(&gpu);
    }
}
