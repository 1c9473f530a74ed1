//! Functions of f64, expanded for GPUs: their errors, as `docs/numerics.md` states them, and their special values.

use crate::device::{Device, device};
use crate::program::{compile, lavapipe, outlined};
use monopour_program::GpuFeature;

/// Points of a sweep, and of a kernel.
const COUNT: usize = 1 << 12;
const SPECIAL: [f64; 12] =
    [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e-310, -1e-310, 1.0, -1.0, 1e300, 800.0, -800.0];

/// Op, reference, domain, and the bound of the relative error.
type Case = (&'static str, fn(f64) -> f64, (f64, f64), f64);
const CASES: [Case; 24] = [
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
    ("atan", f64::atan, (-1e10, 1e10), 8e-15),
    ("asin", f64::asin, (-1.0, 1.0), 8e-15),
    ("acos", f64::acos, (-1.0, 1.0), 8e-15),
    ("asinh", f64::asinh, (-1e300, 1e300), 8e-15),
    ("acosh", f64::acosh, (1.0, 1e300), 8e-15),
    // The standard library cancels near -1.
    ("atanh", |x| x.abs().atanh().copysign(x), (-0.999, 0.999), 8e-15),
    ("cbrt", f64::cbrt, (-1e300, 1e300), 8e-15),
    ("sqrt", f64::sqrt, (0.0, 1e300), 2e-15),
    ("rsqrt", |x| 1.0 / x.sqrt(), (1e-300, 1e300), 2e-15),
    ("round", f64::round, (-1e6, 1e6), 0.0),
    ("roundeven", f64::round_ties_even, (-1e6, 1e6), 0.0),
];

/// Numbers, their error function and its complement, rounded from 40 digits.
const ERRORS: [(f64, f64, f64); 23] = [
    (0.0, 0.0, 1.0),
    (1e-300, 1.128_379_167_095_512_6e-300, 1.0),
    (1e-09, 1.128_379_167_095_512_7e-9, 0.999_999_998_871_620_8),
    (0.1, 0.112_462_916_018_284_9, 0.887_537_083_981_715),
    (0.3, 0.328_626_759_459_127_4, 0.671_373_240_540_872_6),
    (0.49, 0.511_668_261_188_523, 0.488_331_738_811_476_9),
    (0.5, 0.520_499_877_813_046_5, 0.479_500_122_186_953_5),
    (0.51, 0.529_243_619_841_170_4, 0.470_756_380_158_829_6),
    (0.75, 0.711_155_633_653_515_1, 0.288_844_366_346_484_86),
    (1.0, 0.842_700_792_949_714_9, 0.157_299_207_050_285_13),
    (1.5, 0.966_105_146_475_310_8, 0.033_894_853_524_689_274),
    (2.0, 0.995_322_265_018_952_7, 0.004_677_734_981_047_266),
    (3.3, 0.999_996_942_290_203_5, 3.057_709_796_438_165_4e-6),
    (4.7, 0.999_999_999_970_047_4, 2.995_259_786_379_655_5e-11),
    (5.9, 0.999_999_999_999_999_9, 7.190_409_783_550_478e-17),
    (8.0, 1.0, 1.122_429_717_298_292_6e-29),
    (12.5, 1.0, 6.231_942_781_979_911e-70),
    (20.0, 1.0, 5.395_865_611_607_901e-176),
    (26.0, 1.0, 5.663_192_408_856_143e-296),
    (-0.2, -0.222_702_589_210_478_47, 1.222_702_589_210_478_4),
    (-0.6, -0.603_856_090_847_925_9, 1.603_856_090_847_925_8),
    (-2.5, -0.999_593_047_982_555, 1.999_593_047_982_555),
    (-7.0, -1.0, 2.0),
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
            // A device may flush denormals; circular functions of huge arguments have no accuracy.
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

#[test]
fn error_functions_down_to_the_tail() {
    let Some(device) = wide_device() else { return };
    let mut points: Vec<f64> = ERRORS.iter().map(|(x, ..)| *x).collect();
    points.extend([f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -0.0]);
    let end = ERRORS.len();
    points.resize(COUNT, 1.0);
    let (erf, erfc) = (apply(device, "erf", &[&points]), apply(device, "erfc", &[&points]));
    for (i, (x, expected, complement)) in ERRORS.into_iter().enumerate() {
        assert!(agree(erf[i], expected, 8e-15), "erf({x:e}) is {:e}, not {expected:e}", erf[i]);
        assert!(agree(erfc[i], complement, 8e-15), "erfc({x:e}) is {:e}, not {complement:e}", erfc[i]);
    }
    assert_eq!([erf[end], erf[end + 1], erfc[end], erfc[end + 1], erfc[end + 3]], [1.0, -1.0, 0.0, 2.0, 1.0]);
    assert!(erf[end + 2].is_nan() && erfc[end + 2].is_nan() && agree(erf[end + 3], -0.0, 0.0));
}

#[test]
fn angles_in_every_quadrant() {
    let Some(device) = wide_device() else { return };
    let values = [0.0, 1.0, 0.3, 2.5, 1e-200, 1e200, f64::INFINITY];
    let all: Vec<f64> = values.iter().flat_map(|v| [*v, -v]).chain([f64::NAN]).collect();
    let pair = |i: usize| (all[i % all.len()], all[i / all.len() % all.len()]);
    let (y, x): (Vec<f64>, Vec<f64>) = (0..COUNT).map(pair).unzip();
    for ((found, y), x) in apply(device, "atan2", &[&y, &x]).iter().zip(&y).zip(&x) {
        let expected = y.atan2(*x);
        assert!(agree(*found, expected, 8e-15), "atan2({y:e}, {x:e}) is {found:e}, not {expected:e}");
    }
}

/// Ops on the bits of f64 need 64-bit integers: the diagnostic names the op, whatever its expansion.
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
