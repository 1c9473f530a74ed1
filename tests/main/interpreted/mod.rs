//! Kernels for GPUs that no machine here has: compiled for their descriptions, and run by the interpreter of SPIR-V.

mod capabilities;
mod cooperative;
mod costs;
mod host;
mod packed;
mod planted;
mod products;
mod random;
mod targets;

use crate::backend::{deviating, from_runtime, to_runtime};
use crate::portable::{DOUBLE, REFUSED};
use host::{Input, Settings};
use monopour::program::{DeviceType, GpuFeature, Program};
use monopour::{CompileOptions, TargetDescription};
use monopour_testkit::HostTensor;
use monopour_testkit::device::full_is_asked_for;
use monopour_testkit::suite::{Backend, Case, Cost, Report, Run, run, selected};
use targets::Target;

/// A described GPU as a backend of the op suite.
struct Interpreted {
    target: Target,
    /// Whether dispatches take other kernels than the cost model's.
    deviates: bool,
    ignores: Vec<(&'static str, &'static str)>,
}

impl Interpreted {
    fn new(target: Target) -> Self {
        let has = |feature: GpuFeature| target.description.has(feature);
        let (doubles, words) = (has(GpuFeature::F64), has(GpuFeature::Int64));
        let is_refused = |why: &str| if why == DOUBLE { !doubles } else { !words };
        let ignores = REFUSED.iter().filter(|(_, why)| is_refused(why)).copied().collect();
        Self { target, deviates: false, ignores }
    }
}

/// The program of a case, for a description.
fn compiled(case: &Case, target: &Target) -> Result<Program, String> {
    let targets = vec![TargetDescription::Gpu(target.description.clone())];
    let options = CompileOptions { targets, verify: true, ..Default::default() };
    Ok(monopour::compile(case.text.as_bytes(), &case.name, &options).map_err(|d| d.to_string())?.program)
}

/// The results of a program on these inputs, and what its kernels did.
fn executed(
    program: &Program,
    inputs: &[HostTensor],
    settings: Settings,
) -> Result<(Vec<HostTensor>, host::Outcome), String> {
    let input = |(tensor, desc): (&HostTensor, &monopour::program::TensorDesc)| {
        let tensor = to_runtime(tensor);
        let mut word = [0; 8];
        if desc.scalar {
            word[..tensor.data().len()].copy_from_slice(tensor.data());
        }
        Input { bytes: tensor.data().to_vec(), bits: u64::from_le_bytes(word), shape: tensor.shape().to_vec() }
    };
    let inputs: Vec<Input> = inputs.iter().zip(&program.signature.inputs).map(input).collect();
    let outcome = host::run(program, &inputs, settings)?;
    let result = |((bytes, shape), desc): (&(Vec<u8>, Vec<u64>), &monopour::program::TensorDesc)| {
        monopour::runtime::HostTensor::new(desc.dtype, shape.clone(), bytes.clone()).map_err(|e| e.to_string())
    };
    let results = outcome.results.iter().zip(&program.signature.results).map(result);
    let results = results.map(|tensor| tensor.map(|tensor| from_runtime(&tensor)));
    Ok((results.collect::<Result<_, String>>()?, outcome))
}

impl Backend for Interpreted {
    fn name(&self) -> &str {
        self.target.name
    }

    fn submits(&self) -> u64 {
        1
    }

    fn cuts_reductions(&self) -> bool {
        self.target.description.device_type == DeviceType::Discrete
    }

    fn ignores(&self) -> &[(&str, &str)] {
        &self.ignores
    }

    fn run(&mut self, case: &Case, inputs: &[HostTensor]) -> Result<Run, String> {
        let program = if self.deviates {
            deviating(case, &TargetDescription::Gpu(self.target.description.clone()))?
        } else {
            compiled(case, &self.target)?
        };
        let mut first: Option<Run> = None;
        for subgroup_size in &self.target.sizes {
            let settings = Settings { subgroup_size: *subgroup_size, seed: u64::from(*subgroup_size) };
            let (outputs, outcome) =
                executed(&program, inputs, settings).map_err(|e| format!("subgroups of {subgroup_size}: {e}"))?;
            let cost = Cost { dispatches: outcome.dispatches, copies: outcome.copies, submits: 1, ..Cost::default() };
            let this = Run { outputs, cost: Some(cost) };
            // Values of the other sizes are compared with the first one's.
            if let Some(first) = &first {
                for (found, expected) in this.outputs.iter().zip(&first.outputs) {
                    monopour_testkit::approx::compare(found, expected, case.tolerance)
                        .map_err(|e| format!("subgroups of {subgroup_size}: {e}"))?;
                }
            }
            first.get_or_insert(this);
        }
        first.ok_or_else(|| "no size of subgroups".to_owned())
    }
}

/// The cases of this run; `MONOPOUR_TEST_ONLY` keeps those whose name contains it.
fn cases() -> Vec<Case> {
    let only = std::env::var("MONOPOUR_TEST_ONLY").ok();
    let mut cases = selected(full_is_asked_for() || only.is_some());
    cases.retain(|case| only.as_ref().is_none_or(|only| case.name.contains(only)));
    cases
}

fn check(target: Target) {
    check_all(Interpreted::new(target));
}

fn check_all(backend: Interpreted) {
    check_cases(backend, &cases());
}

fn check_cases(backend: Interpreted, cases: &[Case]) {
    let mut backends: Vec<Box<dyn Backend>> = vec![Box::new(backend)];
    let mut report = Report::default();
    for family in cases.chunk_by(|a, b| a.family() == b.family()) {
        let part = run(&mut backends, family);
        println!("{part}");
        part.failures.iter().for_each(|f| println!("{f}"));
        report.merge(part);
    }
    report.assert_passed();
}

#[test]
fn op_suite_interpreted_for_an_h200() {
    check(targets::h200());
}

#[test]
fn op_suite_interpreted_for_rdna3() {
    check(targets::rdna3());
}

#[test]
fn op_suite_interpreted_for_intel() {
    check(targets::intel());
}

#[test]
fn op_suite_interpreted_for_apple() {
    check(targets::apple());
}

#[test]
fn op_suite_interpreted_for_a_portable_gpu() {
    check(targets::portable());
}

/// What measurement may choose for hardware.
fn check_other_kernels(target: Target) {
    check_all(Interpreted { deviates: true, ..Interpreted::new(target) });
}

#[test]
fn op_suite_interpreted_by_other_kernels() {
    check_other_kernels(targets::h200());
}

#[test]
fn op_suite_interpreted_by_other_kernels_for_rdna3() {
    if full_is_asked_for() {
        check_other_kernels(targets::rdna3());
    }
}

#[test]
fn op_suite_interpreted_by_other_kernels_for_apple() {
    if full_is_asked_for() {
        check_other_kernels(targets::apple());
    }
}

/// Invocations beyond the edge of a tile that takes several passes must not read what others have stored.
#[test]
fn sums_begin_with_what_they_overwrite() {
    let of_several_passes = |case: &Case| case.name.ends_with("_started/1x100x116x52");
    let cases: Vec<Case> = selected(true).into_iter().filter(of_several_passes).collect();
    assert_eq!(cases.len(), 4);
    check_cases(Interpreted { deviates: true, ..Interpreted::new(targets::h200()) }, &cases);
}
