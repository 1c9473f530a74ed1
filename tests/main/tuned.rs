//! Kernels chosen by measurement: choices are obeyed, kept, and give the same bytes.

use crate::backend::to_runtime;
use crate::host::{f32s, ramp};
use monopour::options::Effort;
use monopour::program::GpuDescription;
use monopour::runtime::{Device, DeviceChoice, HostTensor, Options, Session};
use monopour::tune::{Choices, Tuned, Tuning, tune};
use monopour::{CompileOptions, Compiled, Diagnostics, TargetDescription, compile};
use monopour_testkit::device;
use monopour_testkit::programs::{Size, benchmark};
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

/// A product, its rows' largest elements, and a pointwise op.
const PROGRAM: &str = "\
func.func @main(%a: tensor<64x96xf32>, %b: tensor<96x64xf32>) -> (tensor<64xf32>, tensor<96x64xf32>) {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %p = linalg.matmul ins(%a, %b : tensor<64x96xf32>, tensor<96x64xf32>) outs(%f : tensor<64x64xf32>) -> tensor<64x64xf32>
  %er = tensor.empty() : tensor<64xf32>
  %fr = linalg.fill ins(%z : f32) outs(%er : tensor<64xf32>) -> tensor<64xf32>
  %r = linalg.reduce ins(%p : tensor<64x64xf32>) outs(%fr : tensor<64xf32>) dimensions = [1]
    (%x: f32, %y: f32) { %m = arith.maximumf %x, %y : f32  linalg.yield %m : f32 }
  %s = arith.mulf %b, %b : tensor<96x64xf32>
  return %r, %s : tensor<64xf32>, tensor<96x64xf32>
}
";

fn gpu() -> Option<(Device, GpuDescription)> {
    match Device::open(&DeviceChoice::Gpu) {
        Ok(device) => {
            let description = device.description().expect("a GPU has a description").clone();
            Some((device, description))
        }
        Err(error) => {
            device::skip_without_adapter(&error.to_string());
            None
        }
    }
}

fn by(device: &GpuDescription, tuning: Option<Tuning>) -> Result<Compiled, Diagnostics> {
    let targets = vec![TargetDescription::Gpu(device.clone())];
    let options = CompileOptions { targets, verify: true, tuning, ..Default::default() };
    compile(PROGRAM.as_bytes(), "test.mlir", &options)
}

fn tuning(device: &GpuDescription, choices: &Choices) -> Tuning {
    Tuning { device: device.clone(), choices: choices.clone(), measures: false }
}

fn inputs() -> Vec<HostTensor> {
    vec![f32s(&[64, 96], &ramp(64 * 96)), f32s(&[96, 64], &ramp(96 * 64))]
}

/// What is measured in this time, and the number of rounds.
fn measured(device: &Device, description: &GpuDescription, known: &Choices, limit: Duration) -> (Tuned, usize) {
    let rounds = Cell::new(0);
    let compile = |tuning| by(description, Some(tuning));
    let begins = |_: usize, _: usize| rounds.set(rounds.get() + 1);
    let given = |_: &_| Ok(inputs());
    let tuned = tune((device, limit), known, (&compile, &given), &begins).unwrap_or_else(|e| panic!("{e}"));
    (tuned, rounds.get())
}

#[test]
fn what_is_measured_is_kept_and_gives_the_same_bytes() {
    let Some((device, description)) = gpu() else { return };
    let (tuned, rounds) = measured(&device, &description, &Choices::new(), Duration::from_secs(600));
    let tunable =
        by(&description, Some(tuning(&description, &Choices::new()))).unwrap_or_else(|e| panic!("{e}")).report.tunable;
    let most = tunable.iter().map(|of| of.candidates.len()).max();
    assert_eq!((rounds + 1, tuned.is_complete), (most.unwrap_or(0), true));
    // All kinds of kernels of the program, each with one of its candidates.
    let measured_keys: Vec<_> = tunable.iter().filter(|of| of.candidates.len() > 1).map(|of| &of.key).collect();
    assert!(measured_keys.len() >= 2 && measured_keys.len() == tuned.kernels.len(), "{tuned:?}");
    for of in tunable.iter().filter(|of| of.candidates.len() > 1) {
        assert!(of.candidates.contains(&tuned.choices[&of.key]), "{of:?}");
    }
    assert!(tuned.kernels.iter().all(|kernel| kernel.ratio == 1.0 || kernel.ratio < 0.95), "{:?}", tuned.kernels);
    // Nothing is measured again, and the same choices are the same program.
    let (again, rounds) = measured(&device, &description, &tuned.choices, Duration::from_secs(600));
    assert_eq!((again.choices, again.kernels.len(), rounds), (tuned.choices.clone(), 0, 0));
    let bytes = || {
        let compiled = by(&description, Some(tuning(&description, &tuned.choices))).unwrap_or_else(|e| panic!("{e}"));
        compiled.program.encode().expect("encodes")
    };
    assert_eq!(bytes(), bytes());
    // Without time the cost model's kernels stay, and more is to be measured.
    let (none, rounds) = measured(&device, &description, &Choices::new(), Duration::ZERO);
    assert_eq!((none.is_complete, rounds), (false, 0));
    assert!(none.kernels.iter().all(|kernel| kernel.ratio == 1.0));
}

