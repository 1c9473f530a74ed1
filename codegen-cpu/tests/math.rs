//! Errors of the math functions, as `docs/numerics.md` states them, and their special values.

use crate::harness::{Library, can_run, compile, erf, erfc, runs};
use monopour_program::CpuTarget;

/// One function: its op, the reference, the domain that is swept, and the bounds that `docs/numerics.md` states.
struct Case {
    op: &'static str,
    reference: fn(f64) -> f64,
    domain: (f32, f32),
    /// Units in the last place on a CPU with fused multiply-add.
    ulp: f64,
    /// On one without.
    ulp_unfused: f64,
}

const fn case(op: &'static str, reference: fn(f64) -> f64, domain: (f32, f32), ulp: f64, ulp_unfused: f64) -> Case {
    Case { op, reference, domain, ulp, ulp_unfused }
}

const CASES: [Case; 29] = [
    case("exp", f64::exp, (-87.0, 88.0), 1.5, 10.0),
    case("exp2", f64::exp2, (-125.0, 127.0), 1.5, 10.0),
    case("expm1", f64::exp_m1, (-20.0, 88.0), 3.0, 10.0),
    case("log", f64::ln, (1e-45, 1e30), 1.0, 1.5),
    case("log2", f64::log2, (1e-45, 1e30), 1.5, 1.5),
    case("log10", f64::log10, (1e-45, 1e30), 2.5, 3.0),
    case("log1p", f64::ln_1p, (-0.99, 1e10), 2.5, 2.5),
    case("tanh", f64::tanh, (-12.0, 12.0), 5.0, 6.0),
    case("sinh", f64::sinh, (-89.0, 89.0), 4.0, 20.0),
    case("cosh", f64::cosh, (-88.0, 88.0), 2.0, 10.0),
    case("asinh", f64::asinh, (-1e30, 1e30), 3.0, 3.0),
    case("acosh", f64::acosh, (1.0, 1e30), 3.0, 3.0),
    case("atanh", f64::atanh, (-0.999, 0.999), 3.0, 3.0),
    case("sin", f64::sin, (-1e6, 1e6), 2.0, 2.5),
    case("cos", f64::cos, (-1e6, 1e6), 2.0, 2.5),
    case("tan", f64::tan, (-1e6, 1e6), 4.0, 4.0),
    case("asin", f64::asin, (-1.0, 1.0), 7.0, 7.0),
    case("acos", f64::acos, (-1.0, 1.0), 2.0, 2.0),
    case("atan", f64::atan, (-1e10, 1e10), 2.5, 2.5),
    case("erf", erf, (-5.0, 5.0), 4.5, 5.0),
    case("erfc", erfc, (-5.0, 9.0), 3.0, 70.0),
    case("cbrt", f64::cbrt, (-1e10, 1e10), 1.0, 1.0),
    case("sqrt", f64::sqrt, (0.0, 1e30), 0.5, 0.5),
    case("rsqrt", |x| 1.0 / x.sqrt(), (1e-40, 1e30), 1.5, 1.5),
    case("floor", f64::floor, (-1e10, 1e10), 0.0, 0.0),
    case("ceil", f64::ceil, (-1e10, 1e10), 0.0, 0.0),
    case("trunc", f64::trunc, (-1e10, 1e10), 0.0, 0.0),
    case("round", f64::round, (-1e10, 1e10), 0.0, 0.0),
    case("roundeven", f64::round_ties_even, (-1e10, 1e10), 0.0, 0.0),
];

/// Points per sweep; a multiple of the vector length.
const COUNT: usize = 1 << 14;
const SPECIAL: [f32; 12] =
    [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-40, 3e-45];

