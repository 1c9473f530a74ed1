//! Functions at zeros, infinities, NaN, and outside of their domain, on every kind of device.

use crate::numerics::{each, places, pointwise};
use monopour::program::DType;
use monopour::runtime::HostTensor;

type Function = (&'static str, fn(f64) -> f64);
type OfTwo = (&'static str, fn(f64, f64) -> f64);

/// Functions of one float, as the C library has them.
const OF_ONE: [Function; 22] = [
    ("exp", f64::exp),
    ("exp2", f64::exp2),
    ("expm1", f64::exp_m1),
    ("log", f64::ln),
    ("log2", f64::log2),
    ("log10", f64::log10),
    ("log1p", f64::ln_1p),
    ("tanh", f64::tanh),
    ("sinh", f64::sinh),
    ("cosh", f64::cosh),
    ("atan", f64::atan),
    ("asin", f64::asin),
    ("acos", f64::acos),
    ("asinh", f64::asinh),
    ("acosh", f64::acosh),
    ("atanh", f64::atanh),
    ("cbrt", f64::cbrt),
    ("sqrt", f64::sqrt),
    ("sin", f64::sin),
    ("cos", f64::cos),
    ("floor", f64::floor),
    ("absf", f64::abs),
];
const OF_TWO: [OfTwo; 2] = [("powf", f64::powf), ("atan2", f64::atan2)];

/// Zeros of both signs, infinities, NaN, and what is outside of the domain.
#[test]
fn functions_of_floats_at_special_values() {
    let inf = f32::INFINITY;
    let values = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -3.0, inf, -inf, f32::NAN, 3.5];
    let pairs: Vec<(f32, f32)> = values.iter().flat_map(|x| values.iter().map(|y| (*x, *y))).collect();
    let tensor = |of: fn(&(f32, f32)) -> f32| {
        let bytes = pairs.iter().flat_map(|pair| of(pair).to_le_bytes()).collect();
        HostTensor::new(DType::F32, vec![pairs.len() as u64], bytes).expect("the length fits")
    };
    let inputs = [tensor(|pair| pair.0), tensor(|pair| pair.1)];
    let one = OF_ONE.map(|(name, _)| format!("%r = math.{name} %a : f32"));
    let two = OF_TWO.map(|(name, _)| format!("%r = math.{name} %a, %b : f32"));
    let all: Vec<(&str, &str)> = one.iter().chain(&two).map(|op| ("f32", op.as_str())).collect();
    let text = pointwise(pairs.len(), &["f32", "f32"], &all);
    let agree = |found: f32, expected: f64| {
        let (found, expected) = (f64::from(found), f64::from(expected as f32));
        found == expected
            || (expected.is_finite() && (found - expected).abs() <= 1e-4 * expected.abs() + 1e-5)
            || (found.is_nan() && expected.is_nan())
    };
    for place in places() {
        let out = place.run(&text, &inputs);
        let found = |at: usize| each(&out[at], f32::from_le_bytes);
        for (at, (name, reference)) in OF_ONE.iter().enumerate() {
            for ((x, _), found) in pairs.iter().zip(found(at)) {
                let expected = reference(f64::from(*x));
                assert!(agree(found, expected), "{}: {name}({x:e}) is {found:e}, expected {expected:e}", place.name());
            }
        }
        for (at, (name, reference)) in OF_TWO.iter().enumerate() {
            for ((x, y), found) in pairs.iter().zip(found(OF_ONE.len() + at)) {
                let expected = reference(f64::from(*x), f64::from(*y));
                assert!(
                    agree(found, expected),
                    "{}: {name}({x:e}, {y:e}) is {found:e}, expected {expected:e}",
                    place.name()
                );
            }
        }
    }
}

/// Zero, infinity, NaN, denormals, and overflow.
#[test]
fn functions_of_doubles_at_special_values() {
    let functions: [Function; 8] = [
        ("exp", f64::exp),
        ("expm1", f64::exp_m1),
        ("log", f64::ln),
        ("log1p", f64::ln_1p),
        ("tanh", f64::tanh),
        ("cosh", f64::cosh),
        ("atan", f64::atan),
        ("cbrt", f64::cbrt),
    ];
    let inf = f64::INFINITY;
    let values = [0.0, -0.0, inf, -inf, f64::NAN, 1e-310, -1e-310, 800.0, -745.0, 1e300, -1.0, 1.0];
    let ops = functions.map(|(name, _)| format!("%r = math.{name} %a : f64"));
    let text = pointwise(values.len(), &["f64"], &ops.each_ref().map(|o| ("f64", o.as_str())));
    let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let input = HostTensor::new(DType::F64, vec![values.len() as u64], bytes).expect("the length fits");
    let agree = |found: f64, expected: f64| {
        let near = expected.is_finite() && (found - expected).abs() <= 1e-14 * expected.abs() + f64::MIN_POSITIVE;
        let sign = expected != 0.0 || found.is_sign_negative() == expected.is_sign_negative();
        ((found == expected || near) && sign) || (found.is_nan() && expected.is_nan())
    };
    for place in places() {
        let out = place.run(&text, std::slice::from_ref(&input));
        for ((name, reference), bytes) in functions.iter().zip(&out) {
            for (x, found) in values.iter().zip(each(bytes, f64::from_le_bytes)) {
                let flushed = place.gpu && x.is_subnormal() && agree(found, reference(0.0f64.copysign(*x)));
                let expected = reference(*x);
                assert!(flushed || agree(found, expected), "{}: {name}({x:e}) is {found:e}", place.name());
            }
        }
    }
}

/// The smallest positive f32, the largest denormal, and one that ends in the middle.
const DENORMALS: [f32; 4] = [f32::from_bits(1), f32::from_bits(0x7f_ffff), 1e-40, 2e-45];

/// No device flushes the arguments of these, and their results are normal.
#[test]
fn logarithms_and_roots_of_denormals() {
    let functions: [Function; 4] = [("log", f64::ln), ("log2", f64::log2), ("log10", f64::log10), ("cbrt", f64::cbrt)];
    let values: Vec<f32> = DENORMALS.into_iter().chain([f32::MIN_POSITIVE, 0.0, -0.0, 1.0]).collect();
    let ops = functions.map(|(name, _)| format!("%r = math.{name} %a : f32"));
    let text = pointwise(values.len(), &["f32"], &ops.each_ref().map(|o| ("f32", o.as_str())));
    let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let input = HostTensor::new(DType::F32, vec![values.len() as u64], bytes).expect("the length fits");
    for place in places() {
        let out = place.run(&text, std::slice::from_ref(&input));
        for ((name, reference), bytes) in functions.iter().zip(&out) {
            for (x, found) in values.iter().zip(each(bytes, f32::from_le_bytes)) {
                let (found, expected) = (f64::from(found), reference(f64::from(*x)));
                let near = (found - expected).abs() <= 2e-6 * expected.abs();
                assert!(
                    found == expected || near,
                    "{}: {name}({x:e}) is {found:e}, expected {expected:e}",
                    place.name()
                );
            }
        }
    }
}

/// Exact wherever it is a number: quotients up to 2^277, denormals, zeros of both signs, infinities and NaN.
#[test]
fn remainders_are_exact() {
    let inf = f32::INFINITY;
    let numbers = [0.0, 1.0, 3.0, 0.1, 5.5, 1e10, 16_777_213.0, 1e30, f32::MAX, f32::MIN_POSITIVE, 1e-37, inf];
    let positive: Vec<f32> = numbers.into_iter().chain(DENORMALS).collect();
    let values: Vec<f32> = positive.iter().flat_map(|v| [*v, -*v]).chain([f32::NAN]).collect();
    let pairs: Vec<(f32, f32)> = values.iter().flat_map(|x| values.iter().map(|y| (*x, *y))).collect();
    let tensor = |of: fn(&(f32, f32)) -> f32| {
        let bytes = pairs.iter().flat_map(|pair| of(pair).to_le_bytes()).collect();
        HostTensor::new(DType::F32, vec![pairs.len() as u64], bytes).expect("the length fits")
    };
    let inputs = [tensor(|pair| pair.0), tensor(|pair| pair.1)];
    let text = pointwise(pairs.len(), &["f32", "f32"], &[("f32", "%r = arith.remf %a, %b : f32")]);
    for place in places() {
        let out = place.run(&text, &inputs);
        for ((x, y), found) in pairs.iter().zip(each(&out[0], f32::from_le_bytes)) {
            let expected = x % y;
            let is_right = found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan());
            assert!(is_right, "{}: {x:e} by {y:e} leaves {found:e}, expected {expected:e}", place.name());
        }
    }
}
