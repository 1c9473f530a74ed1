//! Contractions beyond the plain product: batched, transposed, with vectors, of other types, in chains, by index notation.

use super::case::{Case, by};
use crate::host_tensor::Dtype;
use crate::text::{Program, Value};
use monopour_ir::ops;

pub(super) fn cases() -> Vec<Case> {
    let mut out = batches();
    out.extend(named_ops());
    for (dtype, acc) in [
        (Dtype::Int(32), Dtype::Int(32)),
        (Dtype::Int(8), Dtype::Int(32)),
        (Dtype::F16, Dtype::F16),
        (Dtype::F16, Dtype::F32),
    ] {
        out.push(typed(dtype, acc, 17, 33, 10));
        out.push(typed(dtype, acc, 64, 64, 32));
    }
    out.extend(NOTATIONS.map(einsum));
    out.extend([
        chain(),
        square(),
        gram(),
        accumulate(),
        prologue(),
        two_heads(),
        product_of_sums(),
        matmul_then_row(),
    ]);
    out
}

/// By index notation.
const NOTATIONS: [&str; 10] = [
    "i, j; j, k -> k, i",
    "a, b, c; c, d -> a, b, d",
    "a, b, c; a, d, c -> a, b, d",
    "a, c, b; a, c, d -> a, b, d",
    "b, h, s, d; b, h, t, d -> b, h, s, t",
    "b, s, h, d; b, t, h, d -> b, h, s, t",
    "i, j; i, j -> ",
    "i, j; i, j -> i",
    "i, j; k, j -> k, i",
    "a, b; b, c -> b, a, c",
];

fn batches() -> Vec<Case> {
    let mut out = vec![];
    for (b, m, n, k) in [
        (1, 7, 9, 5),
        (3, 17, 33, 10),
        (2, 64, 64, 64),
        (5, 1, 65, 17),
        (7, 13, 1, 3),
        (12, 32, 32, 16),
        (4, 100, 17, 7),
    ] {
        out.push(batched("plain", [b, m, n, k], "b, m, k", "b, k, n"));
        out.push(batched("transposed_b", [b, m, n, k], "b, m, k", "b, n, k"));
        out.push(batched("transposed_a", [b, m, n, k], "b, k, m", "b, k, n"));
    }
    out.push(batched("shared_b", [3, 10, 20, 30], "b, m, k", "k, n"));
    out.push(batched("shared_a", [3, 10, 20, 30], "m, k", "b, k, n"));
    out
}

fn named_ops() -> Vec<Case> {
    let mut out = vec![];
    for (m, k) in [(1, 1), (7, 65), (64, 128), (100, 17), (1000, 10), (3, 1000)] {
        out.push(named("matvec", &[&[m, k], &[k]], &[m], m * k));
        out.push(named("vecmat", &[&[k], &[k, m]], &[m], m * k));
    }
    for k in [1, 7, 100, 1000] {
        out.push(named("dot", &[&[k], &[k]], &[], k));
    }
    out.push(named("batch_matmul", &[&[3, 17, 10], &[3, 10, 33]], &[3, 17, 33], 3 * 17 * 33 * 10));
    out.push(named("batch_matvec", &[&[3, 17, 10], &[3, 10]], &[3, 17], 3 * 170));
    out.push(named("batch_vecmat", &[&[3, 10], &[3, 10, 17]], &[3, 17], 3 * 170));
    out.push(named("batch_reduce_matmul", &[&[3, 17, 10], &[3, 10, 33]], &[17, 33], 3 * 17 * 33 * 10));
    out.push(named("mmt4d", &[&[2, 3, 4, 5], &[7, 3, 8, 5]], &[2, 7, 4, 8], 2 * 3 * 4 * 5 * 7 * 8));
    out
}

fn batched(name: &str, [b, m, n, k]: [usize; 4], x_map: &str, y_map: &str) -> Case {
    let size = |d: &str| match d {
        "b" => b,
        "m" => m,
        "n" => n,
        _ => k,
    };
    let shape = |map: &str| map.split(", ").map(size).collect::<Vec<_>>();
    let mut p = Program::new();
    let (x, y) = (p.f32(&shape(x_map)), p.f32(&shape(y_map)));
    let init = p.zeros(Dtype::F32, &[b, m, n]);
    let r = p.generic("b m n k!", &[(&x, x_map), (&y, y_map)], (&init, "b, m, n"), MULTIPLY_ADD);
    Case::new(format!("contract/batched_{name}/{b}x{m}x{n}x{k}"), p, &[&r]).dispatches(1)
}

/// The body of a contraction in f32.
pub(super) const MULTIPLY_ADD: &str = "%m = arith.mulf %a, %b : f32; %s = arith.addf %o, %m : f32";

fn named(op: &str, ins: &[&[usize]], out: &[usize], work: usize) -> Case {
    let mut p = Program::new();
    let ins: Vec<_> = ins.iter().map(|s| p.f32(s)).collect();
    let init = p.zeros(Dtype::F32, out);
    p.add_work(work);
    let r = p.named(&format!("linalg.{op}"), &ins.iter().collect::<Vec<_>>(), &init);
    let shapes: Vec<_> = ins.iter().map(|v| by(v.shape())).collect();
    Case::new(format!("contract/{op}/{}", shapes.join("_")), p, &[&r]).dispatches(1).within(2e-5, 2e-5)
}

fn typed(dtype: Dtype, acc: Dtype, m: usize, n: usize, k: usize) -> Case {
    let mut p = Program::new();
    let (x, y) = (p.input(dtype, &[m, k]), p.input(dtype, &[k, n]));
    let init = p.zeros(acc, &[m, n]);
    p.add_work(m * n * k);
    let r = p.named(ops::linalg::MATMUL, &[&x, &y], &init);
    let case = Case::new(format!("contract/matmul/{dtype}_{acc}/{m}x{n}x{k}"), p, &[&r]).dispatches(1);
    match acc {
        Dtype::F16 => case.within(3e-2, 1e-2),
        Dtype::F32 => case.within(1e-4, 1e-4),
        _ => case.within(0.0, 0.0),
    }
}