/// A kernel that applies `op` to each element, by vectors of 16 or one by one.
fn kernel(op: &str, operands: usize, vector: bool) -> String {
    let names = ["A", "B"];
    let memref = format!("memref<{COUNT}xf32>");
    let arguments: String = names[..operands].iter().map(|n| format!("%{n}: {memref}, ")).collect();
    let (ty, step) = if vector { ("vector<16xf32>", 16) } else { ("f32", 1) };
    let load = |n: &str| match vector {
        true => format!("%{n}_ = vector.transfer_read %{n}[%i], %p {{in_bounds = [true]}} : {memref}, {ty}\n"),
        false => format!("%{n}_ = memref.load %{n}[%i] : {memref}\n"),
    };
    let loads: String = names[..operands].iter().map(|n| load(n)).collect();
    let list = names[..operands].iter().map(|n| format!("%{n}_")).collect::<Vec<_>>().join(", ");
    let store = match vector {
        true => format!("vector.transfer_write %r, %C[%i] {{in_bounds = [true]}} : {ty}, {memref}\n"),
        false => format!("memref.store %r, %C[%i] : {memref}\n"),
    };
    let dialect = if op == "remf" { "arith" } else { "math" };
    format!(
        "func.func private @{op}({arguments}%C: {memref}) attributes {{monopour.kernel = {{}}}} {{\n\
         %c0 = arith.constant 0 : index\n%step = arith.constant {step} : index\n%n = arith.constant {COUNT} : index\n\
         %p = ub.poison : f32\nscf.for %i = %c0 to %n step %step {{\n{loads}%r = {dialect}.{op} {list} : {ty}\n{store}}}\nreturn\n}}\n"
    )
}

/// Runs `op` on `operands`, padded to [`COUNT`], and returns as many results as there were points.
fn apply(library: &Library, op: &str, operands: &[&[f32]]) -> Vec<f32> {
    let points = operands[0].len();
    let mut buffers: Vec<Vec<f32>> = operands.iter().map(|o| o.to_vec()).collect();
    buffers.push(vec![]);
    for buffer in &mut buffers {
        buffer.resize(COUNT, 1.0);
    }
    let mut args: Vec<&mut Vec<f32>> = buffers.iter_mut().collect();
    library.run(op, &mut args, &[]);
    let mut result = buffers.pop().unwrap();
    result.truncate(points);
    result
}

/// The bound of `atan2` in f32.
const ANGLE_ULP: f64 = 3.5;

/// Half the points evenly spread, half by exponent, so that small arguments occur.
fn sweep((low, high): (f32, f32)) -> Vec<f32> {
    let (wide_low, wide_high) = (f64::from(low), f64::from(high));
    let point = |i: usize| {
        let t = i as f64 / (COUNT - 1) as f64;
        let x = match i % 4 {
            0 | 2 => wide_low + t * (wide_high - wide_low),
            1 => wide_high * 10f64.powf(-30.0 * t),
            _ => wide_low * 10f64.powf(-30.0 * t),
        };
        (x as f32).clamp(low, high)
    };
    (0..COUNT).map(point).collect()
}

fn error_in_ulp(found: f32, expected: f64) -> f64 {
    let x = (expected.abs() as f32).max(f32::MIN_POSITIVE);
    let ulp = f64::from(f32::from_bits(x.to_bits() + 1)) - f64::from(x);
    (f64::from(found) - expected).abs() / ulp
}

/// Levels that this machine runs, with whether they have fused multiply-add.
fn targets() -> Vec<(CpuTarget, bool)> {
    let levels = [
        ("x86-64", false),
        ("x86-64-v3", true),
        ("x86-64-v4", true),
        ("generic", cfg!(target_arch = "aarch64")),
        ("aarch64", true),
    ];
    let known = levels.into_iter().filter_map(|(n, fused)| CpuTarget::parse(n).map(|t| (t, fused)));
    known.filter(|(t, _)| runs(t)).collect()
}

