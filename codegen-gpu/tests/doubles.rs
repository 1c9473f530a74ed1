//! Functions of f64, which are arithmetic on a GPU: their errors, as `docs/numerics.md` states them, and their special values.

use crate::device::{Device, device};
use crate::program::{compile, lavapipe, outlined};
use monopour_program::GpuFeature;

/// Points of a sweep, and of a kernel.
const COUNT: usize = 1 << 12;
const SPECIAL: [f64; 12] =
    [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e-310, -1e-310, 1.0, -1.0, 1e300, 800.0, -800.0];

/// Op, reference, domain, and the bound of the relative error.
type Case = (&'static str, fn(f64) -> f64, (f64, f64), f64);
const CASES: [Case; 17] = [
    ("exp", f64::exp, (-700.0, 709.0), 4e-15),
    ("exp2", f64::exp2, (-1000.0, 1023.0), 4e-15),
    ("expm1", f64::exp_m1, (-40.0, 700.0), 8e-15),
    ("log", f64::ln, (1e-300, 1e300), 4e-15),
    ("log2", f64::log2, (1e-300, 1e300), 4e-15),
    ("log10", f64::log10, (1e-300, 1e300), 4e-15),
    ("log1p", f64::ln_1p, (-0.99, 1e10), 8e-15),
    ("tanh", f64::tanh, (-25.0, 25.0), 8e-15),
    ("sinh", f64::sinh, (-710.0, 710.0), 8e-15),
    ("cosh", f64::cosh, (-710.0, 710.0), 8e-15),
    ("sin", f64::sin, (-1e4, 1e4), 4e-12),
    ("cos", f64::cos, (-1e4, 1e4), 4e-12),
    ("tan", f64::tan, (-1e4, 1e4), 4e-12),
    ("sqrt", f64::sqrt, (0.0, 1e300), 2e-15),
    ("rsqrt", |x| 1.0 / x.sqrt(), (1e-300, 1e300), 2e-15),
    ("round", f64::round, (-1e6, 1e6), 0.0),
    ("roundeven", f64::round_ties_even, (-1e6, 1e6), 0.0),
];

/// The device, if it has f64 and integers of that width.
fn wide_device() -> Option<&'static Device> {
    let has_both = |d: &&Device| [GpuFeature::F64, GpuFeature::Int64].iter().all(|f| d.description.has(*f));
    let found = device().filter(has_both);
    if found.is_none() {
        println!("skipped: no adapter with 64-bit floats and integers");
    }
    found
}

/// A kernel that applies `op` to each element of its operands.
fn kernel(op: &str, operands: usize) -> String {
    let buffer = format!("memref<{COUNT}xf64, #gpu.address_space<global>>");
    let of = |f: &dyn Fn(usize) -> String| (0..operands).map(f).collect::<Vec<_>>().join(", ");
    let maps = vec!["affine_map<(i) -> (i)>"; operands + 1].join(", ");
    let body = format!(
        "  linalg.generic {{indexing_maps = [{maps}], iterator_types = [\"parallel\"]}} ins({} : {}) outs(%a{operands} : {buffer}) {{\n\
         ^bb0({}, %o: f64):\n  %r = math.{op} {} : f64\n  linalg.yield %r : f64\n}}",
        of(&|i| format!("%a{i}")),
        of(&|_| buffer.clone()),
        of(&|i| format!("%x{i}: f64")),
        of(&|i| format!("%x{i}")),
    );
    let attr = r#"class = "elementwise", workgroup_size = array<i32: 64, 1, 1>, vector_width = 4"#;
    outlined(&vec![buffer.clone(); operands + 1], &[1], attr, &body)
}

