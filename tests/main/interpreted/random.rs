//! Random programs for GPUs that no machine here has: one op of any shape, type and values, and graphs of ops.

use super::executed;
use super::host::Settings;
use super::targets::{Target, apple, h200, intel, portable, rdna3};
use monopour::{CompileOptions, TargetDescription, compile};
use monopour_ir::{Context, Module};
use monopour_testkit::approx::{Tolerance, compare};
use monopour_testkit::device::full_is_asked_for;
use monopour_testkit::random::seeds;
use monopour_testkit::text::Input;
use monopour_testkit::{
    Dtype, EvalError, HostTensor, evaluate_in_type, generate_graphs, generate_images, generate_shapes,
};
use std::ops::Range;

/// Functions of f32 are expanded with less care than on CPUs (`docs/numerics.md`).
fn tolerance(dtype: Dtype, largest: f64) -> Tolerance {
    match dtype {
        Dtype::F32 => Tolerance { absolute: 5e-5 * largest.min(1000.0), relative: 1e-4 },
        Dtype::F16 => Tolerance { absolute: 2f64.powi(-14), relative: 2f64.powi(-9) },
        Dtype::Bf16 => Tolerance { absolute: 2f64.powi(-14), relative: 2f64.powi(-6) },
        other => generate_shapes::tolerance(other, largest),
    }
}

fn evaluate(text: &str, inputs: &[HostTensor]) -> Result<Vec<HostTensor>, EvalError> {
    Context::scope(|cx| {
        let module = Module::parse(cx, text.as_bytes(), "random.mlir").unwrap_or_else(|d| panic!("{d}\n{text}"));
        evaluate_in_type(&module, "main", inputs)
    })
}

/// Whether a program is right on a target with subgroups of this size; false if the target lacks a type of it.
fn check(text: &str, inputs: &[HostTensor], target: &Target, subgroup_size: u32) -> Result<bool, String> {
    let targets = vec![TargetDescription::Gpu(target.description.clone())];
    let options = CompileOptions { targets, verify: true, ..Default::default() };
    let program = match compile(text.as_bytes(), "random.mlir", &options) {
        Ok(compiled) => compiled.program,
        Err(why) if why.to_string().contains("G0002") => return Ok(false),
        Err(why) => return Err(why.to_string()),
    };
    let expected = match evaluate(text, inputs) {
        Ok(expected) => expected,
        // Host code ends such a run.
        Err(EvalError::Undefined { .. }) => {
            let outcome = executed(&program, inputs, Settings { subgroup_size, seed: 0 });
            return if outcome.is_err() { Ok(true) } else { Err("an undefined case goes unnoticed".to_owned()) };
        }
        Err(why) => return Err(why.to_string()),
    };
    let (outputs, _) = executed(&program, inputs, Settings { subgroup_size, seed: 0 })?;
    for (found, expected) in outputs.iter().zip(&expected) {
        let finite = expected.to_f64().into_iter().filter(|v| v.is_finite());
        let largest = finite.fold(1.0f64, |m, v| m.max(v.abs()));
        compare(found, expected, tolerance(found.dtype, largest))?;
    }
    Ok(outputs.len() == expected.len())
}

/// Each program on one target, by its seed, or on every one.
fn check_all(seeds: Range<u64>, on_every: bool, make: impl Fn(u64) -> (String, Vec<Input>)) {
    let targets = [h200(), rdna3(), intel(), apple(), portable()];
    let (mut failures, mut right, mut total) = (vec![], 0, 0);
    for seed in seeds {
        let (text, inputs) = make(seed);
        let values: Vec<HostTensor> = inputs.iter().zip(seed..).map(|(input, s)| input.values(s)).collect();
        let takes = |at: &usize| on_every || *at as u64 == seed % targets.len() as u64;
        for target in (0..targets.len()).filter(takes).map(|at| &targets[at]) {
            total += 1;
            let size = target.sizes[(seed / targets.len() as u64) as usize % target.sizes.len()];
            match check(&text, &values, target, size) {
                Ok(ran) => right += u64::from(ran),
                Err(why) => failures.push(format!("{}: subgroups of {size}: seed {seed}: {why}\n{text}", target.name)),
            }
        }
    }
    println!("{total} random programs, {right} right, {} wrong", failures.len());
    assert!(failures.is_empty(), "{} failed\n{}", failures.len(), failures.join("\n"));
    assert!(right * 2 > total, "{right} of {total} programs ran");
}

#[test]
fn random_shapes_are_right_interpreted() {
    check_all(seeds(40, 3000), full_is_asked_for(), generate_shapes::program);
}

#[test]
fn random_graphs_are_right_interpreted() {
    check_all(seeds(15, 500), false, |seed| generate_graphs::graph(seed, 2 + (seed % 7) as usize));
}

#[test]
fn random_batches_of_images_are_right_interpreted() {
    check_all(seeds(10, 300), false, |seed| generate_images::network_of_batches(seed, 3 + (seed % 9) as usize));
}