#[test]
fn errors_are_within_the_stated_bounds() {
    if !can_run() {
        return;
    }
    for (target, fused) in targets() {
        for vector in [false, true] {
            let kernels: String = CASES.iter().map(|c| kernel(c.op, 1, vector)).collect();
            let library = Library::load(&compile(&kernels, &target).unwrap());
            for case in &CASES {
                let bound = if fused { case.ulp } else { case.ulp_unfused };
                let points = sweep(case.domain);
                for (x, y) in points.iter().zip(apply(&library, case.op, &[&points])) {
                    let expected = (case.reference)(f64::from(*x));
                    let error = error_in_ulp(y, expected);
                    assert!(
                        error <= bound,
                        "{} {}({x:e}) = {y:e}, expected {expected:e}: {error:.1} ulp",
                        target.cpu,
                        case.op
                    );
                }
                special_values(case, &library, &target.cpu);
            }
        }
    }
}

fn special_values(case: &Case, library: &Library, cpu: &str) {
    for (x, y) in SPECIAL.iter().zip(apply(library, case.op, &[&SPECIAL])) {
        let expected = (case.reference)(f64::from(*x));
        // Upstream's error function loses the sign of -0.
        let sign = y.is_sign_negative() == expected.is_sign_negative() || case.op == "erf";
        let equal = if expected.is_nan() { y.is_nan() } else { error_in_ulp(y, expected) <= case.ulp_unfused && sign };
        let infinite = expected.is_infinite() && f64::from(y) == expected;
        assert!(equal || infinite, "{cpu} {}({x}) = {y}, expected {expected}", case.op);
    }
}

