//! Operands of lower rank than the result, and operands with permuted dimensions.

use super::case::{Case, by};
use crate::host_tensor::Dtype;
use crate::text::{Program, list};
use monopour_ir::ops;

const TYPES: [Dtype; 5] = [Dtype::F32, Dtype::F16, Dtype::Int(32), Dtype::Int(8), Dtype::Int(1)];

pub(super) fn cases() -> Vec<Case> {
    let mut out = vec![];
    // Maps of the second operand: rows, columns, one element, the middle of three.
    for (loops, map, shape) in [
        ("i j", "j", &[7, 65][..]),
        ("i j", "j", &[1, 100]),
        ("i j", "i", &[17, 64]),
        ("i j", "i", &[100, 1]),
        ("i j", "", &[7, 7]),
        ("i j k", "j", &[3, 5, 7]),
        ("i j k", "i, k", &[3, 5, 17]),
        ("i j k", "k", &[2, 7, 64]),
        ("i j k", "i", &[4, 3, 9]),
        ("i j k l", "j, l", &[2, 3, 5, 7]),
        ("i j k l", "k", &[2, 3, 17, 4]),
        ("i j k l m", "i, m", &[2, 3, 2, 5, 7]),
    ] {
        out.push(along(loops, map, shape));
    }
    out.push(outer(7, 100));
    out.push(outer(65, 17));
    out.push(outer(1, 1));
    for dtype in TYPES {
        out.push(splat(dtype));
        out.push(named_broadcast(dtype, &[7], &[3, 7], &[0]));
        out.push(transpose(dtype, &[7, 33], &[1, 0]));
    }
    out.push(named_broadcast(Dtype::F32, &[17], &[17, 5], &[1]));
    out.push(named_broadcast(Dtype::F32, &[3, 7], &[3, 5, 7], &[1]));
    out.push(named_broadcast(Dtype::F32, &[], &[9, 9], &[0, 1]));
    for (shape, permutation) in [
        (&[1, 7][..], &[1, 0][..]),
        (&[64, 128], &[1, 0]),
        (&[100, 17], &[1, 0]),
        (&[257, 63], &[1, 0]),
        (&[3, 5, 7], &[0, 2, 1]),
        (&[3, 5, 7], &[1, 0, 2]),
        (&[3, 5, 7], &[2, 1, 0]),
        (&[4, 17, 33], &[1, 2, 0]),
        (&[4, 17, 33], &[2, 0, 1]),
        (&[2, 3, 5, 7], &[0, 2, 1, 3]),
        (&[2, 3, 5, 7], &[3, 2, 1, 0]),
        (&[2, 9, 4, 8], &[0, 2, 3, 1]),
        (&[2, 3, 4, 5, 6], &[4, 0, 3, 1, 2]),
    ] {
        out.push(transpose(Dtype::F32, shape, permutation));
    }
    out.push(transposes_fold());
    out.push(transposed_sum());
    out.push(mapped(ops::arith::ADDF));
    out.push(mapped(ops::arith::MAXIMUMF));
    for name in ["add", "sub", "mul", "div", "max", "min"] {
        out.push(named_elementwise(name, 2));
    }
    for name in ["exp", "abs", "negf", "tanh", "square", "sqrt"] {
        out.push(named_elementwise(name, 1));
    }
    out
}

fn along(loops: &str, map: &str, shape: &[usize]) -> Case {
    let dims: Vec<_> = loops.split(' ').collect();
    let small: Vec<_> = map
        .split(", ")
        .filter(|d| !d.is_empty())
        .map(|d| shape[dims.iter().position(|x| *x == d).expect("a dimension")])
        .collect();
    let mut p = Program::new();
    let (x, y) = (p.f32(shape), p.f32(&small));
    let e = p.empty(Dtype::F32, shape);
    let full = dims.join(", ");
    let r = p.generic(loops, &[(&x, &full), (&y, map)], (&e, &full), "%s = arith.mulf %a, %b : f32");
    let name = if map.is_empty() { "one".to_owned() } else { map.replace(", ", "") };
    Case::new(format!("broadcast/{name}/{}", by(shape)), p, &[&r]).dispatches(1)
}

