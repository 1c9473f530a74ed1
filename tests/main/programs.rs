//! The benchmark programs: right on every kind of device, from source and from the artifact, with the expected dispatches,
//! no copy, no transfer, nothing created when warm, no leak. Full sizes with `MONOPOUR_TEST_FULL=1`.

use crate::backend::{Monopour, validate_spirv};
use monopour::program::{GpuDescription, Program};
use monopour::{CompileOptions, TargetDescription, compile};
use monopour_testkit::HostTensor;
use monopour_testkit::device::full_is_asked_for;
use monopour_testkit::programs::{Benchmark, NAMES, Size, benchmark};
use monopour_testkit::suite::{Backend, Cost, Run};

fn compiled(b: &Benchmark, target: TargetDescription) -> Result<Program, String> {
    let options = CompileOptions { targets: vec![target], verify: true, ..Default::default() };
    Ok(compile(b.text.as_bytes(), &b.name, &options).map_err(|d| d.to_string())?.program)
}

fn check_run(b: &Benchmark, run: &Run, submits: u64) -> Result<f64, String> {
    let [result] = run.outputs.as_slice() else { return Err(format!("{} results", run.outputs.len())) };
    if result.shape != b.shape || result.len() != b.expected.len() {
        return Err(format!("shape {:?}, expected {:?}", result.shape, b.shape));
    }
    // A NaN is an infinite error.
    let error = |(g, e): (f64, &f64)| if (g - e).is_nan() { f64::INFINITY } else { (g - e).abs() };
    let worst = result.to_f64().into_iter().zip(&b.expected).map(error).fold(0.0, f64::max);
    if worst > b.tolerance {
        return Err(format!("the worst element is off by {worst:e}, allowed {:e}", b.tolerance));
    }
    let cost = run.cost.ok_or("no cost")?;
    let allowed = Cost { dispatches: cost.dispatches.min(b.dispatches.into()), submits, ..Cost::default() };
    if cost == allowed { Ok(worst) } else { Err(format!("it cost {cost:?}, expected {allowed:?}")) }
}

fn check_program(backend: &Monopour, b: &Benchmark) -> Result<f64, String> {
    let program = compiled(b, backend.target().clone())?;
    let mut decoded = Program::decode(&program.encode().map_err(|e| e.to_string())?).map_err(|e| e.to_string())?;
    decoded.trust = program.trust;
    if backend.submits() > 0 {
        validate_spirv(&program)?;
        validate_spirv(&compiled(b, TargetDescription::Gpu(GpuDescription::portable()))?)?;
    }
    let from_source = backend.run_program(program, &b.inputs)?;
    let worst = check_run(b, &from_source, backend.submits())?;
    let from_artifact = backend.run_program(decoded, &b.inputs)?;
    let bytes = |run: &Run| run.outputs.iter().map(HostTensor::to_bytes).collect::<Vec<_>>();
    if bytes(&from_source) == bytes(&from_artifact) {
        Ok(worst)
    } else {
        Err("the artifact gives other results".into())
    }
}

fn check(backend: &Monopour) {
    let size = if full_is_asked_for() { Size::Full } else { Size::Small };
    let mut failures = vec![];
    let only = std::env::var("MONOPOUR_TEST_ONLY").unwrap_or_default();
    for name in NAMES.into_iter().filter(|n| n.contains(&only)) {
        let program = benchmark(name, size).expect("one of the names");
        match check_program(backend, &program) {
            Ok(worst) => println!("{}: {name}: worst error {worst:.1e}", backend.name()),
            Err(message) => failures.push(format!("{}: {name}: {message}", backend.name())),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn benchmark_programs_on_the_cpu() {
    check(&Monopour::cpu());
}

#[test]
fn benchmark_programs_on_a_gpu() {
    if let Some(gpu) = Monopour::gpu() {
        check(&gpu);
    }
}
