//! Upstream's `mlir-opt` parses and verifies the IR of every phase, and text and bytecode compile alike.

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
            let phases: Vec<_> = PHASES.iter().filter(|p| p.leaves_ir()).map(|p| p.name.to_owned()).collect();
            let dump_after = phases.clone();
            let options = CompileOptions { targets: vec![target], dump_after, ..Default::default() };
            let report = compiled(case.text.as_bytes(), &options).report;
            assert_eq!(report.dumps.iter().map(|d| &d.phase).collect::<Vec<_>>(), phases.iter().collect::<Vec<_>>());
            for dump in &report.dumps {
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
        // Locations are part of a module, and of an artifact's report on buffers.
        let bytecode = Module::parse(Context::new(), text, "model.mlir").expect("parses").op().to_bytecode();
        assert!(bytecode.starts_with(b"ML\xefR"));
        let artifact = |source: &[u8]| compiled(source, &options).program.encode().expect("encodes");
        assert!(artifact(text) == artifact(&bytecode), "{}: other bytes", case.name);
        assert!(artifact(text) == artifact(text), "{}: not reproducible", case.name);
    }
}

/// `layers` products with `tanh`, all of distinct sizes.
fn chain(layers: usize) -> String {
    let columns = |i: usize| 16 + 4 * i;
    let mut args = format!("%x: tensor<8x{}xf32>", columns(0));
    let (mut body, mut current) = (String::new(), "%x".to_owned());
    for i in 0..layers {
        let [from, to] = [columns(i), columns(i + 1)].map(|n| format!("tensor<8x{n}xf32>"));
        let weight = format!("tensor<{}x{}xf32>", columns(i), columns(i + 1));
        args += &format!(", %w{i}: {weight}");
        body += &format!(
            "  %e{i} = tensor.empty() : {to}\n  %f{i} = linalg.fill ins(%z : f32) outs(%e{i} : {to}) -> {to}\n  \
             %m{i} = linalg.matmul ins({current}, %w{i} : {from}, {weight}) outs(%f{i} : {to}) -> {to}\n  \
             %t{i} = linalg.tanh ins(%m{i} : {to}) outs(%e{i} : {to}) -> {to}\n"
        );
        current = format!("%t{i}");
    }
    let ty = format!("tensor<8x{}xf32>", columns(layers));
    format!(
        "func.func @main({args}) -> {ty} {{\n  %z = arith.constant 0.0 : f32\n{body}  return {current} : {ty}\n}}\n"
    )
}

/// Many kernels are tiled and distributed by several threads, few by one, with equal results.
#[test]
fn kernels_are_the_same_whichever_thread_makes_them() {
    for target in targets() {
        let kernels = |layers: usize| -> Vec<String> {
            let dump_after = vec!["distribute".to_owned()];
            let options = CompileOptions { targets: vec![target.clone()], dump_after, ..Default::default() };
            let report = compiled(chain(layers).as_bytes(), &options).report;
            Context::scope(|cx| {
                let module = Module::parse(cx, report.dumps[0].text.as_bytes(), "dump").expect("a dump parses");
                let kernels = module.functions().into_iter().filter(|f| f.attr("monopour.kernel").is_some());
                kernels.map(|f| f.to_string()).collect()
            })
        };
        let (few, many) = (kernels(6), kernels(18));
        assert_eq!((few.len(), many.len()), (6, 18), "a kernel per layer");
        assert_eq!(few, many[..6]);
    }
}
