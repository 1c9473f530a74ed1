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

/// `out = min(max(roundeven(x / divisor) + zero_point, low), high)` as integers of 8 bits; what `read` makes of them, where it is
/// a float `%r`.
fn stored(name: &str, (divisor, zero_point, signed): (f32, i32, bool), read: &str) -> String {
    let bits = divisor.to_bits();
    let (convert, [low, high]) = if signed { ("fptosi", [-128, 127]) } else { ("fptoui", [0, 255]) };
    let (ty, result) = if read.is_empty() { ("i8", "%i") } else { ("f32", "%r") };
    let read = read.replace("itofp", if signed { "sitofp" } else { "uitofp" });
    format!(
        "func.func private @{name}(%a: memref<{COUNT}xf32>, %o: memref<{COUNT}x{ty}>) attributes {{monopour.kernel = {{class = \"elementwise\"}}}} {{
  %c = arith.constant 0x{bits:08X} : f32
  %z = arith.constant {zero_point}.0 : f32
  %low = arith.constant {low}.0 : f32
  %high = arith.constant {high}.0 : f32
  linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = [\"parallel\"]}} ins(%a : memref<{COUNT}xf32>) outs(%o : memref<{COUNT}x{ty}>) {{
  ^bb0(%x: f32, %s: {ty}):
    %q = arith.divf %x, %c : f32
    %n = math.roundeven %q : f32
    %p = arith.addf %n, %z : f32
    %m = arith.maxnumf %p, %low : f32
    %b = arith.minnumf %m, %high : f32
    %i = arith.{convert} %b : f32 to i8
    {read}
    linalg.yield {result} : {ty}
  }}
  return
}}
"
    )
}

#[test]
fn stored_quotients_are_those_of_a_division() {
    if !can_run() {
        return;
    }
    let mut cases = vec![];
    for divisor in [0.023_529_412f32, 1.0, 3.0, 0.99999994, 1.9999999, 7.5e-5, 123456.7, 1e-17, 1e17, 1e30] {
        for (zero_point, signed) in [(0, false), (0, true), (127, false), (128, false), (-3, true), (255, false)] {
            cases.push((divisor, zero_point, signed));
        }
    }
    let wide = "%r = arith.itofp %i : i8 to f32";
    let less = "%w = arith.itofp %i : i8 to f32\n    %r = arith.subf %w, %z : f32";
    let kernels = cases.iter().enumerate().flat_map(|(i, case)| {
        [("s", ""), ("w", wide), ("l", less)].map(|(name, read)| stored(&format!("{name}{i}"), *case, read))
    });
    let text: String = kernels.collect();
    for name in ["x86-64", "x86-64-v3", "x86-64-v4", "aarch64"] {
        let Some(target) = CpuTarget::parse(name).filter(runs) else { continue };
        let library = Library::load(&compile(&text, &target).unwrap());
        for (i, (divisor, zero_point, signed)) in cases.iter().enumerate() {
            let mut x = dividends(*divisor, i as u64);
            let mut found = vec![0.0f32; COUNT / 4];
            library.run(&format!("s{i}"), &mut [&mut x, &mut found], &[]);
            let (mut wide, mut less) = (vec![42.0f32; COUNT], vec![42.0f32; COUNT]);
            library.run(&format!("w{i}"), &mut [&mut x, &mut wide], &[]);
            library.run(&format!("l{i}"), &mut [&mut x, &mut less], &[]);
            let bytes = found.iter().flat_map(|four| four.to_le_bytes());
            for (((x, byte), wide), less) in x.iter().zip(bytes).zip(wide).zip(less) {
                let [low, high] = if *signed { [-128.0, 127.0] } else { [0.0, 255.0] };
                let sum = (x / divisor).round_ties_even() + *zero_point as f32;
                let expected = if sum.is_nan() { low } else { sum.clamp(low, high) };
                let found = if *signed { f32::from(byte as i8) } else { f32::from(byte) };
                assert_eq!(found, expected, "{x:e} / {divisor:e} + {zero_point} on {name}");
                let floats = [wide, less].map(f32::to_bits);
                let expected = [expected, expected - *zero_point as f32].map(|x| (x + 0.0).to_bits());
                assert_eq!(floats, expected, "{x:e} / {divisor:e} + {zero_point} on {name}, as floats");
            }
        }
    }
}

#[test]
fn stored_quotients_are_bounded_before_they_are_computed() {
    let assembly = |text: &str| {
        let module = format!("func.func @main(%cx: i64) {{ return }}\n{text}");
        let module = Module::parse(Context::new(), module.as_bytes(), "test.mlir").unwrap();
        listing(&module, &CpuTarget::parse("x86-64-v4").unwrap(), Listing::Assembly).unwrap()
    };
    let text = assembly(&stored("k", (0.1, 0, false), ""));
    let loops = text.matches("vpmovdb").count();
    let has = |op: &str| text.matches(op).count();
    assert_eq!(
        [has("vmaxps"), has("vminps"), has("vmulps"), has("vfm") + has("vfnm")].map(|n| n / loops),
        [1, 1, 1, 2]
    );
    assert!(!["vrndscale", "vcmp", "vcvttps", "vdivps"].into_iter().any(|op| text.contains(op)), "{text}");
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
    // The error may underflow: the divisor and what it divides are scaled.
    let scaled = assembly(1e-30, "x86-64-v3");
    assert!(scaled.contains("vcmpordps") && !scaled.contains("vdivps"), "{scaled}");
}
