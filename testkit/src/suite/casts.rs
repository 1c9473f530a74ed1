//! Conversions between element types, alone and between other ops.

use super::case::{Case, by};
use crate::host_tensor::Dtype;
use crate::text::Program;

const I1: Dtype = Dtype::Int(1);
const I8: Dtype = Dtype::Int(8);
const I32: Dtype = Dtype::Int(32);
const I64: Dtype = Dtype::Int(64);

/// Op, from, to, range of the operand.
const CASTS: &[(&str, Dtype, Dtype, (f64, f64))] = &[
    ("sitofp", I32, Dtype::F32, (-1e6, 1e6)),
    ("uitofp", I32, Dtype::F32, (-1e6, 1e6)),
    ("fptosi", Dtype::F32, I32, (-1e6, 1e6)),
    ("fptoui", Dtype::F32, I32, (0.0, 1e6)),
    ("extf", Dtype::F16, Dtype::F32, (-4.0, 4.0)),
    ("truncf", Dtype::F32, Dtype::F16, (-4.0, 4.0)),
    ("sitofp", I32, Dtype::F16, (-1000.0, 1000.0)),
    ("fptosi", Dtype::F16, I32, (-1000.0, 1000.0)),
    ("extsi", I8, I32, (-128.0, 128.0)),
    ("extui", I8, I32, (-128.0, 128.0)),
    ("trunci", I32, I8, (-1e6, 1e6)),
    ("extui", I1, I32, (0.0, 2.0)),
    ("extsi", I1, I32, (0.0, 2.0)),
    ("trunci", I32, I1, (-9.0, 9.0)),
    ("extui", I1, I8, (0.0, 2.0)),
    ("sitofp", I8, Dtype::F32, (-128.0, 128.0)),
    ("uitofp", I8, Dtype::F32, (-128.0, 128.0)),
    ("uitofp", I1, Dtype::F32, (0.0, 2.0)),
    ("fptosi", Dtype::F32, I8, (-100.0, 100.0)),
    ("index_cast", I32, Dtype::Index, (-100.0, 100.0)),
    ("index_cast", Dtype::Index, I32, (-100.0, 100.0)),
    ("index_castui", I32, Dtype::Index, (0.0, 100.0)),
    ("extsi", I32, I64, (-1e9, 1e9)),
    ("extui", I32, I64, (-1e9, 1e9)),
    ("trunci", I64, I32, (-1e12, 1e12)),
    ("sitofp", I64, Dtype::F32, (-1e6, 1e6)),
    ("bitcast", I32, Dtype::F32, (1e9, 1.1e9)),
    ("bitcast", Dtype::F32, I32, (-4.0, 4.0)),
];

pub(super) fn cases() -> Vec<Case> {
    let mut out = vec![];
    for (op, from, to, range) in CASTS {
        out.push(cast(op, *from, *to, *range, &[7, 33]));
    }
    for shape in [&[1][..], &[100], &[3, 5, 7], &[257]] {
        out.push(cast("sitofp", I8, Dtype::F32, (-128.0, 128.0), shape));
        out.push(cast("trunci", I32, I8, (-1e6, 1e6), shape));
        out.push(cast("truncf", Dtype::F32, Dtype::F16, (-4.0, 4.0), shape));
    }
    out.push(quantized());
    out.push(half_between());
    out
}

fn cast(op: &str, from: Dtype, to: Dtype, (low, high): (f64, f64), shape: &[usize]) -> Case {
    let mut p = Program::new();
    let x = p.input_within(from, shape, low, high);
    let r = p.pointwise(to, &[&x], &format!("%s = arith.{op} %a : {from} to {to}"));
    let case = Case::new(format!("casts/{op}/{from}_{to}/{}", by(shape)), p, &[&r]).dispatches(1);
    if to.is_float() { case } else { case.within(0.0, 0.0) }
}

/// Bytes with a scale to floats and back.
fn quantized() -> Case {
    let mut p = Program::new();
    let x = p.input_within(I8, &[9, 50], -50.0, 50.0);
    let f = p.pointwise(
        Dtype::F32,
        &[&x],
        "%f = arith.sitofp %a : i8 to f32; %k = arith.constant 0.5 : f32; %s = arith.mulf %f, %k : f32",
    );
    let r = p.pointwise(
        I8,
        &[&f],
        "%k = arith.constant 3.0 : f32; %m = arith.mulf %a, %k : f32; %s = arith.fptosi %m : f32 to i8",
    );
    Case::new("casts/quantized", p, &[&r]).dispatches(1).within(0.0, 0.0)
}

/// Halves in memory, singles in registers.
fn half_between() -> Case {
    let mut p = Program::new();
    let (x, y) = (p.input(Dtype::F16, &[11, 21]), p.input(Dtype::F16, &[11, 21]));
    let body = "%x = arith.extf %a : f16 to f32; %y = arith.extf %b : f16 to f32; %m = arith.mulf %x, %y : f32; \
                %t = math.tanh %m : f32; %s = arith.truncf %t : f32 to f16";
    let r = p.pointwise(Dtype::F16, &[&x, &y], body);
    Case::new("casts/half_between", p, &[&r]).dispatches(1)
}
