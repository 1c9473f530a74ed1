//! Row groups: softmax, layer norm and similar, one kernel each.

use super::case::{Case, by};
use crate::host_tensor::Dtype;
use crate::text::{Program, Value};

pub(super) fn cases() -> Vec<Case> {
    let mut out = vec![];
    let shapes: [&[usize]; 11] = [
        &[1, 1],
        &[1, 7],
        &[7, 1],
        &[17, 65],
        &[64, 100],
        &[3, 5, 7],
        &[2, 3, 33],
        &[5, 1000],
        &[4, 1025],
        &[100, 64],
        &[2, 2, 3, 17],
    ];
    for shape in shapes {
        out.push(of("softmax", shape, softmax));
        out.push(of("log_softmax", shape, log_softmax));
        out.push(of("layer_norm", shape, |p, x| {
            let n = x.shape()[x.shape().len() - 1];
            let (scale, shift) = (p.f32(&[n]), p.f32(&[n]));
            layer_norm(p, x, &scale, &shift, "1.0e-2")
        }));
        out.push(of("rms_norm", shape, rms_norm));
    }
    for shape in [&[7, 33][..], &[3, 100], &[2, 5, 17], &[1, 257]] {
        out.push(of("log_sum_exp", shape, |p, x| log_sum_exp(p, x).0));
        out.push(of("scaled_softmax", shape, |p, x| {
            let scaled = p.pointwise(Dtype::F32, &[x], "%k = arith.constant 0.125 : f32; %s = arith.mulf %a, %k : f32");
            softmax(p, &scaled)
        }));
        out.push(of("normalized", shape, normalized));
        out.push(of("centered_relu", shape, centered_relu));
    }
    for shape in [&[7, 33][..], &[64, 64], &[3, 1000]] {
        out.push(masked(shape));
        out.push(residual_norm(shape));
        out.push(named(shape, shape.len() - 1));
    }
    out.push(named(&[33, 7], 0).within(1e-5, 1e-5));
    out.push(column_softmax());
    out.push(half());
    out.push(double());
    out
}

fn of(name: &str, shape: &[usize], make: impl Fn(&mut Program, &Value) -> Value) -> Case {
    let mut p = Program::new();
    let x = p.input_within(Dtype::F32, shape, -3.0, 3.0);
    let r = make(&mut p, &x);
    Case::new(format!("rows/{name}/{}", by(shape)), p, &[&r]).dispatches(1)
}

/// Rows divided by their lengths.
fn normalized(p: &mut Program, x: &Value) -> Value {
    let (loops, full, row) = loops(x.shape().len());
    let sum = row_reduce(p, x, "%m = arith.mulf %a, %a : f32; %s = arith.addf %o, %m : f32", "0.0");
    let e = p.empty(Dtype::F32, x.shape());
    let body = "%q = math.sqrt %b : f32; %s = arith.divf %a, %q : f32";
    p.generic(&loops, &[(x, &full), (&sum, &row)], (&e, &full), body)
}

/// The difference to the mean of the row, at least 0.
fn centered_relu(p: &mut Program, x: &Value) -> Value {
    let (loops, full, row) = loops(x.shape().len());
    let sum = row_reduce(p, x, "%s = arith.addf %o, %a : f32", "0.0");
    let e = p.empty(Dtype::F32, x.shape());
    let n = x.shape()[x.shape().len() - 1];
    let body = format!(
        "%n = arith.constant {n}.0 : f32; %m = arith.divf %b, %n : f32; %d = arith.subf %a, %m : f32; \
         %z = arith.constant 0.0 : f32; %s = arith.maximumf %d, %z : f32"
    );
    p.generic(&loops, &[(x, &full), (&sum, &row)], (&e, &full), &body)
}

/// Loops over the dimensions, their names, and the names without the last.
fn loops(rank: usize) -> (String, String, String) {
    let dims: Vec<_> = (0..rank).map(|d| format!("d{d}")).collect();
    (dims.join(" "), dims.join(", "), dims[..rank - 1].join(", "))
}