#[test]
fn powers_and_their_special_values() {
    if !can_run() {
        return;
    }
    let special =
        [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 1e30, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    let pairs = special.iter().flat_map(|x| special.iter().map(move |y| (*x, *y)));
    let grid = (0..2000u16).map(|i| (f32::from(i % 50).mul_add(0.13, 0.01), f32::from(i / 50).mul_add(0.5, -10.0)));
    let (x, y): (Vec<f32>, Vec<f32>) = pairs.chain(grid).unzip();
    for (target, _) in targets() {
        for vector in [false, true] {
            let library = Library::load(&compile(&kernel("powf", 2, vector), &target).unwrap());
            for (i, found) in apply(&library, "powf", &[&x, &y]).into_iter().enumerate() {
                let expected = x[i].powf(y[i]);
                let close = (found - expected).abs() <= 2e-5 * expected.abs() || found == expected;
                let sign = found.is_sign_negative() == expected.is_sign_negative();
                let equal = if expected.is_nan() { found.is_nan() } else { close && sign };
                assert!(equal, "{} {}^{} = {found}, expected {expected}", target.cpu, x[i], y[i]);
            }
        }
    }
}

#[test]
fn angles_and_their_special_values() {
    if !can_run() {
        return;
    }
    let special = [0.0, -0.0, 1.0, -1.0, 1e-40, -1e-40, 3e38, -3e38, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    let pairs = special.iter().flat_map(|y| special.iter().map(move |x| (*y, *x)));
    let grid = (0..2000u16).map(|i| (f32::from(i % 50).mul_add(0.13, -3.0), f32::from(i / 50).mul_add(0.5, -10.0)));
    let (y, x): (Vec<f32>, Vec<f32>) = pairs.chain(grid).unzip();
    for (target, _) in targets() {
        for vector in [false, true] {
            let library = Library::load(&compile(&kernel("atan2", 2, vector), &target).unwrap());
            for (i, found) in apply(&library, "atan2", &[&y, &x]).into_iter().enumerate() {
                let expected = f64::from(y[i]).atan2(f64::from(x[i]));
                let close = error_in_ulp(found, expected) <= ANGLE_ULP;
                let sign = found.is_sign_negative() == expected.is_sign_negative();
                let equal = if expected.is_nan() { found.is_nan() } else { close && sign };
                assert!(equal, "{} atan2({}, {}) = {found}, expected {expected}", target.cpu, y[i], x[i]);
            }
        }
    }
}

/// Without accuracy, but between -1 and 1.
#[test]
fn sines_of_huge_angles_are_bounded() {
    if !can_run() {
        return;
    }
    let angles: Vec<f32> = (0..COUNT).map(|i| 10f32.powf(30.0 + i as f32 * 8.5 / COUNT as f32)).collect();
    let angles: Vec<f32> = angles.into_iter().enumerate().map(|(i, v)| if i % 2 == 0 { v } else { -v }).collect();
    let angles = [&[f32::MAX, f32::MIN], &angles[2..]].concat();
    let doubles: Vec<f64> = angles.iter().map(|v| f64::from(*v).powi(8).copysign(f64::from(*v))).collect();
    for (target, _) in targets() {
        for op in ["sin", "cos"] {
            for vector in [false, true] {
                let library = Library::load(&compile(&kernel(op, 1, vector), &target).unwrap());
                for (found, x) in apply(&library, op, &[&angles]).iter().zip(&angles) {
                    assert!((-1.0..=1.0).contains(found), "{op}({x:e}) is {found} on {}", target.cpu);
                }
            }
            let library = Library::load(&compile(&kernel(op, 1, false).replace("f32", "f64"), &target).unwrap());
            for (found, x) in apply_double(&library, op, &[&doubles]).iter().zip(&doubles) {
                assert!((-1.0..=1.0).contains(found), "{op}({x:e}) is {found} on {}", target.cpu);
            }
        }
    }
}

/// Functions of f64: op, reference, domain, and the bound of the relative error that `docs/numerics.md` states.
type Double = (&'static str, fn(f64) -> f64, (f64, f64), f64);
const DOUBLES: [Double; 23] = [
    ("exp", f64::exp, (-700.0, 709.0), 1e-15),
    ("exp2", f64::exp2, (-1000.0, 1023.0), 1e-15),
    ("expm1", f64::exp_m1, (-40.0, 700.0), 2e-15),
    ("log", f64::ln, (1e-320, 1e300), 1e-15),
    ("log2", f64::log2, (1e-320, 1e300), 1e-15),
    ("log10", f64::log10, (1e-320, 1e300), 1e-15),
    ("log1p", f64::ln_1p, (-0.99, 1e10), 2e-15),
    ("tanh", f64::tanh, (-25.0, 25.0), 2e-15),
    ("sinh", f64::sinh, (-700.0, 700.0), 2e-15),
    ("cosh", f64::cosh, (-700.0, 700.0), 2e-15),
    ("sin", f64::sin, (-1e4, 1e4), 1e-12),
    ("cos", f64::cos, (-1e4, 1e4), 1e-12),
    ("tan", f64::tan, (-1e4, 1e4), 1e-12),
    ("atan", f64::atan, (-1e10, 1e10), 2e-15),
    ("asin", f64::asin, (-1.0, 1.0), 2e-15),
    ("acos", f64::acos, (-1.0, 1.0), 2e-15),
    ("asinh", f64::asinh, (-1e300, 1e300), 2e-15),
    ("acosh", f64::acosh, (1.0, 1e300), 2e-15),
    // The standard library cancels near -1.
    ("atanh", |x| x.abs().atanh().copysign(x), (-0.999, 0.999), 2e-15),
    ("cbrt", f64::cbrt, (-1e300, 1e300), 2e-15),
    ("erf", erf, (-6.0, 6.0), 2e-15),
    ("erfc", erfc, (-6.0, 26.0), 2e-15),
    ("round", f64::round, (-1e6, 1e6), 0.0),
];

/// Applies `op` to f64 numbers, which cross the call as halves of their bits.
fn apply_double(library: &Library, op: &str, operands: &[&[f64]]) -> Vec<f64> {
    let halves = |x: &f64| [x.to_bits() as u32, (x.to_bits() >> 32) as u32].map(f32::from_bits);
    let mut buffers: Vec<Vec<f32>> = operands.iter().map(|o| o.iter().flat_map(halves).collect()).collect();
    buffers.push(vec![0.0; 2 * COUNT]);
    let mut args: Vec<&mut Vec<f32>> = buffers.iter_mut().collect();
    library.run(op, &mut args, &[]);
    let output = buffers.pop().unwrap();
    let whole = |pair: &[f32]| f64::from_bits(u64::from(pair[0].to_bits()) | u64::from(pair[1].to_bits()) << 32);
    output.chunks(2).map(whole).collect()
}

#[test]
fn double_precision_is_within_the_stated_bounds() {
    if !can_run() {
        return;
    }
    let special = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e-310, -1e-310, 1.0];
    for vector in [true, false] {
        let all: String = DOUBLES
            .iter()
            .map(|(op, ..)| {
                kernel(op, 1, vector)
                    .replace("f32", "f64")
                    .replace("vector<16x", "vector<8x")
                    .replace("constant 16 :", "constant 8 :")
            })
            .collect();
        for (target, fused) in targets() {
            let library = Library::load(&compile(&all, &target).unwrap());
            for (op, reference, (low, high), bound) in DOUBLES {
                let point = |i: usize| match i {
                    i if i < special.len() => special[i],
                    i if i % 2 == 0 => low + (high - low) * i as f64 / COUNT as f64,
                    i => (if i % 4 == 1 { high } else { low }) * 10f64.powf(-15.0 * i as f64 / COUNT as f64),
                };
                let points: Vec<f64> = (0..COUNT).map(point).collect();
                // Without fused multiply-add the reduced argument of circular functions is rounded.
                let bound = if fused { bound } else { bound * 4.0 };
                for (x, found) in points.iter().zip(apply_double(&library, op, &[&points])) {
                    let expected = reference(*x);
                    let near = (found - expected).abs() <= bound * expected.abs() + f64::MIN_POSITIVE;
                    // Infinite arguments of circular functions have no value.
                    let same = found == expected || near || (found.is_nan() && expected.is_nan());
                    let undefined = x.is_infinite() && matches!(op, "sin" | "cos" | "tan");
                    assert!(same || undefined, "{op}({x:e}) is {found:e} on {}, not {expected:e}", target.cpu);
                }
            }
        }
    }
}

#[test]
fn powers_in_double_precision() {
    if !can_run() {
        return;
    }
    let values = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 3.0, -3.0, 10.0, 1e-3, 123.456, 1e100, -7.5];
    let special = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    let all: Vec<f64> = values.into_iter().chain(special).collect();
    let pairs = (0..COUNT).map(|i| (all[i % all.len()], all[i / all.len() % all.len()]));
    let (a, b): (Vec<f64>, Vec<f64>) = pairs.unzip();
    for (target, _) in targets() {
        let text = kernel("powf", 2, false).replace("f32", "f64");
        let library = Library::load(&compile(&text, &target).unwrap());
        for ((found, x), y) in apply_double(&library, "powf", &[&a, &b]).iter().zip(&a).zip(&b) {
            let expected = x.powf(*y);
            // The error grows with the exponent of the result, which is below 1024.
            let near = (found - expected).abs() <= 1e-12 * expected.abs() + f64::MIN_POSITIVE;
            let same = *found == expected || near || (found.is_nan() && expected.is_nan());
            assert!(same, "powf({x:e}, {y:e}) is {found:e} on {}, not {expected:e}", target.cpu);
        }
    }
}

#[test]
fn angles_in_double_precision() {
    if !can_run() {
        return;
    }
    let values = [0.0, 1.0, 0.3, 2.5, 1e-200, 1e200, f64::INFINITY];
    let all: Vec<f64> = values.iter().flat_map(|v| [*v, -v]).chain([f64::NAN]).collect();
    let pairs = (0..COUNT).map(|i| (all[i % all.len()], all[i / all.len() % all.len()]));
    let (y, x): (Vec<f64>, Vec<f64>) = pairs.unzip();
    for (target, _) in targets() {
        let text = kernel("atan2", 2, false).replace("f32", "f64");
        let library = Library::load(&compile(&text, &target).unwrap());
        for ((found, y), x) in apply_double(&library, "atan2", &[&y, &x]).iter().zip(&y).zip(&x) {
            let expected = y.atan2(*x);
            let near = (found - expected).abs() <= 2e-15 * expected.abs() + f64::MIN_POSITIVE;
            let sign = found.is_sign_negative() == expected.is_sign_negative();
            let same = (near && sign) || (found.is_nan() && expected.is_nan());
            assert!(same, "atan2({y:e}, {x:e}) is {found:e} on {}, not {expected:e}", target.cpu);
        }
    }
}

/// Of f64, on CPUs with fused multiplications; without them it stays refused.
#[test]
fn remainders_of_doubles_are_exact() {
    if !can_run() {
        return;
    }
    let special = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 5e-324, -1e-310, 1.7e308, 3.0, -0.3];
    let (mut a, mut b) = (vec![], vec![]);
    for x in special {
        for y in special {
            a.push(x);
            b.push(y);
        }
    }
    // Quotients of every size.
    for i in a.len()..COUNT {
        let exponent = |k: usize| 2f64.powi((i * k % 1400) as i32 - 700);
        a.push((1.0 + i as f64 / 977.0) * exponent(37));
        b.push((-1.0 - i as f64 / 1009.0) * exponent(101));
    }
    for (target, fused) in targets() {
        for vector in [true, false] {
            let text = kernel("remf", 2, vector).replace("f32", "f64");
            if !fused {
                assert!(compile(&text, &target).unwrap_err().to_string().contains("C0005"), "{}", target.cpu);
                continue;
            }
            let library = Library::load(&compile(&text, &target).unwrap());
            for ((found, x), y) in apply_double(&library, "remf", &[&a, &b]).iter().zip(&a).zip(&b) {
                let expected = x % y;
                let same = found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan());
                assert!(same, "{x:e} % {y:e} is {found:e} on {}, not {expected:e}", target.cpu);
            }
        }
    }
}

