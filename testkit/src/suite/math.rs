//! Float functions one by one: every op of arith and math that has a value in every element, in f32, f16 and f64.

use super::case::{Case, by};
use crate::host_tensor::Dtype;
use crate::text::Program;

/// Op, range of the operands, what an f32 result is held to (absolute and relative alike).
type Function = (&'static str, (f64, f64), f64);

const UNARY: &[Function] = &[
    ("arith.negf", (-4.0, 4.0), 0.0),
    ("math.absf", (-4.0, 4.0), 0.0),
    ("math.floor", (-9.0, 9.0), 0.0),
    ("math.ceil", (-9.0, 9.0), 0.0),
    ("math.trunc", (-9.0, 9.0), 0.0),
    ("math.round", (-9.0, 9.0), 0.0),
    ("math.roundeven", (-9.0, 9.0), 0.0),
    ("math.sqrt", (0.0, 100.0), 1e-6),
    ("math.rsqrt", (0.01, 100.0), 2e-6),
    ("math.cbrt", (-8.0, 8.0), 1e-5),
    ("math.exp", (-10.0, 10.0), 1e-5),
    ("math.exp2", (-10.0, 10.0), 1e-5),
    ("math.expm1", (-2.0, 4.0), 1e-5),
    ("math.log", (0.01, 100.0), 1e-5),
    ("math.log2", (0.01, 100.0), 1e-5),
    ("math.log10", (0.01, 100.0), 1e-5),
    ("math.log1p", (-0.9, 10.0), 1e-5),
    ("math.sin", (-3.1, 3.1), 1e-5),
    ("math.cos", (-3.1, 3.1), 1e-5),
    ("math.tan", (-1.4, 1.4), 2e-5),
    ("math.asin", (-0.99, 0.99), 1e-4),
    ("math.acos", (-0.99, 0.99), 1e-4),
    ("math.atan", (-10.0, 10.0), 1e-5),
    ("math.sinh", (-3.0, 3.0), 1e-5),
    ("math.cosh", (-3.0, 3.0), 1e-5),
    ("math.tanh", (-5.0, 5.0), 1e-5),
    ("math.asinh", (-10.0, 10.0), 1e-5),
    ("math.acosh", (1.1, 10.0), 1e-5),
    ("math.atanh", (-0.9, 0.9), 1e-5),
    ("math.erf", (-3.0, 3.0), 1e-5),
];

const BINARY: &[Function] = &[
    ("arith.addf", (-4.0, 4.0), 1e-6),
    ("arith.subf", (-4.0, 4.0), 1e-6),
    ("arith.mulf", (-4.0, 4.0), 1e-6),
    ("arith.divf", (0.5, 4.0), 1e-6),
    ("arith.remf", (1.0, 4.0), 1e-5),
    ("arith.maximumf", (-4.0, 4.0), 0.0),
    ("arith.minimumf", (-4.0, 4.0), 0.0),
    ("arith.maxnumf", (-4.0, 4.0), 0.0),
    ("arith.minnumf", (-4.0, 4.0), 0.0),
    ("math.powf", (0.1, 3.0), 1e-5),
    ("math.atan2", (-3.0, 3.0), 1e-5),
    ("math.copysign", (-4.0, 4.0), 0.0),
];

/// Functions of f64, with what a result is held to.
const DOUBLE: &[Function] = &[
    ("math.exp", (-20.0, 20.0), 1e-14),
    ("math.exp2", (-30.0, 30.0), 1e-14),
    ("math.expm1", (-20.0, 20.0), 1e-14),
    ("math.log", (1e-3, 1e3), 1e-14),
    ("math.log2", (1e-3, 1e3), 1e-14),
    ("math.log10", (1e-3, 1e3), 1e-14),
    ("math.log1p", (-0.99, 100.0), 1e-14),
    ("math.tanh", (-5.0, 5.0), 1e-14),
    ("math.sinh", (-20.0, 20.0), 1e-14),
    ("math.cosh", (-20.0, 20.0), 1e-14),
    ("math.sin", (-1e3, 1e3), 4e-12),
    ("math.cos", (-1e3, 1e3), 4e-12),
    ("math.tan", (-1.5, 1.5), 4e-12),
    ("math.asin", (-1.0, 1.0), 1e-14),
    ("math.acos", (-1.0, 1.0), 1e-14),
    ("math.atan", (-10.0, 10.0), 1e-14),
    ("math.asinh", (-100.0, 100.0), 1e-14),
    ("math.acosh", (1.0, 100.0), 1e-14),
    ("math.atanh", (-0.9, 0.9), 1e-14),
    ("math.cbrt", (-100.0, 100.0), 1e-14),
    ("math.erf", (-3.0, 3.0), 1e-14),
    ("math.erfc", (-3.0, 3.0), 1e-14),
    ("math.sqrt", (0.0, 100.0), 1e-15),
    ("math.rsqrt", (0.01, 100.0), 1e-15),
];

const F16: &[&str] = &[
    "arith.negf",
    "math.absf",
    "math.floor",
    "math.sqrt",
    "math.exp",
    "math.log",
    "math.sin",
    "math.tanh",
    "arith.addf",
    "arith.subf",
    "arith.mulf",
    "arith.divf",
    "arith.maximumf",
    "arith.minimumf",
];

const COMPARISONS: [&str; 14] =
    ["oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno"];

pub(super) fn cases() -> Vec<Case> {
    let mut out = vec![];
    for function in UNARY {
        out.push(case(function, 1, Dtype::F32, &[7, 65]));
    }
    for function in BINARY {
        out.push(case(function, 2, Dtype::F32, &[17, 33]));
    }
    for function in UNARY.iter().chain(BINARY).filter(|f| F16.contains(&f.0)) {
        let arity = if function.0.starts_with("arith") && function.0 != "arith.negf" { 2 } else { 1 };
        out.push(case(function, arity, Dtype::F16, &[5, 33]));
    }
    out.push(case(&("math.fma", (-2.0, 2.0), 1e-6), 3, Dtype::F32, &[100]));
    for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::F64] {
        out.extend(["isnan", "isinf", "isfinite", "isnormal"].map(|test| class_test(test, dtype)));
        out.extend([-3, 0, 5].map(|exponent| known_power(exponent, dtype)));
        out.push(power(dtype));
    }
    for op in ["round", "roundeven", "floor", "absf"] {
        out.push(case(&(op_name(op), (-9.0, 9.0), 0.0), 1, Dtype::F64, &[7, 65]).within(0.0, 0.0));
    }
    out.extend(DOUBLE.iter().map(|f| case(f, 1, Dtype::F64, &[7, 65]).within(f.2, f.2)));
    out.push(case(&("math.powf", (0.1, 3.0), 0.0), 2, Dtype::F64, &[17, 33]).within(1e-13, 1e-13));
    out.push(case(&("math.atan2", (-3.0, 3.0), 0.0), 2, Dtype::F64, &[17, 33]).within(1e-14, 1e-14));
    out.push(case(&("math.copysign", (-4.0, 4.0), 0.0), 2, Dtype::F64, &[17, 33]).within(0.0, 0.0));
    out.push(case(&("math.round", (-9.0, 9.0), 0.0), 1, Dtype::F16, &[7, 65]).within(0.0, 0.0));
    out.push(case(&("arith.remf", (1.0, 400.0), 0.0), 2, Dtype::F16, &[17, 33]));
    out.push(case(&("arith.remf", (1.0, 400.0), 0.0), 2, Dtype::Bf16, &[17, 33]).within(1e-2, 1e-2));
    out.extend(COMPARISONS.iter().map(|p| comparison(p)));
    out.push(composed("gelu", "%h = arith.constant 0.5 : f32; %r = arith.constant 0.70710678 : f32; %x = arith.mulf %a, %r : f32; \
        %e = math.erf %x : f32; %n = arith.constant 1.0 : f32; %y = arith.addf %e, %n : f32; %w = arith.mulf %a, %h : f32; \
        %s = arith.mulf %w, %y : f32"));
    out.push(composed(
        "silu",
        "%m = arith.negf %a : f32; %e = math.exp %m : f32; %n = arith.constant 1.0 : f32; \
        %y = arith.addf %e, %n : f32; %s = arith.divf %a, %y : f32",
    ));
    out.push(composed(
        "clamp",
        "%l = arith.constant -0.25 : f32; %h = arith.constant 0.5 : f32; %x = arith.maximumf %a, %l : f32; \
        %s = arith.minimumf %x, %h : f32",
    ));
    out.push(composed(
        "leaky_relu",
        "%z = arith.constant 0.0 : f32; %k = arith.constant 0.1 : f32; %m = arith.mulf %a, %k : f32; \
        %c = arith.cmpf ogt, %a, %z : f32; %s = arith.select %c, %a, %m : f32",
    ));
    out.push(composed("softplus", "%e = math.exp %a : f32; %s = math.log1p %e : f32"));
    out
}

