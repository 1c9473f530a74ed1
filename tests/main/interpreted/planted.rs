//! Defects planted in right kernels, of each kind: which ones the interpreter or the values find.

use super::host::Settings;
use super::targets::{Target, h200, intel};
use super::{compiled, executed};
use expect_test::{Expect, expect};
use monopour::program::{Kernel, Program};
use monopour_testkit::HostTensor;
use monopour_testkit::approx::compare;
use monopour_testkit::spirv::faults::{Defect, planted};
use monopour_testkit::suite::{Case, all};
use std::fmt::Write;

/// Most places of a kind in a kernel that are tried, spread over it.
const PLACES: usize = 6;

/// Cases with kernels of different kinds; the last copies its input through workgroup memory.
const USUAL: [&str; 25] = [
    "matmul/bias_relu/1x63x1",
    "matmul/bias_relu/7x65x63",
    "elementwise/add/1",
    "elementwise/chain/1",
    "generic/reversed",
    "generic/diagonal",
    "broadcast/i/17x64",
    "broadcast/ik/3x5x17",
    "reduce/maximum_last_two/f32/5x7x9",
    "reduce/minimum_vector/f32/1000",
    "rows/softmax/7x1",
    "rows/log_softmax/2x3x33",
    "contract/batched_plain/12x32x32x16",
    "contract/einsum/bhsd_bhtd_to_bhst",
    "convolution/conv_2d_nhwc_hwcf/1x10x10x16_3x3x16x32_s1_d1",
    "convolution/conv_2d_nhwc_hwcf/3x27x23x6_3x3x6x17_s2_d1",
    "gather/diagonal_matrix",
    "gather/two_indices",
    "attention/plain/12x16x16x64",
    "attention/plain/2x1x65x17",
    "slices/insert_doubled/17x33/5x7_3x4",
    "slices/concat/f16/0/7x5",
    "reshape/collapse_computed/64x128_8192",
    "reshape/collapse_plain/3x5x7_3x35",
    "broadcast/transpose/f32",
];

/// What planting did: places tried, and those that nothing found.
#[derive(Default)]
struct Found {
    tried: usize,
    missed: Vec<String>,
}

/// Whether a defect shows: an error, or a value out of tolerance.
fn shows(case: &Case, program: &Program, inputs: &[HostTensor], expected: &[HostTensor], size: u32) -> bool {
    match executed(program, inputs, Settings { subgroup_size: size, seed: 1 }) {
        Err(_) => true,
        Ok((outputs, _)) => outputs.iter().zip(expected).any(|(o, e)| compare(o, e, case.tolerance).is_err()),
    }
}

fn plant(case: &Case, target: &Target, defect: Defect) -> Found {
    let mut program = compiled(case, target).unwrap_or_else(|e| panic!("{}: {e}", case.name));
    let inputs = case.input_values();
    let size = target.sizes[0];
    let (expected, _) = executed(&program, &inputs, Settings { subgroup_size: size, seed: 1 }).expect("it is right");
    let mut found = Found::default();
    for kernel in 0..program.variants[0].kernels.len() {
        let Kernel::Gpu(right) = program.variants[0].kernels[kernel].clone() else { continue };
        let faulty = planted(&right.spirv, defect).expect("it is a module");
        let step = faulty.len().div_ceil(PLACES).max(1);
        for (place, words) in faulty.into_iter().enumerate().step_by(step) {
            let mut wrong = right.clone();
            wrong.spirv = words;
            program.variants[0].kernels[kernel] = Kernel::Gpu(wrong);
            found.tried += 1;
            if !shows(case, &program, &inputs, &expected, size) {
                found.missed.push(format!("{}: kernel {}: {defect:?} {place}", case.name, right.name));
            }
        }
        program.variants[0].kernels[kernel] = Kernel::Gpu(right);
    }
    found
}

/// The first case of each of these names, or heads of them.
fn named(names: &[&str]) -> Vec<Case> {
    let all = all();
    let first = |name: &&str| all.iter().find(|case| case.name.starts_with(*name)).expect("it is in the suite").clone();
    names.iter().map(first).collect()
}

/// What is found for a target, and what is not.
fn check(target: &Target, cases: &[Case], expect: &Expect) {
    let mut out = String::new();
    for defect in Defect::ALL {
        let mut sum = Found::default();
        for case in cases {
            let found = plant(case, target, defect);
            sum.tried += found.tried;
            sum.missed.extend(found.missed);
        }
        let _ = writeln!(out, "{defect:?}: {} of {} found", sum.tried - sum.missed.len(), sum.tried);
        for missed in &sum.missed {
            let _ = writeln!(out, "  {missed}");
        }
    }
    expect.assert_eq(&out);
}