/// A reduction along the last dimension.
pub(super) fn row_reduce(p: &mut Program, x: &Value, body: &str, init: &str) -> Value {
    let (all, full, row) = loops(x.shape().len());
    let init = p.fill(x.dtype, &x.shape()[..x.shape().len() - 1], init);
    p.generic(&format!("{all}!"), &[(x, &full)], (&init, &row), body)
}

/// `exp(x - max)`, and its sum, along the last dimension.
fn exponentials(p: &mut Program, x: &Value) -> (Value, Value) {
    let (all, full, row) = loops(x.shape().len());
    let top = row_reduce(
        p,
        x,
        &format!("%s = arith.maximumf %a, %o : {}", x.dtype),
        match x.dtype {
            Dtype::F16 => "0xFC00",
            Dtype::F64 => "0xFFF0000000000000",
            _ => "0xFF800000",
        },
    );
    let e = p.empty(x.dtype, x.shape());
    let body = "%d = arith.subf %a, %b : f32; %s = math.exp %d : f32".replace("f32", &x.dtype.to_string());
    let exp = p.generic(&all, &[(x, &full), (&top, &row)], (&e, &full), &body);
    let sum = row_reduce(p, &exp, &format!("%s = arith.addf %a, %o : {}", x.dtype), "0.0");
    (exp, sum)
}

/// Softmax along the last dimension.
pub fn softmax(p: &mut Program, x: &Value) -> Value {
    let (all, full, row) = loops(x.shape().len());
    let (exp, sum) = exponentials(p, x);
    let e = p.empty(x.dtype, x.shape());
    p.generic(&all, &[(&exp, &full), (&sum, &row)], (&e, &full), &format!("%s = arith.divf %a, %b : {}", x.dtype))
}

/// The logarithm of the sum of exponentials, and the maximum that was subtracted.
fn log_sum_exp(p: &mut Program, x: &Value) -> (Value, Value) {
    let (all, full, row) = loops(x.shape().len());
    let top = row_reduce(p, x, "%s = arith.maximumf %a, %o : f32", "0xFF800000");
    let e = p.empty(Dtype::F32, x.shape());
    let body = "%d = arith.subf %a, %b : f32; %s = math.exp %d : f32";
    let exp = p.generic(&all, &[(x, &full), (&top, &row)], (&e, &full), body);
    let sum = row_reduce(p, &exp, "%s = arith.addf %a, %o : f32", "0.0");
    let log = p.pointwise(Dtype::F32, &[&sum, &top], "%l = math.log %a : f32; %s = arith.addf %l, %b : f32");
    (log, top)
}

fn log_softmax(p: &mut Program, x: &Value) -> Value {
    let (all, full, row) = loops(x.shape().len());
    let (log, _) = log_sum_exp(p, x);
    let e = p.empty(Dtype::F32, x.shape());
    p.generic(&all, &[(x, &full), (&log, &row)], (&e, &full), "%s = arith.subf %a, %b : f32")
}

/// Mean 0 and variance 1 along the last dimension, then a scale and a shift.
pub fn layer_norm(p: &mut Program, x: &Value, scale: &Value, shift: &Value, epsilon: &str) -> Value {
    let (all, full, row) = loops(x.shape().len());
    let n = x.shape()[x.shape().len() - 1];
    let last = format!("d{}", x.shape().len() - 1);
    let sum = row_reduce(p, x, "%s = arith.addf %a, %o : f32", "0.0");
    let e = p.empty(Dtype::F32, x.shape());
    let mean = format!("%n = arith.constant {n}.0 : f32; %m = arith.divf %b, %n : f32");
    let centered =
        p.generic(&all, &[(x, &full), (&sum, &row)], (&e, &full), &format!("{mean}; %s = arith.subf %a, %m : f32"));
    let squares = row_reduce(p, &centered, "%m = arith.mulf %a, %a : f32; %s = arith.addf %m, %o : f32", "0.0");
    let body = format!(
        "{mean}; %e = arith.constant {epsilon} : f32; %v = arith.addf %m, %e : f32; %q = math.rsqrt %v : f32; \
         %x = arith.mulf %a, %q : f32; %y = arith.mulf %x, %c : f32; %s = arith.addf %y, %d : f32"
    );
    let ins = [(&centered, full.as_str()), (&squares, row.as_str()), (scale, last.as_str()), (shift, last.as_str())];
    p.generic(&all, &ins, (&e, &full), &body)
}