/// `x; y -> r`: dimensions that are missing on the right are summed over.
fn einsum(notation: &str) -> Case {
    let (ins, result) = notation.split_once(" -> ").expect("an arrow");
    let (x_map, y_map) = ins.split_once("; ").expect("two operands");
    let mut dims: Vec<&str> = vec![];
    for d in x_map.split(", ").chain(y_map.split(", ")) {
        if !dims.contains(&d) {
            dims.push(d);
        }
    }
    let sizes = [6, 9, 17, 5];
    let shape = |map: &str| {
        let at = |d: &str| dims.iter().position(|x| *x == d).map(|i| sizes[i % sizes.len()]);
        map.split(", ").filter_map(at).collect::<Vec<_>>()
    };
    let in_result = |d: &&str| result.split(", ").any(|r| r == *d);
    // Parallel dimensions first, in the order of the result.
    let mut loops: Vec<_> = result.split(", ").filter(|d| !d.is_empty()).map(str::to_owned).collect();
    loops.extend(dims.iter().filter(|d| !in_result(d)).map(|d| format!("{d}!")));
    let mut p = Program::new();
    let (x, y) = (p.f32(&shape(x_map)), p.f32(&shape(y_map)));
    let init = p.zeros(Dtype::F32, &shape(result));
    let r = p.generic(&loops.join(" "), &[(&x, x_map), (&y, y_map)], (&init, result), MULTIPLY_ADD);
    let name: String = notation.chars().filter(|c| c.is_alphabetic() || ";>".contains(*c)).collect();
    Case::new(format!("contract/einsum/{}", name.replace(';', "_").replace('>', "_to_")), p, &[&r])
        .dispatches(1)
        .within(2e-5, 2e-5)
}

/// A product of matrices.
pub(super) fn product(p: &mut Program, x: &Value, y: &Value) -> Value {
    let init = p.zeros(Dtype::F32, &[x.shape()[0], y.shape()[1]]);
    p.add_work(x.len() * y.shape()[1]);
    p.named(ops::linalg::MATMUL, &[x, y], &init)
}

fn chain() -> Case {
    let mut p = Program::new();
    let (x, y, z) = (p.f32(&[17, 20]), p.f32(&[20, 33]), p.f32(&[33, 9]));
    let xy = product(&mut p, &x, &y);
    let r = product(&mut p, &xy, &z);
    Case::new("contract/chain", p, &[&r]).dispatches(2).within(1e-4, 1e-4)
}

fn square() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[33, 33]);
    let r = product(&mut p, &x, &x);
    Case::new("contract/square", p, &[&r]).dispatches(1)
}

/// A matrix by its own transpose.
fn gram() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[19, 40]);
    let init = p.zeros(Dtype::F32, &[19, 19]);
    let r = p.generic("m n k!", &[(&x, "m, k"), (&x, "n, k")], (&init, "m, n"), MULTIPLY_ADD);
    Case::new("contract/gram", p, &[&r]).dispatches(1)
}

/// The accumulator belongs to the caller.
fn accumulate() -> Case {
    let mut p = Program::new();
    let (x, y, z) = (p.f32(&[10, 20]), p.f32(&[20, 30]), p.f32(&[10, 30]));
    let r = p.named(ops::linalg::MATMUL, &[&x, &y], &z);
    Case::new("contract/accumulate", p, &[&r]).may_copy()
}

fn prologue() -> Case {
    let mut p = Program::new();
    let (x, y) = (p.f32(&[33, 40]), p.f32(&[40, 17]));
    let e = p.pointwise(Dtype::F32, &[&x], "%s = math.exp %a : f32");
    let r = product(&mut p, &e, &y);
    Case::new("contract/prologue", p, &[&r]).within(1e-4, 1e-4)
}

/// Two products of one operand.
fn two_heads() -> Case {
    let mut p = Program::new();
    let (x, y, z) = (p.f32(&[16, 33]), p.f32(&[33, 20]), p.f32(&[33, 20]));
    let (a, b) = (product(&mut p, &x, &y), product(&mut p, &x, &z));
    let r = p.pointwise(
        Dtype::F32,
        &[&a, &b],
        "%n = arith.negf %b : f32; %e = math.exp %n : f32; %u = arith.constant 1.0 : f32; \
        %d = arith.addf %e, %u : f32; %s = arith.divf %a, %d : f32",
    );
    Case::new("contract/gated", p, &[&r]).dispatches(2).on_gpus(1).within(1e-4, 1e-4)
}

fn product_of_sums() -> Case {
    let mut p = Program::new();
    let (x, y) = (p.f32(&[21, 13]), p.f32(&[13, 21]));
    let init = p.zeros(Dtype::F32, &[21, 21]);
    let body = "%d = arith.subf %a, %b : f32; %m = arith.mulf %d, %d : f32; %s = arith.addf %o, %m : f32";
    let r = p.generic("m n k!", &[(&x, "m, k"), (&y, "k, n")], (&init, "m, n"), body);
    Case::new("contract/squared_distances", p, &[&r]).dispatches(1)
}

fn matmul_then_row() -> Case {
    let mut p = Program::new();
    let (x, y) = (p.f32(&[12, 30]), p.f32(&[30, 45]));
    let xy = product(&mut p, &x, &y);
    let r = super::rows::softmax(&mut p, &xy);
    Case::new("contract/then_softmax", p, &[&r]).dispatches(2)
}