#[test]
fn a_choice_is_obeyed_on_its_device_alone() {
    let Some((device, description)) = gpu() else { return };
    let compiled = |tuning| by(&description, tuning).unwrap_or_else(|e| panic!("{e}"));
    let plain = compiled(None);
    assert!(plain.report.tunable.is_empty());
    let model = compiled(Some(tuning(&description, &Choices::new())));
    let bytes = |compiled: &Compiled| compiled.program.encode().expect("encodes");
    assert!(bytes(&plain) == bytes(&model), "the cost model's kernels are the first candidates");
    let choices = |number: usize| -> Choices {
        let of = model.report.tunable.iter();
        of.filter_map(|of| Some((of.key.clone(), of.candidates.get(number)?.clone()))).collect()
    };
    let other = compiled(Some(tuning(&description, &choices(2))));
    assert!(bytes(&plain) != bytes(&other));
    let unknown: Choices = choices(2).into_keys().map(|key| (key, "[1] {class = \"spiral\"}".to_owned())).collect();
    assert!(bytes(&plain) == bytes(&compiled(Some(tuning(&description, &unknown)))));
    let foreign = Tuning { device: GpuDescription::portable(), choices: choices(2), measures: false };
    assert!(bytes(&plain) == bytes(&compiled(Some(foreign))), "measured on another device");
    // The same values.
    let results = |compiled: Compiled| {
        let program = Arc::new(compiled.program);
        let mut session = Session::load(&device, program, &Options::default()).expect("loads");
        session.run(&inputs()).unwrap_or_else(|e| panic!("{e}"))
    };
    let (expected, found) = (results(plain), results(other));
    for (expected, found) in expected.iter().zip(&found) {
        let pairs = expected.to_f64().into_iter().zip(found.to_f64());
        pairs.for_each(|(a, b)| assert!((a - b).abs() <= 1e-4, "{a} and {b}"));
    }
}

/// More rows at once give the same values, where they are worth the driver's time.
#[test]
fn effort_gives_other_kernels_of_the_same_values() {
    let Some((device, description)) = gpu() else { return };
    for (name, differs) in [("layernorm", true), ("attn_512", true), ("softmax", false), ("matmul_256", false)] {
        let program = benchmark(name, Size::Small).expect("it is one of the programs");
        let compiled = |effort| {
            let targets = vec![TargetDescription::Gpu(description.clone())];
            let options = CompileOptions { targets, effort, verify: true, ..Default::default() };
            compile(program.text.as_bytes(), name, &options).unwrap_or_else(|d| panic!("{d}")).program
        };
        let max = compiled(Effort::Max);
        let is_software = description.is_cpu_adapter();
        assert_eq!(
            max.variants[0].kernels != compiled(Effort::Default).variants[0].kernels,
            differs && is_software,
            "{name}"
        );
        let mut session = Session::load(&device, Arc::new(max), &Options::default()).unwrap_or_else(|e| panic!("{e}"));
        let inputs: Vec<_> = program.inputs.iter().map(to_runtime).collect();
        let found = session.run(&inputs).unwrap_or_else(|e| panic!("{e}")).remove(0);
        for (found, expected) in found.to_f64().into_iter().zip(&program.expected) {
            assert!(
                (found - expected).abs() <= program.tolerance * (1.0 + expected.abs()),
                "{name}: {found}, {expected}"
            );
        }
    }
}