fn apply(device: &Device, op: &str, operands: &[&[f64]]) -> Vec<f64> {
    let (kernel, ..) = compile(&kernel(op, operands.len()), &device.description).unwrap_or_else(|d| panic!("{d}"));
    let mut buffers: Vec<Vec<u32>> = operands.iter().map(|o| bytemuck::cast_slice(o).to_vec()).collect();
    buffers.push(vec![0; 2 * COUNT]);
    let out = device.run(&kernel, [1, 1, 1], &buffers);
    bytemuck::pod_collect_to_vec(&out[operands.len()])
}

/// The special values, then half of the points evenly spread and half by exponent.
fn sweep((low, high): (f64, f64)) -> Vec<f64> {
    let point = |i: usize| match i {
        i if i < SPECIAL.len() => SPECIAL[i],
        i if i % 2 == 0 => low + (high - low) * i as f64 / COUNT as f64,
        i => (if i % 4 == 1 { high } else { low }) * 10f64.powf(-15.0 * i as f64 / COUNT as f64),
    };
    (0..COUNT).map(point).collect()
}

/// NaN for NaN, the same infinity, the same zero, or within the bound.
fn agree(found: f64, expected: f64, bound: f64) -> bool {
    let zero = expected == 0.0 && found == 0.0;
    if zero {
        return found.is_sign_negative() == expected.is_sign_negative();
    }
    let near = (found - expected).abs() <= bound * expected.abs() + f64::MIN_POSITIVE;
    found == expected || near || (found.is_nan() && expected.is_nan())
}

#[test]
fn functions_are_within_the_stated_bounds() {
    let Some(device) = wide_device() else { return };
    for (op, reference, domain, bound) in CASES {
        let points = sweep(domain);
        for (x, found) in points.iter().zip(apply(device, op, &[&points])) {
            let expected = reference(*x);
            // A device may take a denormal for zero; circular functions of what is far out have no accuracy.
            let flushed = x.is_subnormal() && agree(found, reference(0.0f64.copysign(*x)), bound);
            let far = x.abs() > 1e4 && matches!(op, "sin" | "cos" | "tan");
            assert!(far || flushed || agree(found, expected, bound), "{op}({x:e}) is {found:e}, not {expected:e}");
            assert!(!(far && op != "tan") || found.is_nan() || found.abs() <= 1.0, "{op}({x:e}) is {found:e}");
        }
    }
}

#[test]
fn powers_and_their_special_values() {
    let Some(device) = wide_device() else { return };
    let values = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 3.0, -3.0, 10.0, 1e-3, 123.456, 1e100, -7.5];
    let all: Vec<f64> = values.into_iter().chain([f64::INFINITY, f64::NEG_INFINITY, f64::NAN]).collect();
    let pair = |i: usize| (all[i % all.len()], all[i / all.len() % all.len()]);
    let (a, b): (Vec<f64>, Vec<f64>) = (0..COUNT).map(pair).unzip();
    for ((found, x), y) in apply(device, "powf", &[&a, &b]).iter().zip(&a).zip(&b) {
        let expected = x.powf(*y);
        // The error grows with the exponent of the result.
        assert!(agree(*found, expected, 1e-12), "powf({x:e}, {y:e}) is {found:e}, not {expected:e}");
    }
}

/// The bits of a number are an integer: without one of that width the op is named, whatever it is made of.
#[test]
fn without_integers_of_64_bits_they_are_refused() {
    let mut narrow = lavapipe();
    narrow.features = vec![GpuFeature::Immediates, GpuFeature::F64];
    for (op, operands) in [("exp", 1), ("log1p", 1), ("cos", 1), ("powf", 2), ("copysign", 2)] {
        let Err(diagnostics) = compile(&kernel(op, operands), &narrow).map(drop) else { panic!("{op} is accepted") };
        let first = &diagnostics.0[0];
        assert_eq!(first.code, "G0002", "{diagnostics}");
        let names_it = first.message.contains(&format!("'math.{op}'")) && first.message.contains("64-bit integers");
        assert!(names_it && first.help.is_some(), "{diagnostics}");
    }
    assert!(compile(&kernel("sqrt", 1), &narrow).is_ok(), "an instruction takes no integer");
}
