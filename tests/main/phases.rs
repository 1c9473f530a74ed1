//! What every phase prints is IR that upstream's `mlir-opt` parses and verifies, and the way in makes no difference.

use crate::backend::Monopour;
use monopour::pipeline::PHASES;
use monopour::program::{CpuTarget, GpuDescription};
use monopour::{CompileOptions, Compiled, TargetDescription, compile};
use monopour_ir::{Context, Module};
use monopour_testkit::oracle::verifies;
use monopour_testkit::suite::{Case, all};

const NAMES: [&str; 4] =
    ["mlp/5x33x17x9x10", "matmul/chain/65x63x10", "elementwise/chain/7x65", "generic/windowed_image"];

fn programs() -> Vec<Case> {
    let cases: Vec<_> = all().into_iter().filter(|c| NAMES.contains(&c.name.as_str())).collect();
    assert_eq!(cases.len(), NAMES.len());
    cases
}

fn targets() -> Vec<TargetDescription> {
    let mut targets =
        vec![TargetDescription::Cpu(CpuTarget::host()), TargetDescription::Gpu(GpuDescription::portable())];
    targets.extend(Monopour::gpu().map(|gpu| gpu.target().clone()));
    targets
}

fn compiled(source: &[u8], options: &CompileOptions) -> Compiled {
    compile(source, "model.mlir", options).unwrap_or_else(|d| panic!("{d}"))
}

#[test]
fn every_phase_prints_ir_that_upstream_verifies() {
    for case in programs() {
        for target in targets() {
            let dump_after = PHASES.iter().map(|p| p.name.to_owned()).collect();
            let options = CompileOptions { targets: vec![target], dump_after, ..Default::default() };
            let report = compiled(case.text.as_bytes(), &options).report;
            assert_eq!(report.dumps.iter().filter(|d| PHASES.iter().any(|p| p.name == d.phase)).count(), PHASES.len());
            for dump in report.dumps.iter().filter(|d| PHASES.iter().any(|p| p.name == d.phase)) {
                let (phase, kind) = (&dump.phase, dump.target);
                verifies(&dump.text)
                    .unwrap_or_else(|e| panic!("{}: after {phase} for {kind}\n{e}\n{}", case.name, dump.text));
            }
        }
    }
}

#[test]
fn bytecode_gives_the_same_artifact_as_text() {
    for case in programs() {
        let options = CompileOptions { targets: targets(), ..Default::default() };
        let text = case.text.as_bytes();
        // Locations are part of a module, and of what an artifact says about its buffers.
        let bytecode = Module::parse(Context::new(), text, "model.mlir").expect("parses").op().to_bytecode();
        assert!(bytecode.starts_with(b"ML\xefR"));
        let artifact = |source: &[u8]| compiled(source, &options).program.encode().expect("encodes");
        assert!(artifact(text) == artifact(&bytecode), "{}: other bytes", case.name);
        assert!(artifact(text) == artifact(text), "{}: not reproducible", case.name);
    }
}