#[test]
fn remainders_are_exact() {
    if !can_run() {
        return;
    }
    let values =
        [1.0, -1.0, 0.3, 7.25, -1e-45, 1e-40, 3e-38, 1.7e38, -3.4e38, 65_537.0, 1e7, 0.0, -0.0, 1e30, -2.5e-20];
    let special = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    let all: Vec<f32> = values.into_iter().chain(special).collect();
    let (mut a, mut b) = (vec![], vec![]);
    for x in &all {
        for y in &all {
            for scale in [1.0, 1.0 / 3.0, 0.999_999_9] {
                a.push(*x);
                b.push(y * scale);
            }
        }
    }
    for vector in [true, false] {
        for (target, _) in targets() {
            let library = Library::load(&compile(&kernel("remf", 2, vector), &target).unwrap());
            for ((found, x), y) in apply(&library, "remf", &[&a, &b]).iter().zip(&a).zip(&b) {
                let expected = x % y;
                let same = found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan());
                assert!(same, "{x} % {y} is {found} on {}, not {expected}", target.cpu);
            }
        }
    }
}

#[test]
fn half_precision_goes_through_single() {
    if !can_run() {
        return;
    }
    let text = "func.func private @k(%a: memref<4xf32>, %c: memref<4xf32>) attributes {monopour.kernel = {}} {\n\
        %c0 = arith.constant 0 : index\n%p = ub.poison : f32\n\
        %x = vector.transfer_read %a[%c0], %p {in_bounds = [true]} : memref<4xf32>, vector<4xf32>\n\
        %h = arith.truncf %x : vector<4xf32> to vector<4xf16>\n%y = math.tanh %h : vector<4xf16>\n\
        %z = arith.extf %y : vector<4xf16> to vector<4xf32>\n\
        vector.transfer_write %z, %c[%c0] {in_bounds = [true]} : vector<4xf32>, memref<4xf32>\nreturn\n}\n";
    for target in ["x86-64-v2", "x86-64-v3", "aarch64"].into_iter().filter_map(CpuTarget::parse).filter(runs) {
        let library = Library::load(&compile(text, &target).unwrap());
        let (mut a, mut c) = (vec![-2.0, 0.0, 0.5, 3.0], vec![0.0; 4]);
        library.run("k", &mut [&mut a, &mut c], &[]);
        for (x, y) in a.iter().zip(&c) {
            assert!((x.tanh() - y).abs() < 1e-3, "tanh({x}) = {y}");
        }
    }
}