fn rms_norm(p: &mut Program, x: &Value) -> Value {
    let (all, full, row) = loops(x.shape().len());
    let n = x.shape()[x.shape().len() - 1];
    let scale = p.f32(&[n]);
    let last = format!("d{}", x.shape().len() - 1);
    let squares = row_reduce(p, x, "%m = arith.mulf %a, %a : f32; %s = arith.addf %m, %o : f32", "0.0");
    let e = p.empty(Dtype::F32, x.shape());
    let body = format!(
        "%n = arith.constant {n}.0 : f32; %m = arith.divf %b, %n : f32; %e = arith.constant 1.0e-2 : f32; \
         %v = arith.addf %m, %e : f32; %q = math.rsqrt %v : f32; %y = arith.mulf %a, %q : f32; %s = arith.mulf %y, %c : f32"
    );
    p.generic(&all, &[(x, &full), (&squares, &row), (&scale, &last)], (&e, &full), &body)
}

/// Elements right of the diagonal are masked before the softmax.
fn masked(shape: &[usize]) -> Case {
    let mut p = Program::new();
    let x = p.f32(shape);
    let body = "%i = linalg.index 0 : index; %j = linalg.index 1 : index; %c = arith.cmpi ule, %j, %i : index; \
                %n = arith.constant -1.0e9 : f32; %s = arith.select %c, %a, %n : f32";
    let m = p.pointwise(Dtype::F32, &[&x], body);
    let r = softmax(&mut p, &m);
    Case::new(format!("rows/masked_softmax/{}", by(shape)), p, &[&r]).dispatches(1)
}

/// A residual is added before the norm, and both are results.
fn residual_norm(shape: &[usize]) -> Case {
    let mut p = Program::new();
    let (x, y) = (p.f32(shape), p.f32(shape));
    let sum = p.pointwise(Dtype::F32, &[&x, &y], "%s = arith.addf %a, %b : f32");
    let r = rms_norm(&mut p, &sum);
    Case::new(format!("rows/residual_norm/{}", by(shape)), p, &[&sum, &r])
}

fn named(shape: &[usize], dimension: usize) -> Case {
    let mut p = Program::new();
    let x = p.f32(shape);
    let e = p.empty(Dtype::F32, shape);
    let r = p.named(&format!("linalg.softmax dimension({dimension})"), &[&x], &e);
    Case::new(format!("rows/linalg_softmax_{dimension}/{}", by(shape)), p, &[&r])
}

fn column_softmax() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[40, 9]);
    let init = p.fill(Dtype::F32, &[9], "0xFF800000");
    let top = p.generic("i! j", &[(&x, "i, j")], (&init, "j"), "%s = arith.maximumf %a, %o : f32");
    let e = p.empty(Dtype::F32, &[40, 9]);
    let body = "%d = arith.subf %a, %b : f32; %s = math.exp %d : f32";
    let exp = p.generic("i j", &[(&x, "i, j"), (&top, "j")], (&e, "i, j"), body);
    let zero = p.zeros(Dtype::F32, &[9]);
    let sum = p.generic("i! j", &[(&exp, "i, j")], (&zero, "j"), "%s = arith.addf %a, %o : f32");
    let r = p.generic("i j", &[(&exp, "i, j"), (&sum, "j")], (&e, "i, j"), "%s = arith.divf %a, %b : f32");
    Case::new("rows/column_softmax", p, &[&r])
}

fn half() -> Case {
    let mut p = Program::new();
    let x = p.input(Dtype::F16, &[9, 40]);
    let r = softmax(&mut p, &x);
    Case::new("rows/softmax_f16", p, &[&r]).dispatches(1)
}

fn double() -> Case {
    let mut p = Program::new();
    let x = p.input_within(Dtype::F64, &[9, 40], -30.0, 30.0);
    let r = softmax(&mut p, &x);
    Case::new("rows/softmax_f64", p, &[&r]).dispatches(1).within(1e-14, 1e-14)
}
