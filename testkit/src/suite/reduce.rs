//! Reductions: every kind along rows, columns, the middle and all dimensions, with producers and consumers.

use super::case::{Case, by};
use crate::host_tensor::Dtype;
use crate::text::{Program, Value};
use monopour_ir::ops;

/// Name, op, neutral element.
type Kind = (&'static str, &'static str, &'static str);

const FLOAT: [Kind; 4] = [
    ("sum", ops::arith::ADDF, "0.0"),
    ("product", ops::arith::MULF, "1.0"),
    ("maximum", ops::arith::MAXIMUMF, "0xFF800000"),
    ("minimum", ops::arith::MINIMUMF, "0x7F800000"),
];
const INT: [Kind; 5] = [
    ("sum", ops::arith::ADDI, "0"),
    ("maximum", ops::arith::MAXSI, "-2147483648"),
    ("minimum", ops::arith::MINSI, "2147483647"),
    ("and", ops::arith::ANDI, "-1"),
    ("or", ops::arith::ORI, "0"),
];
const BOOL: [Kind; 3] = [("and", ops::arith::ANDI, "1"), ("or", ops::arith::ORI, "0"), ("xor", ops::arith::XORI, "0")];

/// Name, loops, map of the result, shape.
type Axis = (&'static str, &'static str, &'static str, &'static [usize]);

const AXES: &[Axis] = &[
    ("row", "i j!", "i", &[7, 65]),
    ("row", "i j!", "i", &[64, 128]),
    ("row", "i j!", "i", &[1, 1000]),
    ("row", "i j!", "i", &[100, 1]),
    ("row", "i j!", "i", &[3, 4099]),
    ("column", "i! j", "j", &[65, 7]),
    ("column", "i! j", "j", &[100, 64]),
    ("column", "i! j", "j", &[1000, 1]),
    ("column", "i! j", "j", &[1, 17]),
    ("all", "i! j!", "", &[9, 11]),
    ("all", "i! j!", "", &[64, 100]),
    ("all", "i! j!", "", &[1, 1]),
    ("vector", "i!", "", &[1000]),
    ("vector", "i!", "", &[7]),
    ("middle", "i j! k", "i, k", &[3, 5, 7]),
    ("middle", "i j! k", "i, k", &[4, 33, 17]),
    ("last_two", "i j! k!", "i", &[5, 7, 9]),
    ("first_two", "i! j! k", "k", &[5, 7, 9]),
    ("outer", "i! j k", "j, k", &[17, 3, 10]),
    ("last_two", "i j! k!", "i", &[70, 7, 7]),
    ("last_two", "i j! k!", "i", &[5, 3, 3]),
];

pub(super) fn cases() -> Vec<Case> {
    let mut out = vec![];
    for axis in AXES {
        out.push(case(&FLOAT[0], axis, Dtype::F32));
        out.push(case(&FLOAT[2], axis, Dtype::F32));
    }
    for (i, axis) in AXES.iter().enumerate().filter(|(i, _)| i % 3 == 0) {
        out.push(case(&FLOAT[1], axis, Dtype::F32));
        out.push(case(&FLOAT[3], axis, Dtype::F32));
        out.push(case(&INT[i / 3 % INT.len()], axis, Dtype::Int(32)));
        out.push(case(&BOOL[i / 3 % BOOL.len()], axis, Dtype::Int(1)));
    }
    for kind in &INT {
        out.push(case(kind, &AXES[0], Dtype::Int(32)));
        out.push(case(kind, &AXES[9], Dtype::Int(32)));
    }
    for axis in [&AXES[0], &AXES[5], &AXES[9]] {
        out.push(case(&FLOAT[0], axis, Dtype::F16));
        out.push(case(&("maximum", ops::arith::MAXIMUMF, "0xFC00"), axis, Dtype::F16));
        out.push(case(&("sum", ops::arith::ADDI, "0"), axis, Dtype::Int(8)));
    }
    out.dedup_by(|a, b| a.name == b.name);
    let mut seen = std::collections::BTreeSet::new();
    out.retain(|c| seen.insert(c.name.clone()));
    out.extend([mean(), variance(), norm(&[9, 33]), norm(&[17, 1000]), argmax(&[7, 33]), argmax(&[1, 257])]);
    out.extend([named(ops::arith::ADDF, &[1]), named(ops::arith::MAXIMUMF, &[0]), named(ops::arith::ADDF, &[0, 1])]);
    out.extend([
        with_producer(),
        with_consumer(),
        two_at_once(),
        of_a_transpose(),
        into_argument(),
        absolute_maximum(),
    ]);
    out
}

fn reduce(p: &mut Program, x: &Value, (loops, map): (&str, &str), dtype: Dtype, op: &str, init: &str) -> Value {
    let dims: Vec<_> = loops.split(' ').map(|d| d.trim_end_matches('!')).collect();
    let shape: Vec<_> = loops.split(' ').zip(x.shape()).filter(|(l, _)| !l.ends_with('!')).map(|(_, s)| *s).collect();
    let init = p.fill(dtype, &shape, init);
    p.generic(loops, &[(x, &dims.join(", "))], (&init, map), &format!("%s = {op} %o, %a : {dtype}"))
}

fn case(kind: &Kind, axis: &Axis, dtype: Dtype) -> Case {
    let ((kind, op, init), (name, loops, map, shape)) = (*kind, *axis);
    let mut p = Program::new();
    // A product stays small when its factors are around one.
    let x = if kind == "product" { p.input_within(dtype, shape, 0.97, 1.03) } else { p.input(dtype, shape) };
    let r = reduce(&mut p, &x, (loops, map), dtype, op, init);
    let case = Case::new(format!("reduce/{kind}_{name}/{dtype}/{}", by(shape)), p, &[&r]);
    let case = match dtype {
        Dtype::F16 => case.within(3e-2, 1e-2),
        Dtype::F32 if kind == "sum" || kind == "product" => case.within(1e-4, 1e-4),
        _ => case.within(0.0, 0.0),
    };
    // A long reduction takes several dispatches.
    if shape.iter().product::<usize>() <= 4096 { case.dispatches(1) } else { case }
}

fn mean() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[17, 100]);
    let sum = reduce(&mut p, &x, ("i j!", "i"), Dtype::F32, ops::arith::ADDF, "0.0");
    let r = p.pointwise(Dtype::F32, &[&sum], "%n = arith.constant 100.0 : f32; %s = arith.divf %a, %n : f32");
    Case::new("reduce/mean", p, &[&r]).dispatches(1)
}

