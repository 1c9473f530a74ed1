//! The example perceptron, with weights in a file beside it.

use crate::backend::Monopour;
use monopour::program::DType;
use monopour::{CompileOptions, compile_file};
use monopour_testkit::approx::{Tolerance, compare};
use monopour_testkit::suite::Cost;
use monopour_testkit::{Dtype, HostTensor, Weights, evaluate_with_weights};
use std::path::{Path, PathBuf};

fn model() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/mlp.mlir")
}

/// Reads a safetensors file by its format: a length, a JSON header, the data.
fn weights() -> Weights {
    let bytes = std::fs::read(model().with_extension("safetensors")).expect("the example has its weights");
    let length = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) as usize;
    let header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + length]).expect("a JSON header");
    let data = &bytes[8 + length..];
    let entry = |(name, value): (&String, &serde_json::Value)| {
        let at = |i: usize| value["data_offsets"][i].as_u64().expect("an offset") as usize;
        (name.clone(), data[at(0)..at(1)].to_vec())
    };
    header.as_object().expect("an object").iter().map(entry).collect()
}

fn check(backend: &Monopour, submits: u64) {
    let cx = monopour_ir::Context::new();
    cx.allow_unregistered_dialects(true);
    let source = std::fs::read(model()).expect("the example is there");
    let module = monopour_ir::Module::parse(cx, &source, "mlp.mlir").expect("parses");
    let image = HostTensor::random(Dtype::F32, &[64, 784], 1);
    let expected =
        evaluate_with_weights(&module, "main", std::slice::from_ref(&image), &weights()).expect("has a value");

    let options = CompileOptions { targets: vec![backend.target().clone()], ..Default::default() };
    let compiled = compile_file(&model(), &options).unwrap_or_else(|d| panic!("{d}"));
    let signature = &compiled.program.signature;
    assert_eq!((signature.inputs[0].name.as_str(), signature.results[0].name.as_str()), ("image", "scores"));
    assert_eq!((signature.results[0].dtype, signature.results[0].shape.as_slice()), (DType::F32, &[64, 10][..]));
    let run = backend.run_program(compiled.program, &[image]).expect("runs");
    compare(&run.outputs[0], &expected[0], Tolerance::both(1e-4)).expect("close to the reference");
    assert_eq!(run.cost, Some(Cost { dispatches: 3, submits, ..Cost::default() }));
}

#[test]
fn the_example_is_right_on_the_cpu() {
    check(&Monopour::cpu(), 0);
}

#[test]
fn the_example_is_right_on_a_gpu() {
    if let Some(gpu) = Monopour::gpu() {
        check(&gpu, 1);
    }
}
