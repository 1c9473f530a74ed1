//! The op suite on every kind of device: values, one dispatch, no copy, no transfer, nothing created when warm, no leak.

use crate::backend::Monopour;
use monopour_testkit::device::full_is_asked_for;
use monopour_testkit::suite::{Backend, Case, Report, run, selected};

/// The cases of this run; `MONOPOUR_TEST_ONLY` keeps those whose name contains it.
fn cases() -> Vec<Case> {
    let mut cases = selected(full_is_asked_for() || std::env::var_os("MONOPOUR_TEST_ONLY").is_some());
    if let Ok(only) = std::env::var("MONOPOUR_TEST_ONLY") {
        cases.retain(|c| c.name.contains(&only));
    }
    cases
}

fn check(backend: impl Backend + 'static) {
    check_all(vec![Box::new(backend)]);
}

/// On several backends, whose results are compared with one run of the evaluator.
fn check_all(mut backends: Vec<Box<dyn Backend>>) {
    let mut report = Report::default();
    // By family, so that an interrupted run has reported its progress.
    for family in cases().chunk_by(|a, b| a.family() == b.family()) {
        let part = run(&mut backends, family);
        println!("{part}");
        part.failures.iter().for_each(|f| println!("{f}"));
        report.merge(part);
    }
    println!("{} cases passed, {} ignored", report.passed, report.ignored.len());
    report.assert_passed();
}

#[test]
fn op_suite_on_the_cpu() {
    check(Monopour::cpu());
}

fn check_cpus(cpus: Vec<Monopour>) {
    if !cpus.is_empty() {
        check_all(cpus.into_iter().map(|cpu| Box::new(cpu) as Box<dyn Backend>).collect());
    }
}

#[test]
fn op_suite_on_cpus_of_fewer_features() {
    check_cpus(Monopour::lower_cpus());
}

#[test]
fn op_suite_on_aarch64() {
    check_cpus(Monopour::all_aarch64());
}

#[test]
fn op_suite_on_a_gpu() {
    if let Some(gpu) = Monopour::gpu() {
        check(gpu);
    }
}

#[test]
fn op_suite_on_a_portable_gpu() {
    if let Some(gpu) = Monopour::portable() {
        check(gpu);
    }
}

#[test]
fn op_suite_on_a_gpu_without_trust() {
    if let Some(gpu) = Monopour::untrusted_gpu() {
        check(gpu);
    }
}

/// What measurement may choose is as right as what the cost model does.
#[test]
fn op_suite_on_a_gpu_by_other_kernels() {
    for gpu in [Monopour::gpu(), Monopour::portable()].into_iter().flatten() {
        check(gpu.deviating());
    }
}
