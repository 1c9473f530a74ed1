//! Float functions one by one: every op of arith and math with a value in every element, in f32, f16 and f64.

use super::case::{Case, by};
use crate::host_tensor::Dtype;
use crate::text::Program;
use monopour_ir::ops;

/// Op, range of the operands, tolerance of an f32 result (absolute and relative alike).
type Function = (&'static str, (f64, f64), f64);

const UNARY: &[Function] = &[
    (ops::arith::NEGF, (-4.0, 4.0), 0.0),
    (ops::math::ABSF, (-4.0, 4.0), 0.0),
    (ops::math::FLOOR, (-9.0, 9.0), 0.0),
    (ops::math::CEIL, (-9.0, 9.0), 0.0),
    (ops::math::TRUNC, (-9.0, 9.0), 0.0),
    (ops::math::ROUND, (-9.0, 9.0), 0.0),
    (ops::math::ROUNDEVEN, (-9.0, 9.0), 0.0),
    (ops::math::SQRT, (0.0, 100.0), 1e-6),
    (ops::math::RSQRT, (0.01, 100.0), 2e-6),
    (ops::math::CBRT, (-8.0, 8.0), 1e-5),
    (ops::math::EXP, (-10.0, 10.0), 1e-5),
    (ops::math::EXP2, (-10.0, 10.0), 1e-5),
    (ops::math::EXPM1, (-2.0, 4.0), 1e-5),
    (ops::math::LOG, (0.01, 100.0), 1e-5),
    (ops::math::LOG2, (0.01, 100.0), 1e-5),
    (ops::math::LOG10, (0.01, 100.0), 1e-5),
    (ops::math::LOG1P, (-0.9, 10.0), 1e-5),
    (ops::math::SIN, (-3.1, 3.1), 1e-5),
    (ops::math::COS, (-3.1, 3.1), 1e-5),
    (ops::math::TAN, (-1.4, 1.4), 2e-5),
    (ops::math::ASIN, (-0.99, 0.99), 1e-4),
    (ops::math::ACOS, (-0.99, 0.99), 1e-4),
    (ops::math::ATAN, (-10.0, 10.0), 1e-5),
    (ops::math::SINH, (-3.0, 3.0), 1e-5),
    (ops::math::COSH, (-3.0, 3.0), 1e-5),
    (ops::math::TANH, (-5.0, 5.0), 1e-5),
    (ops::math::ASINH, (-10.0, 10.0), 1e-5),
    (ops::math::ACOSH, (1.1, 10.0), 1e-5),
    (ops::math::ATANH, (-0.9, 0.9), 1e-5),
    (ops::math::ERF, (-3.0, 3.0), 1e-5),
];

const BINARY: &[Function] = &[
    (ops::arith::ADDF, (-4.0, 4.0), 1e-6),
    (ops::arith::SUBF, (-4.0, 4.0), 1e-6),
    (ops::arith::MULF, (-4.0, 4.0), 1e-6),
    (ops::arith::DIVF, (0.5, 4.0), 1e-6),
    (ops::arith::REMF, (1.0, 4.0), 1e-5),
    (ops::arith::MAXIMUMF, (-4.0, 4.0), 0.0),
    (ops::arith::MINIMUMF, (-4.0, 4.0), 0.0),
    (ops::arith::MAXNUMF, (-4.0, 4.0), 0.0),
    (ops::arith::MINNUMF, (-4.0, 4.0), 0.0),
    (ops::math::POWF, (0.1, 3.0), 1e-5),
    (ops::math::ATAN2, (-3.0, 3.0), 1e-5),
    (ops::math::COPYSIGN, (-4.0, 4.0), 0.0),
];

/// Functions of f64, with the tolerance of a result.
const DOUBLE: &[Function] = &[
    (ops::math::EXP, (-20.0, 20.0), 1e-14),
    (ops::math::EXP2, (-30.0, 30.0), 1e-14),
    (ops::math::EXPM1, (-20.0, 20.0), 1e-14),
    (ops::math::LOG, (1e-3, 1e3), 1e-14),
    (ops::math::LOG2, (1e-3, 1e3), 1e-14),
    (ops::math::LOG10, (1e-3, 1e3), 1e-14),
    (ops::math::LOG1P, (-0.99, 100.0), 1e-14),
    (ops::math::TANH, (-5.0, 5.0), 1e-14),
    (ops::math::SINH, (-20.0, 20.0), 1e-14),
    (ops::math::COSH, (-20.0, 20.0), 1e-14),
    (ops::math::SIN, (-1e3, 1e3), 4e-12),
    (ops::math::COS, (-1e3, 1e3), 4e-12),
    (ops::math::TAN, (-1.5, 1.5), 4e-12),
    (ops::math::ASIN, (-1.0, 1.0), 1e-14),
    (ops::math::ACOS, (-1.0, 1.0), 1e-14),
    (ops::math::ATAN, (-10.0, 10.0), 1e-14),
    (ops::math::ASINH, (-100.0, 100.0), 1e-14),
    (ops::math::ACOSH, (1.0, 100.0), 1e-14),
    (ops::math::ATANH, (-0.9, 0.9), 1e-14),
    (ops::math::CBRT, (-100.0, 100.0), 1e-14),
    (ops::math::ERF, (-3.0, 3.0), 1e-14),
    (ops::math::ERFC, (-3.0, 3.0), 1e-14),
    (ops::math::SQRT, (0.0, 100.0), 1e-15),
    (ops::math::RSQRT, (0.01, 100.0), 1e-15),
];

const F16: &[&str] = &[
    ops::arith::NEGF,
    ops::math::ABSF,
    ops::math::FLOOR,
    ops::math::SQRT,
    ops::math::EXP,
    ops::math::LOG,
    ops::math::SIN,
    ops::math::TANH,
    ops::arith::ADDF,
    ops::arith::SUBF,
    ops::arith::MULF,
    ops::arith::DIVF,
    ops::arith::MAXIMUMF,
    ops::arith::MINIMUMF,
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
        let arity = if function.0.starts_with("arith") && function.0 != ops::arith::NEGF { 2 } else { 1 };
        out.push(case(function, arity, Dtype::F16, &[5, 33]));
    }
    out.push(case(&(ops::math::FMA, (-2.0, 2.0), 1e-6), 3, Dtype::F32, &[100]));
    for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::F64] {
        out.extend(["isnan", "isinf", "isfinite", "isnormal"].map(|test| class_test(test, dtype)));
        out.extend([-3, 0, 5].map(|exponent| known_power(exponent, dtype)));
        out.push(power(dtype));
        out.push(sine_and_cosine(dtype));
    }
    for op in ["round", "roundeven", "floor", "absf"] {
        out.push(case(&(op_name(op), (-9.0, 9.0), 0.0), 1, Dtype::F64, &[7, 65]).within(0.0, 0.0));
    }
    out.extend(DOUBLE.iter().map(|f| case(f, 1, Dtype::F64, &[7, 65]).within(f.2, f.2)));
    out.push(case(&(ops::math::POWF, (0.1, 3.0), 0.0), 2, Dtype::F64, &[17, 33]).within(1e-13, 1e-13));
    out.push(case(&(ops::math::ATAN2, (-3.0, 3.0), 0.0), 2, Dtype::F64, &[17, 33]).within(1e-14, 1e-14));
    out.push(case(&(ops::math::COPYSIGN, (-4.0, 4.0), 0.0), 2, Dtype::F64, &[17, 33]).within(0.0, 0.0));
    out.push(case(&(ops::math::ROUND, (-9.0, 9.0), 0.0), 1, Dtype::F16, &[7, 65]).within(0.0, 0.0));
    out.push(case(&(ops::arith::REMF, (1.0, 400.0), 0.0), 2, Dtype::F16, &[17, 33]));
    out.push(case(&(ops::arith::REMF, (1.0, 400.0), 0.0), 2, Dtype::Bf16, &[17, 33]).within(1e-2, 1e-2));
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

/// A test of the float class, over numbers, infinities, NaN and zero.
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

/// The tolerance of products of values in [0.5, 2]: the range covers exponents of -6 to 6.
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

/// Two results of one op.
fn sine_and_cosine(dtype: Dtype) -> Case {
    let mut p = Program::new();
    let x = p.input_within(dtype, &[9, 31], -3.1, 3.1);
    let (sine, cosine) = (p.empty(dtype, &[9, 31]), p.empty(dtype, &[9, 31]));
    let body = format!("%s, %t = math.sincos %a : {dtype}");
    let r = p.generics("i j", &[(&x, "i, j")], &[(&sine, "i, j"), (&cosine, "i, j")], &body, "%s, %t");
    let bound = power_bound(dtype);
    Case::new(format!("math/sincos/{dtype}"), p, &[&r[0], &r[1]]).within(bound, bound).dispatches(1)
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

/// A comparison whose result is an `i1` tensor; both operands hold small whole numbers, so that some are equal.
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
