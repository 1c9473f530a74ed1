//! Barriers between accesses to shared memory, checked in the kernels themselves: a race may never show on a device that
//! runs subgroups one after another.

use monopour::program::GpuDescription;
use monopour::{CompileOptions, TargetDescription, compile};
use monopour_ir::{Context, Module};
use monopour_testkit::barriers::{Found, check};
use monopour_testkit::device::full_is_asked_for;
use monopour_testkit::suite::{Case, selected};

/// The races of a case; none where it does not compile for such a device, which other tests cover.
fn found(case: &Case, target: &GpuDescription) -> Found {
    let targets = vec![TargetDescription::Gpu(target.clone())];
    let options = CompileOptions { targets, dump_after: vec!["distribute".into()], ..Default::default() };
    let Ok(compiled) = compile(case.text.as_bytes(), &case.name, &options) else { return Found::default() };
    let dump = compiled.report.dumps.iter().find(|d| d.phase == "distribute").expect("the phase ran");
    let module = Module::parse(Context::new(), dump.text.as_bytes(), &case.name).unwrap_or_else(|d| panic!("{d}"));
    check(&module)
}

#[test]
fn kernels_wait_for_what_they_share() {
    // Devices with enough workgroup memory, and with so little that intermediates go to scratch.
    let portable = GpuDescription::portable();
    let mut small = portable.clone();
    small.limits.max_workgroup_storage_bytes = 256;
    let (mut kernels, mut races) = (0, vec![]);
    for case in selected(full_is_asked_for()) {
        for target in [&portable, &small] {
            let found = found(&case, target);
            kernels += found.kernels;
            races.extend(found.races.into_iter().map(|race| format!("{}: {race}", case.name)));
        }
    }
    assert!(races.is_empty(), "{}", races.join("\n"));
    assert!(kernels > 40, "only {kernels} kernels share memory");
}
