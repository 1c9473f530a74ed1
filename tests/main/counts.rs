//! Exact numbers of dispatches and copies of programs in linalg, on every kind of GPU; their values on every device.

use crate::backend::{Monopour, from_runtime};
use crate::host::{devices, evaluated, f32s, index, ramp, run, source};
use monopour::program::{DType, GpuDescription, Program};
use monopour::runtime::HostTensor;
use monopour::{CompileOptions, TargetDescription, compile};
use monopour_testkit::approx::{self, Tolerance};

fn compiled(text: &str, target: TargetDescription) -> Program {
    let options = CompileOptions { targets: vec![target], verify: true, ..Default::default() };
    compile(text.as_bytes(), "test.mlir", &options).unwrap_or_else(|e| panic!("{e}\n{text}")).program
}

/// Small inputs of the program's shapes; an index is `position`.
fn inputs(text: &str, position: i64) -> Vec<HostTensor> {
    let program = compiled(text, TargetDescription::Gpu(GpuDescription::portable()));
    let input = |desc: &monopour::program::TensorDesc| {
        let shape = desc.shape.clone();
        let count = shape.iter().product::<u64>() as usize;
        match desc.dtype {
            DType::Index => index(position),
            _ => f32s(&shape, &ramp(count).iter().map(|v| v * 0.25).collect::<Vec<_>>()),
        }
    };
    program.signature.inputs.iter().map(input).collect()
}

/// The program takes so many dispatches and copies on GPUs, and `planned` bytes at most between them; values are the
/// evaluator's.
fn check(name: &str, (dispatches, copies): (u64, u64), planned: u64) {
    let text = source(&format!("counts/{name}"));
    let portable = TargetDescription::Gpu(GpuDescription::portable());
    for target in [portable].into_iter().chain(Monopour::gpu().map(|gpu| gpu.target().clone())) {
        let program = compiled(&text, target);
        let variant = &program.variants[0];
        let total: u64 = variant.dispatches.iter().map(|n| u64::from(*n)).sum();
        assert_eq!(total, dispatches, "{name} for {:?}", variant.target);
        assert!(variant.plan.planned_bytes <= planned, "{name}: {} bytes are planned", variant.plan.planned_bytes);
    }
    let inputs = inputs(&text, 9);
    let expected = evaluated(&text, &inputs);
    for device in devices() {
        let (results, stats, leaks) = run(&text, &[], &device, &inputs);
        for (found, expected) in results.iter().zip(&expected) {
            let rounding = Tolerance { absolute: 1e-4, relative: 1e-4 };
            approx::compare(&from_runtime(found), expected, rounding)
                .unwrap_or_else(|e| panic!("{name} on {}: {e}", stats.device));
        }
        if device.0.description().is_some() {
            assert_eq!(
                (stats.counts.dispatches, stats.counts.copies),
                (dispatches, copies),
                "{name} on {}",
                stats.device
            );
        }
        assert!(leaks.is_clean(), "{name}: {leaks:?}");
    }
}

#[test]
fn a_diamond_with_two_results_is_one_dispatch() {
    check("diamond", (1, 0), 0);
}

#[test]
fn a_returned_sum_and_its_maximum_are_one_dispatch() {
    check("returned_sum", (1, 0), 0);
}

#[test]
fn queries_keys_and_values_of_one_input_are_one_dispatch() {
    check("qkv", (1, 0), 0);
}

#[test]
fn a_gated_product_is_one_dispatch() {
    check("gated", (1, 0), 0);
}

#[test]
fn an_epilogue_whose_bias_and_residual_are_read_twice_is_one_dispatch() {
    check("residual_gate", (1, 0), 0);
}

#[test]
fn a_gpt2_block_is_seven_dispatches() {
    check("gpt2_block", (7, 0), 81_920);
}

#[test]
fn a_decoding_gpt2_block_is_seven_dispatches_and_a_row_of_each_cache() {
    check("gpt2_decode", (7, 2), 1_280);
}