fn variance() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[9, 65]);
    let sum = reduce(&mut p, &x, ("i j!", "i"), Dtype::F32, ops::arith::ADDF, "0.0");
    let e = p.empty(Dtype::F32, &[9, 65]);
    let body = "%n = arith.constant 65.0 : f32; %m = arith.divf %b, %n : f32; %d = arith.subf %a, %m : f32; %s = arith.mulf %d, %d : f32";
    let squares = p.generic("i j", &[(&x, "i, j"), (&sum, "i")], (&e, "i, j"), body);
    let r = reduce(&mut p, &squares, ("i j!", "i"), Dtype::F32, ops::arith::ADDF, "0.0");
    Case::new("reduce/variance", p, &[&r]).dispatches(1)
}

/// The square root of the sum of squares of each row.
fn norm(shape: &[usize]) -> Case {
    let mut p = Program::new();
    let x = p.f32(shape);
    let init = p.zeros(Dtype::F32, &shape[..1]);
    let squares =
        p.generic("i j!", &[(&x, "i, j")], (&init, "i"), "%m = arith.mulf %a, %a : f32; %s = arith.addf %o, %m : f32");
    let r = p.pointwise(Dtype::F32, &[&squares], "%s = math.sqrt %a : f32");
    Case::new(format!("reduce/norm/{}", by(shape)), p, &[&r]).dispatches(1)
}

