//! Rounded quotients and bounds, against the same in plain Rust, bit by bit.

use crate::harness::{Library, can_run, compile, runs};
use monopour_codegen_cpu::object::{Listing, listing};
use monopour_ir::{Context, Module};
use monopour_program::CpuTarget;

const COUNT: usize = 4096;

/// `out = min(max(roundeven(x / divisor), -3), 200)`, without the bounds if not `bounded`.
fn kernel(name: &str, divisor: f32, bounded: bool) -> String {
    let bits = divisor.to_bits();
    let bounds = "%m = arith.maxnumf %n, %low : f32\n    %r = arith.minnumf %m, %high : f32";
    let (bounds, result) = if bounded { (bounds, "%r") } else { ("", "%n") };
    format!(
        "func.func private @{name}(%a: memref<{COUNT}xf32>, %o: memref<{COUNT}xf32>) attributes {{monopour.kernel = {{class = \"elementwise\"}}}} {{
  %c = arith.constant 0x{bits:08X} : f32
  %low = arith.constant -3.0 : f32
  %high = arith.constant 200.0 : f32
  linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = [\"parallel\"]}} ins(%a : memref<{COUNT}xf32>) outs(%o : memref<{COUNT}xf32>) {{
  ^bb0(%x: f32, %s: f32):
    %q = arith.divf %x, %c : f32
    %n = math.roundeven %q : f32
    {bounds}
    linalg.yield {result} : f32
  }}
  return
}}
"
    )
}

/// Quotients at and next to halves, of all sizes, and what is no ordinary number.
fn dividends(divisor: f32, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let special = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, f32::MIN, 1e-45, -1e-45, 1e-38];
    let next = |i: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let half = (state % 1024) as f32 - 511.5;
        match i % 3 {
            0 => f32::from_bits(state as u32),
            1 => half * divisor,
            _ => f32::from_bits((half * divisor).to_bits().wrapping_add((state >> 40) as u32 % 3).wrapping_sub(1)),
        }
    };
    special.into_iter().chain((0..COUNT - special.len()).map(next)).collect()
}

#[test]
fn rounded_quotients_are_those_of_a_division() {
    if !can_run() {
        return;
    }
    let divisors = [0.023_529_412f32, 1.0, 3.0, -0.1, 0.99999994, 1.9999999, 7.5e-5, 123456.7, 1e-30, 1e30];
    let text: String = divisors
        .iter()
        .enumerate()
        .flat_map(|(i, c)| [kernel(&format!("q{i}"), *c, false), kernel(&format!("b{i}"), *c, true)])
        .collect();
    for name in ["x86-64", "x86-64-v3", "x86-64-v4", "aarch64"] {
        let Some(target) = CpuTarget::parse(name).filter(runs) else { continue };
        let library = Library::load(&compile(&text, &target).unwrap());
        for (i, divisor) in divisors.into_iter().enumerate() {
            let mut x = dividends(divisor, i as u64);
            let (mut quotients, mut bounded) = (vec![42.0; COUNT], vec![42.0; COUNT]);
            library.run(&format!("q{i}"), &mut [&mut x, &mut quotients], &[]);
            library.run(&format!("b{i}"), &mut [&mut x, &mut bounded], &[]);
            for ((x, found), within) in x.iter().zip(&quotients).zip(&bounded) {
                let expected = (x / divisor).round_ties_even();
                let same = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
                assert!(same, "{x:e} / {divisor:e} on {name}: {found:e}, not {expected:e}");
                // A NaN becomes the lower bound.
                let bounded = if expected.is_nan() { -3.0 } else { expected.clamp(-3.0, 200.0) };
                assert_eq!(*within, bounded, "{x:e} / {divisor:e} on {name}, bounded");
            }
        }
    }
}

#[test]
fn quantisation_takes_no_division() {
    let assembly = |divisor, target: &str| {
        let module = format!("func.func @main(%cx: i64) {{ return }}\n{}", kernel("k", divisor, true));
        let module = Module::parse(Context::new(), module.as_bytes(), "test.mlir").unwrap();
        listing(&module, &CpuTarget::parse(target).unwrap(), Listing::Assembly).unwrap()
    };
    for target in ["x86-64-v3", "x86-64-v4"] {
        let text = assembly(0.1, target);
        let has = |op: &str| text.contains(op);
        assert!(!has("vdivps") && has("vmaxps") && has("vminps") && !has("vcmpunord"), "{target}:\n{text}");
    }
    assert!(assembly(0.1, "x86-64-v2").contains("divps"), "no fused multiply-add");
    assert!(assembly(1e-30, "x86-64-v3").contains("vdivps"), "the error may underflow");
}