/// What is missed seems to change nothing, though not each was proved: the first barrier of a loop with one pass, an index of
/// a lane that is clamped into range and stores nothing, a component of an id that is 0 as the next one is.
#[test]
fn planted_defects_are_found_on_an_h200() {
    check(
        &h200(),
        &named(&USUAL),
        &expect![[r#"
            Barrier: 12 of 20 found
              matmul/bias_relu/7x65x63: kernel main_dispatch_0: Barrier 2
              rows/softmax/7x1: kernel main_dispatch_0: Barrier 0
              rows/softmax/7x1: kernel main_dispatch_0: Barrier 1
              rows/softmax/7x1: kernel main_dispatch_0: Barrier 2
              contract/batched_plain/12x32x32x16: kernel main_dispatch_0: Barrier 0
              contract/einsum/bhsd_bhtd_to_bhst: kernel main_dispatch_0: Barrier 0
              attention/plain/12x16x16x64: kernel main_dispatch_0: Barrier 1
              attention/plain/2x1x65x17: kernel main_dispatch_0: Barrier 1
            Semantics: 12 of 20 found
              matmul/bias_relu/7x65x63: kernel main_dispatch_0: Semantics 2
              rows/softmax/7x1: kernel main_dispatch_0: Semantics 0
              rows/softmax/7x1: kernel main_dispatch_0: Semantics 1
              rows/softmax/7x1: kernel main_dispatch_0: Semantics 2
              contract/batched_plain/12x32x32x16: kernel main_dispatch_0: Semantics 0
              contract/einsum/bhsd_bhtd_to_bhst: kernel main_dispatch_0: Semantics 0
              attention/plain/12x16x16x64: kernel main_dispatch_0: Semantics 1
              attention/plain/2x1x65x17: kernel main_dispatch_0: Semantics 1
            Index: 88 of 95 found
              reduce/maximum_last_two/f32/5x7x9: kernel main_dispatch_0: Index 0
              reduce/minimum_vector/f32/1000: kernel main_dispatch_0: Index 0
              reduce/minimum_vector/f32/1000: kernel main_dispatch_0: Index 2
              reduce/minimum_vector/f32/1000: kernel main_dispatch_0: Index 4
              reduce/minimum_vector/f32/1000: kernel main_dispatch_0: Index 6
              contract/einsum/bhsd_bhtd_to_bhst: kernel main_dispatch_0: Index 8
              convolution/conv_2d_nhwc_hwcf/3x27x23x6_3x3x6x17_s2_d1: kernel main_dispatch_0: Index 32
            Layout: 57 of 60 found
              reduce/minimum_vector/f32/1000: kernel main_dispatch_0: Layout 1
              reduce/minimum_vector/f32/1000: kernel main_dispatch_0: Layout 2
              reduce/minimum_vector/f32/1000: kernel main_dispatch_0: Layout 3
            Stride: 0 of 0 found
        "#]],
    );
}

/// As above.
#[test]
fn planted_defects_are_found_on_intel() {
    check(
        &intel(),
        &named(&USUAL),
        &expect![[r#"
            Barrier: 28 of 37 found
              matmul/bias_relu/7x65x63: kernel main_dispatch_0: Barrier 2
              rows/softmax/7x1: kernel main_dispatch_0: Barrier 0
              rows/softmax/7x1: kernel main_dispatch_0: Barrier 1
              rows/softmax/7x1: kernel main_dispatch_0: Barrier 2
              contract/batched_plain/12x32x32x16: kernel main_dispatch_0: Barrier 0
              contract/einsum/bhsd_bhtd_to_bhst: kernel main_dispatch_0: Barrier 0
              attention/plain/12x16x16x64: kernel main_dispatch_0: Barrier 0
              attention/plain/12x16x16x64: kernel main_dispatch_0: Barrier 3
              attention/plain/2x1x65x17: kernel main_dispatch_0: Barrier 0
            Semantics: 28 of 37 found
              matmul/bias_relu/7x65x63: kernel main_dispatch_0: Semantics 2
              rows/softmax/7x1: kernel main_dispatch_0: Semantics 0
              rows/softmax/7x1: kernel main_dispatch_0: Semantics 1
              rows/softmax/7x1: kernel main_dispatch_0: Semantics 2
              contract/batched_plain/12x32x32x16: kernel main_dispatch_0: Semantics 0
              contract/einsum/bhsd_bhtd_to_bhst: kernel main_dispatch_0: Semantics 0
              attention/plain/12x16x16x64: kernel main_dispatch_0: Semantics 0
              attention/plain/12x16x16x64: kernel main_dispatch_0: Semantics 3
              attention/plain/2x1x65x17: kernel main_dispatch_0: Semantics 0
            Index: 95 of 103 found
              reduce/maximum_last_two/f32/5x7x9: kernel main_dispatch_0: Index 3
              reduce/minimum_vector/f32/1000: kernel main_dispatch_0: Index 0
              reduce/minimum_vector/f32/1000: kernel main_dispatch_0: Index 4
              reduce/minimum_vector/f32/1000: kernel main_dispatch_0: Index 20
              rows/log_softmax/2x3x33: kernel main_dispatch_0: Index 12
              contract/einsum/bhsd_bhtd_to_bhst: kernel main_dispatch_0: Index 8
              convolution/conv_2d_nhwc_hwcf/3x27x23x6_3x3x6x17_s2_d1: kernel main_dispatch_0: Index 32
              attention/plain/12x16x16x64: kernel main_dispatch_0: Index 24
            Layout: 58 of 61 found
              reduce/minimum_vector/f32/1000: kernel main_dispatch_0: Layout 1
              reduce/minimum_vector/f32/1000: kernel main_dispatch_0: Layout 2
              reduce/minimum_vector/f32/1000: kernel main_dispatch_0: Layout 3
            Stride: 0 of 0 found
        "#]],
    );
}

/// Kernels on cooperative matrices. What is missed is the barrier before the first sums are stored, in memory that nothing
/// has read before.
#[test]
fn planted_defects_are_found_in_products_on_matrices() {
    check(
        &h200(),
        &named(&["widened/nn_plain/2x64x112x48", "widened/tt_rounded/1x100x116x52"]),
        &expect![[r#"
        Barrier: 10 of 12 found
          widened/nn_plain/2x64x112x48: kernel main_dispatch_0: Barrier 2
          widened/tt_rounded/1x100x116x52: kernel main_dispatch_0: Barrier 2
        Semantics: 10 of 12 found
          widened/nn_plain/2x64x112x48: kernel main_dispatch_0: Semantics 2
          widened/tt_rounded/1x100x116x52: kernel main_dispatch_0: Semantics 2
        Index: 12 of 12 found
        Layout: 10 of 10 found
        Stride: 12 of 12 found
    "#]],
    );
}