/// Two results: the maximum of each row and its first index.
fn argmax(shape: &[usize]) -> Case {
    let mut p = Program::new();
    let x = p.f32(shape);
    let best = p.fill(Dtype::F32, &shape[..1], "0xFF800000");
    let at = p.fill(Dtype::Int(32), &shape[..1], "0");
    let body = "%j = linalg.index 1 : index; %n = arith.index_cast %j : index to i32; %c = arith.cmpf ogt, %a, %o : f32; \
                %s = arith.select %c, %a, %o : f32; %t = arith.select %c, %n, %oo : i32";
    let r = p.generics("i j!", &[(&x, "i, j")], &[(&best, "i"), (&at, "i")], body, "%s, %t");
    Case::new(format!("reduce/argmax/{}", by(shape)), p, &[&r[0], &r[1]])
}

fn named(op: &str, dims: &[usize]) -> Case {
    let mut p = Program::new();
    let x = p.f32(&[17, 33]);
    let left: Vec<_> = [17, 33].into_iter().enumerate().filter(|(d, _)| !dims.contains(d)).map(|(_, s)| s).collect();
    let init = p.fill(Dtype::F32, &left, if op == ops::arith::ADDF { "0.0" } else { "0xFF800000" });
    let tail = format!("dimensions = [{}]", crate::text::list(dims));
    let r = p.named_untyped(&format!("linalg.reduce {{ {op} }}"), &[&x], &init, &tail);
    Case::new(format!("reduce/named/{}_{}", &op[6..], by(dims)), p, &[&r]).dispatches(1)
}

fn with_producer() -> Case {
    let mut p = Program::new();
    let (x, y) = (p.f32(&[33, 65]), p.f32(&[33, 65]));
    let d = p.pointwise(Dtype::F32, &[&x, &y], "%d = arith.subf %a, %b : f32; %s = math.exp %d : f32");
    let r = reduce(&mut p, &d, ("i j!", "i"), Dtype::F32, ops::arith::ADDF, "0.0");
    Case::new("reduce/with_producer", p, &[&r]).dispatches(1).within(1e-4, 1e-5)
}

/// The sum of each row is subtracted from the row.
fn with_consumer() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[19, 70]);
    let sum = reduce(&mut p, &x, ("i j!", "i"), Dtype::F32, ops::arith::ADDF, "0.0");
    let e = p.empty(Dtype::F32, &[19, 70]);
    let r = p.generic("i j", &[(&x, "i, j"), (&sum, "i")], (&e, "i, j"), "%s = arith.subf %a, %b : f32");
    Case::new("reduce/with_consumer", p, &[&r]).dispatches(1)
}

fn two_at_once() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[12, 45]);
    let (sum, top) = (p.zeros(Dtype::F32, &[12]), p.fill(Dtype::F32, &[12], "0xFF800000"));
    let body = "%s = arith.addf %o, %a : f32; %t = arith.maximumf %oo, %a : f32";
    let r = p.generics("i j!", &[(&x, "i, j")], &[(&sum, "i"), (&top, "i")], body, "%s, %t");
    Case::new("reduce/two_at_once", p, &[&r[0], &r[1]])
}

fn of_a_transpose() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[21, 50]);
    let e = p.empty(Dtype::F32, &[50, 21]);
    let t = p.named_untyped(ops::linalg::TRANSPOSE, &[&x], &e, "permutation = [1, 0]");
    let r = reduce(&mut p, &t, ("i j!", "i"), Dtype::F32, ops::arith::ADDF, "0.0");
    Case::new("reduce/of_a_transpose", p, &[&r]).dispatches(1)
}

/// The initial value is an argument of the caller, so it is copied.
fn into_argument() -> Case {
    let mut p = Program::new();
    let (x, y) = (p.f32(&[14, 30]), p.f32(&[14]));
    let r = p.generic("i j!", &[(&x, "i, j")], (&y, "i"), "%s = arith.addf %o, %a : f32");
    Case::new("reduce/into_argument", p, &[&r]).may_copy()
}

fn absolute_maximum() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[50, 20]);
    let init = p.zeros(Dtype::F32, &[]);
    let body = "%m = math.absf %a : f32; %s = arith.maximumf %o, %m : f32";
    let r = p.generic("i! j!", &[(&x, "i, j")], (&init, ""), body);
    Case::new("reduce/absolute_maximum", p, &[&r])
}