fn outer(m: usize, n: usize) -> Case {
    let mut p = Program::new();
    let (x, y) = (p.f32(&[m]), p.f32(&[n]));
    let e = p.empty(Dtype::F32, &[m, n]);
    let r = p.generic("i j", &[(&x, "i"), (&y, "j")], (&e, "i, j"), "%s = arith.subf %a, %b : f32");
    Case::new(format!("broadcast/outer/{m}x{n}"), p, &[&r]).dispatches(1)
}

/// A fill alone, which is the whole program.
fn splat(dtype: Dtype) -> Case {
    let mut p = Program::new();
    let r = p.fill(dtype, &[7, 19], if dtype.is_float() { "1.5" } else { "1" });
    Case::new(format!("broadcast/fill/{dtype}"), p, &[&r])
}

fn named_broadcast(dtype: Dtype, from: &[usize], to: &[usize], dims: &[usize]) -> Case {
    let mut p = Program::new();
    let x = p.input(dtype, from);
    let e = p.empty(dtype, to);
    let r = p.named_untyped(ops::linalg::BROADCAST, &[&x], &e, &format!("dimensions = [{}]", list(dims)));
    Case::new(format!("broadcast/named/{dtype}/{}_{}", by(from), by(to)), p, &[&r]).dispatches(1)
}

fn transpose(dtype: Dtype, shape: &[usize], permutation: &[usize]) -> Case {
    let mut p = Program::new();
    let x = p.input(dtype, shape);
    let to: Vec<_> = permutation.iter().map(|d| shape[*d]).collect();
    let e = p.empty(dtype, &to);
    let r = p.named_untyped(ops::linalg::TRANSPOSE, &[&x], &e, &format!("permutation = [{}]", list(permutation)));
    let order: String = permutation.iter().map(ToString::to_string).collect();
    Case::new(format!("broadcast/transpose/{dtype}/{}/{order}", by(shape)), p, &[&r]).dispatches(1).may_copy()
}

/// A transpose, a function, and the transpose back: one kernel.
fn transposes_fold() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[17, 33]);
    let e = p.empty(Dtype::F32, &[33, 17]);
    let t = p.named_untyped(ops::linalg::TRANSPOSE, &[&x], &e, "permutation = [1, 0]");
    let u = p.pointwise(Dtype::F32, &[&t], "%s = math.tanh %a : f32");
    let f = p.empty(Dtype::F32, &[17, 33]);
    let r = p.named_untyped(ops::linalg::TRANSPOSE, &[&u], &f, "permutation = [1, 0]");
    Case::new("broadcast/transposes_fold", p, &[&r]).dispatches(1)
}

fn transposed_sum() -> Case {
    let mut p = Program::new();
    let (x, y) = (p.f32(&[33, 33]), p.f32(&[33, 33]));
    let e = p.empty(Dtype::F32, &[33, 33]);
    let r = p.generic("i j", &[(&x, "i, j"), (&y, "j, i")], (&e, "i, j"), "%s = arith.addf %a, %b : f32");
    Case::new("broadcast/transposed_sum", p, &[&r]).dispatches(1)
}

fn mapped(op: &str) -> Case {
    let mut p = Program::new();
    let (x, y) = (p.f32(&[5, 21]), p.f32(&[5, 21]));
    let e = p.empty(Dtype::F32, &[5, 21]);
    let r = p.named_untyped(&format!("linalg.map {{ {op} }}"), &[&x, &y], &e, "");
    Case::new(format!("broadcast/map/{op}"), p, &[&r]).dispatches(1)
}

fn named_elementwise(name: &str, arity: usize) -> Case {
    let mut p = Program::new();
    let ins: Vec<_> = (0..arity).map(|_| p.input_within(Dtype::F32, &[9, 23], 0.5, 2.0)).collect();
    let e = p.empty(Dtype::F32, &[9, 23]);
    let r = p.named(&format!("linalg.{name}"), &ins.iter().collect::<Vec<_>>(), &e);
    Case::new(format!("broadcast/named_{name}"), p, &[&r]).dispatches(1)
}
