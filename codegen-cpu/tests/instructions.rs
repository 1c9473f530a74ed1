//! `exp`, and division by one value for all lanes, in kernels of every kind of CPU: AVX-512 has forms of both, fused
//! multiply-adds one of the latter.

use crate::harness::{Library, can_run, compile, runs};
use crate::vectorize::{Case, optimized};
use monopour_program::CpuTarget;

/// Elements of a row: vectors of every length, and single ones.
const COUNT: usize = 4096 + 63;

/// Kernels that compute each element of `%c` from that of `%a`, and from the row's of `%d`.
fn source(rows: usize) -> String {
    let kernel = |name: &str, body: &str| {
        format!(
            "func.func private @{name}(%a: memref<{rows}x{COUNT}xf32>, %d: memref<{rows}xf32>, %c: memref<{rows}x{COUNT}xf32>) \
             attributes {{monopour.kernel = {{class = \"generic\"}}}} {{\n\
             linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, \
             affine_map<(i, j) -> (i, j)>], iterator_types = [\"parallel\", \"parallel\"]}} \
             ins(%a, %d : memref<{rows}x{COUNT}xf32>, memref<{rows}xf32>) outs(%c : memref<{rows}x{COUNT}xf32>) {{\n\
             ^bb0(%x: f32, %y: f32, %o: f32):\n{body}\nlinalg.yield %r : f32\n}}\nreturn\n}}\n"
        )
    };
    kernel("exp", "%r = math.exp %x : f32") + &kernel("divide", "%r = arith.divf %x, %y : f32")
}

/// Runs a kernel on every CPU of this machine, and hands its name and the results to `check`.
fn on_each_cpu(name: &str, a: &[f32], d: &[f32], check: impl Fn(&CpuTarget, &[f32])) {
    if !can_run() {
        return;
    }
    for cpu in ["x86-64", "x86-64-v3", "x86-64-v4", "generic", "aarch64"] {
        let Some(target) = CpuTarget::parse(cpu).filter(runs) else { continue };
        let library = Library::load(&compile(&source(d.len()), &target).unwrap());
        let (mut a, mut d, mut c) = (a.to_vec(), d.to_vec(), vec![0.0; a.len()]);
        library.run(name, &mut [&mut a, &mut d, &mut c], &[]);
        check(&target, &c);
    }
}

/// Whether the target has the form of `exp`.
fn is_wide(cpu: &CpuTarget) -> bool {
    cpu.has("avx512dq")
}

#[test]
fn the_forms_are_used() {
    let ir = |body| optimized(&Case::new(&[('i', 3), ('j', 64)], "i,j i i,j", body, |x, _| x[0]));
    assert!(ir("%r = math.exp %x0 : f32").contains("avx512.mask.scalef.ps.512"));
    let division = ir("%r = arith.divf %x0, %x1 : f32");
    assert!(division.contains("fma.v32f32") && !division.contains("fdiv contract <"), "{division}");
    // The divisor differs by lane.
    let other = ir("%r = arith.divf %x1, %x0 : f32");
    assert!(other.contains("fdiv contract <"), "{other}");
}

#[test]
fn powers_of_e_over_all_their_range() {
    let special = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -0.0, 0.0, 100.0, 3e38, -200.0, -3e38, 1e-40];
    // Past what is normal on both sides; the special values fall on vectors of every length.
    let point = |i: usize| match i % 37 {
        0 => special[i / 37 % special.len()],
        _ => -106.0 + 196.0 * (i as f32 / COUNT as f32),
    };
    let points: Vec<f32> = (0..COUNT).map(point).collect();
    on_each_cpu("exp", &points, &[1.0], |cpu, found| {
        let fused = cpu.arch == "aarch64" || cpu.has("fma");
        for (x, y) in points.iter().zip(found) {
            let expected = f64::from(*x).exp();
            let good = if x.is_nan() {
                y.is_nan()
            } else if (-87.0..=88.0).contains(x) {
                let bound = if fused { 1.5 } else { 10.0 } * f64::from(f32::EPSILON) * expected;
                (f64::from(*y) - expected).abs() <= bound
            } else if is_wide(cpu) {
                // Rounded once more where the result is subnormal, and infinite from the largest float on.
                (f64::from(*y) - expected).abs() <= 1.5e-45 + 2e-7 * expected || expected as f32 == *y
            } else {
                *y == expected as f32 || (*x < -87.0 && *y < 2e-38) || (*x > 88.0 && *y > 1e38)
            };
            assert!(good, "{}: exp({x:e}) = {y:e}, expected {expected:e}", cpu.cpu);
        }
    });
}

#[test]
fn divisions_by_one_value_are_rounded_as_divisions() {
    let divisors = [
        3.0,
        -7.0,
        1.0,
        -1.0,
        0.1,
        f32::from_bits(0x3fff_ffff),
        f32::from_bits(0x3f80_0001),
        1e-30,
        7e-31,
        -1e-37,
        1e-40,
        -1e-45,
        3e38,
        -2e38,
        1.7e38,
        0.0,
        -0.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
    ];
    let special =
        [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, f32::MIN_POSITIVE, 1e-45, -1e-45, 1.0];
    // All exponents and signs.
    let value = |i: usize| match i % 23 {
        0 => special[i / 23 % special.len()],
        _ => f32::from_bits((i as u32).wrapping_mul(0x9e37_79b1).rotate_left(7) ^ 0x5bd1_e995),
    };
    let numerators: Vec<f32> = (0..divisors.len() * COUNT).map(value).collect();
    on_each_cpu("divide", &numerators, &divisors, |cpu, found| {
        for (i, (x, y)) in numerators.iter().zip(found).enumerate() {
            let d = divisors[i / COUNT];
            let expected = x / d;
            // The remainder of a small numerator underflows.
            let is_small = x.abs() < 1e-30 && *x != 0.0 && cpu.has("fma");
            let apart = (y.to_bits() & 0x7fff_ffff).abs_diff(expected.to_bits() & 0x7fff_ffff);
            let close = apart <= u32::from(is_small) && y.is_sign_negative() == expected.is_sign_negative();
            assert!(
                close || (y.is_nan() && expected.is_nan()),
                "{}: {x:e} / {d:e} = {y:e}, expected {expected:e}",
                cpu.cpu
            );
        }
    });
}