fn op_name(op: &str) -> &'static str {
    let found = UNARY.iter().find(|f| f.0.ends_with(&format!(".{op}")));
    found.expect("one of the list").0
}

/// A test of what kind of number it is, over numbers, infinities, NaN and zero.
fn class_test(test: &str, dtype: Dtype) -> Case {
    let mut p = Program::new();
    let x = p.input_within(dtype, &[9, 31], -3.0, 3.0);
    let (infinity, nan) = match dtype {
        Dtype::F16 => ("0x7C00", "0x7E00"),
        Dtype::Bf16 => ("0x7F80", "0x7FC0"),
        Dtype::F64 => ("0x7FF0000000000000", "0x7FF8000000000000"),
        _ => ("0x7F800000", "0x7FC00000"),
    };
    let body = format!(
        "%one = arith.constant 1.0 : {dtype}; %minus = arith.constant -1.0 : {dtype}; %zero = arith.constant 0.0 : {dtype}; \
         %inf = arith.constant {infinity} : {dtype}; %nan = arith.constant {nan} : {dtype}; %f = math.floor %a : {dtype}; \
         %c1 = arith.cmpf oeq, %f, %one : {dtype}; %c2 = arith.cmpf oeq, %f, %minus : {dtype}; \
         %c3 = arith.cmpf oeq, %f, %zero : {dtype}; %x1 = arith.select %c1, %inf, %a : {dtype}; \
         %x2 = arith.select %c2, %nan, %x1 : {dtype}; %x3 = arith.select %c3, %zero, %x2 : {dtype}; \
         %s = math.{test} %x3 : {dtype}"
    );
    let r = p.pointwise(Dtype::Int(1), &[&x], &body);
    Case::new(format!("math/{test}/{dtype}"), p, &[&r]).within(0.0, 0.0)
}

