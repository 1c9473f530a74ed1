//! Float functions one by one: every op of arith and math that has a value in every element, in f32 and f16.

use super::{Case, by};
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