/// What products of values in [0.5, 2] may be off by: the range covers exponents of -6 to 6.
fn power_bound(dtype: Dtype) -> f64 {
    match dtype {
        Dtype::Bf16 => 1e-2,
        Dtype::F16 => 3e-3,
        Dtype::F32 => 1e-5,
        _ => 1e-14,
    }
}

fn known_power(exponent: i32, dtype: Dtype) -> Case {
    let mut p = Program::new();
    let x = p.input_within(dtype, &[9, 31], 0.5, 2.0);
    let body = format!("%k = arith.constant {exponent} : i32; %s = math.fpowi %a, %k : {dtype}, i32");
    let r = p.pointwise(dtype, &[&x], &body);
    let bound = power_bound(dtype);
    Case::new(format!("math/fpowi_{exponent}/{dtype}"), p, &[&r]).within(bound, bound)
}

fn power(dtype: Dtype) -> Case {
    let mut p = Program::new();
    let (x, n) = (p.input_within(dtype, &[9, 31], -2.0, 2.0), p.input_within(Dtype::Int(32), &[9, 31], 0.0, 7.0));
    let body = format!(
        "%k = arith.constant 3 : i32; %e = arith.subi %b, %k : i32; %h = arith.constant 0.5 : {dtype}; \
         %m = math.absf %a : {dtype}; %y = arith.addf %m, %h : {dtype}; %z = math.copysign %y, %a : {dtype}; \
         %s = math.fpowi %z, %e : {dtype}, i32"
    );
    let r = p.pointwise(dtype, &[&x, &n], &body);
    let bound = power_bound(dtype) * 2.0;
    Case::new(format!("math/fpowi/{dtype}"), p, &[&r]).within(bound, bound)
}

fn case(function: &Function, arity: usize, dtype: Dtype, shape: &[usize]) -> Case {
    let (op, (low, high), bound) = *function;
    // An exponential of half precision doubles the error of its operand with every unit.
    let (low, high) = if dtype == Dtype::F16 { (low.max(-4.0), high.min(4.0)) } else { (low, high) };
    let mut p = Program::new();
    let ins: Vec<_> = (0..arity).map(|_| p.input_within(dtype, shape, low, high)).collect();
    let args = &["%a", "%b", "%c"][..arity];
    let r = p.pointwise(dtype, &ins.iter().collect::<Vec<_>>(), &format!("%s = {op} {} : {dtype}", args.join(", ")));
    let case = Case::new(format!("math/{}/{dtype}/{}", op.split('.').next_back().unwrap_or(op), by(shape)), p, &[&r]);
    if dtype == Dtype::F32 { case.within(bound, bound).dispatches(1) } else { case.within(3e-3, 3e-3).dispatches(1) }
}

/// A comparison whose outcome is an `i1` tensor; both operands hold small whole numbers, so that some are equal.
fn comparison(predicate: &str) -> Case {
    let mut p = Program::new();
    let (x, y) = (p.input_within(Dtype::F32, &[9, 31], -2.0, 2.0), p.input_within(Dtype::F32, &[9, 31], -2.0, 2.0));
    let body = format!("%f = math.floor %a : f32; %g = math.floor %b : f32; %s = arith.cmpf {predicate}, %f, %g : f32");
    let r = p.pointwise(Dtype::Int(1), &[&x, &y], &body);
    Case::new(format!("math/cmpf_{predicate}"), p, &[&r]).dispatches(1)
}

fn composed(name: &str, body: &str) -> Case {
    let mut p = Program::new();
    let x = p.input_within(Dtype::F32, &[17, 100], -3.0, 3.0);
    let r = p.pointwise(Dtype::F32, &[&x], body);
    Case::new(format!("math/{name}"), p, &[&r]).dispatches(1)
}
