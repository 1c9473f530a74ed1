//! Rotary embeddings as PyTorch exports them, and other tensors put together of two halves, for pointwise ops: one dispatch,
//! and no half is copied.

use super::attention::{scores, sums};
use super::case::{Case, by};
use super::slices::{extract, joined};
use crate::host_tensor::Dtype;
use crate::text::{Program, Value, tensor};
use monopour_ir::ops;

/// Shapes, and the dimension in which halves are turned.
const SHAPES: [(&[usize], usize); 7] =
    [(&[16], 0), (&[3, 32], 1), (&[5, 7, 6], 2), (&[6, 9], 0), (&[2, 10, 8], 1), (&[2, 3, 5, 128], 3), (&[33, 2], 1)];

pub(super) fn cases() -> Vec<Case> {
    let mut out = vec![];
    for (shape, dim) in SHAPES {
        out.push(rotated(Dtype::F32, shape, dim));
    }
    for dtype in [Dtype::F16, Dtype::Bf16, Dtype::Int(32)] {
        out.push(rotated(dtype, &[3, 4, 24], 2));
    }
    out.extend([[2, 17, 16], [3, 40, 64]].map(attention));
    out.extend([&[5, 3, 8][..], &[2, 2], &[1, 130]].map(interleaved));
    out.extend([transposed(), tables(), swapped(), turned_twice(), also_a_result(), unequal()]);
    out.extend([exchanged(), sliced(), rolled(), shifted_windows()]);
    out
}

/// The halves of a tensor along a dimension.
fn halves(p: &mut Program, x: &Value, dim: usize) -> [Value; 2] {
    let (mut sizes, ones) = (x.shape().to_vec(), vec![1; x.shape().len()]);
    sizes[dim] /= 2;
    [0, sizes[dim]].map(|at| {
        let mut offsets = vec![0; sizes.len()];
        offsets[dim] = at;
        extract(p, x, (&offsets, &sizes, &ones))
    })
}

/// `[-b, a]` of the halves `[a, b]`.
fn turned(p: &mut Program, x: &Value, dim: usize) -> Value {
    let [a, b] = halves(p, x, dim);
    let minus = match x.dtype {
        Dtype::Int(_) => format!("%z = arith.constant 0 : {0}; %s = arith.subi %z, %a : {0}", x.dtype),
        dtype => format!("%s = arith.negf %a : {dtype}"),
    };
    let b = p.pointwise(x.dtype, &[&b], &minus);
    joined(p, &[&b, &a], dim)
}

/// `x * cos + turned(x) * sin`.
fn embedded(p: &mut Program, x: &Value, [cos, sin]: [&Value; 2], dim: usize) -> Value {
    let turned = turned(p, x, dim);
    let (mul, add) = if matches!(x.dtype, Dtype::Int(_)) { ("muli", "addi") } else { ("mulf", "addf") };
    let times = format!("%s = arith.{mul} %a, %b : {}", x.dtype);
    let (straight, turned) = (p.pointwise(x.dtype, &[x, cos], &times), p.pointwise(x.dtype, &[&turned, sin], &times));
    p.pointwise(x.dtype, &[&straight, &turned], &format!("%s = arith.{add} %a, %b : {}", x.dtype))
}

fn rotated(dtype: Dtype, shape: &[usize], dim: usize) -> Case {
    let mut p = Program::new();
    let [x, cos, sin] = [(); 3].map(|()| p.input(dtype, shape));
    let r = embedded(&mut p, &x, [&cos, &sin], dim);
    Case::new(format!("rotated/{dtype}/{dim}/{}", by(shape)), p, &[&r]).dispatches(1)
}

/// Neighbours in pairs are turned: a dimension of two, which is there for that alone.
fn interleaved(shape: &[usize]) -> Case {
    let mut p = Program::new();
    let [x, cos, sin] = [(); 3].map(|()| p.f32(shape));
    let dim = shape.len() - 1;
    let pairs = [&shape[..dim], &[shape[dim] / 2, 2]].concat();
    let groups: Vec<String> = (0..dim).map(|d| format!("[{d}], ")).chain([format!("[{dim}, {}]", dim + 1)]).collect();
    let (groups, ty) = (groups.concat(), tensor(Dtype::F32, &pairs));
    let of = format!("tensor.expand_shape {} [{groups}] output_shape {pairs:?} : {} into {ty}", x.name, x.ty());
    let of = p.op(Dtype::F32, &pairs, &of);
    let turned = turned(&mut p, &of, dim + 1);
    let flat = format!("tensor.collapse_shape {} [{groups}] : {ty} into {}", turned.name, x.ty());
    let turned = p.op(Dtype::F32, shape, &flat);
    let r = p.pointwise(
        Dtype::F32,
        &[&x, &cos, &turned, &sin],
        "%m = arith.mulf %a, %b : f32; %n = arith.mulf %c, %d : f32; %s = arith.addf %m, %n : f32",
    );
    Case::new(format!("rotated/interleaved/{}", by(shape)), p, &[&r]).dispatches(1)
}

/// Halves of what was put together, put together the other way round: each is computed there.
fn exchanged() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[3, 20]);
    let [sin, cos] = ["sin", "cos"].map(|f| p.pointwise(Dtype::F32, &[&x], &format!("%s = math.{f} %a : f32")));
    let j = joined(&mut p, &[&sin, &cos], 1);
    let [a, b] = halves(&mut p, &j, 1);
    let r = joined(&mut p, &[&b, &a], 1);
    Case::new("rotated/exchanged", p, &[&r]).dispatches(2)
}

/// Slices of what was put together, within a part and across two.
fn sliced() -> Case {
    let mut p = Program::new();
    let [x, y] = [[3, 9], [4, 9]].map(|shape| p.f32(&shape));
    let [a, b] = [&x, &y].map(|x| p.pointwise(Dtype::F32, &[x], "%s = math.exp %a : f32"));
    let j = joined(&mut p, &[&a, &b], 0);
    let parts = [([1, 2], [2, 5]), ([4, 0], [3, 9]), ([2, 1], [3, 4])];
    let results = parts.map(|(at, sizes)| {
        let part = extract(&mut p, &j, (&at, &sizes, &[1, 1]));
        p.pointwise(Dtype::F32, &[&part], "%s = arith.negf %a : f32")
    });
    let every = extract(&mut p, &j, (&[0, 1], &[3, 4], &[1, 2]));
    let every = p.pointwise(Dtype::F32, &[&every], "%s = arith.negf %a : f32");
    let [r, s, t] = &results;
    Case::new("rotated/sliced", p, &[r, s, t, &every]).may_copy()
}

/// A tensor along a dimension from an element on, and what was before it behind.
fn roll(p: &mut Program, x: &Value, dim: usize, by: usize) -> Value {
    let (shape, ones) = (x.shape().to_vec(), vec![1; x.shape().len()]);
    let parts = [(by, shape[dim] - by), (0, by)].map(|(from, size)| {
        let (mut offsets, mut sizes) = (vec![0; shape.len()], shape.clone());
        (offsets[dim], sizes[dim]) = (from, size);
        extract(p, x, (&offsets, &sizes, &ones))
    });
    joined(p, &[&parts[0], &parts[1]], dim)
}

/// In two dimensions, and back in one of them.
fn rolled() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[3, 7, 10, 5]);
    let y = roll(&mut p, &x, 1, 3);
    let y = roll(&mut p, &y, 2, 6);
    let y = p.pointwise(Dtype::F32, &[&y, &x], "%s = arith.subf %a, %b : f32");
    let z = roll(&mut p, &y, 2, 4);
    let r = p.pointwise(Dtype::F32, &[&z, &x], "%s = arith.addf %a, %b : f32");
    Case::new("rotated/rolled", p, &[&r]).dispatches(2)
}

/// Windows of an image that is rolled in both dimensions, as rows of pixels: one dispatch.
fn shifted_windows() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[8, 12, 6]);
    let y = roll(&mut p, &x, 0, 2);
    let y = roll(&mut p, &y, 1, 2);
    let ty = tensor(Dtype::F32, &[2, 4, 3, 4, 6]);
    let text = format!(
        "tensor.expand_shape {} [[0, 1], [2, 3], [4]] output_shape [2, 4, 3, 4, 6] : {} into {ty}",
        y.name,
        y.ty()
    );
    let y = p.op(Dtype::F32, &[2, 4, 3, 4, 6], &text);
    let to = p.empty(Dtype::F32, &[2, 3, 4, 4, 6]);
    let r = p.generic("a b h w c", &[(&y, "a, h, b, w, c")], (&to, "a, b, h, w, c"), "%s = arith.negf %a : f32");
    Case::new("rotated/shifted_windows", p, &[&r]).dispatches(1)
}

/// Heads behind tokens become heads before tokens in the same dispatch.
fn transposed() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[7, 4, 16]);
    let [cos, sin] = [(); 2].map(|()| p.f32(&[4, 7, 16]));
    let to = p.empty(Dtype::F32, &[4, 7, 16]);
    let x = p.generic("h t d", &[(&x, "t, h, d")], (&to, "h, t, d"), "%s = arith.addf %a, %a : f32");
    let r = embedded(&mut p, &x, [&cos, &sin], 2);
    Case::new("rotated/transposed", p, &[&r])
}

/// Tables that are put together of one half twice.
fn tables() -> Case {
    let mut p = Program::new();
    let (x, angles) = (p.f32(&[3, 5, 16]), p.f32(&[3, 5, 8]));
    let both = joined(&mut p, &[&angles, &angles], 2);
    let cos = p.pointwise(Dtype::F32, &[&both], "%s = math.cos %a : f32");
    let r = p.pointwise(Dtype::F32, &[&x, &cos], "%s = arith.mulf %a, %b : f32");
    Case::new("rotated/tables", p, &[&r]).dispatches(1)
}

/// Halves that are exchanged, of rows.
fn swapped() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[12, 5]);
    let [a, b] = halves(&mut p, &x, 0);
    let j = joined(&mut p, &[&b, &a], 0);
    let r = p.pointwise(Dtype::F32, &[&j, &x], "%s = arith.subf %a, %b : f32");
    Case::new("rotated/swapped", p, &[&r]).dispatches(1)
}

/// In one dimension, and the result in another one.
fn turned_twice() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[6, 8]);
    let once = turned(&mut p, &x, 1);
    let once = p.pointwise(Dtype::F32, &[&once, &x], "%s = arith.addf %a, %b : f32");
    let twice = turned(&mut p, &once, 0);
    let r = p.pointwise(Dtype::F32, &[&twice, &once], "%s = arith.mulf %a, %b : f32");
    Case::new("rotated/twice", p, &[&r])
}

/// What is put together is a result, too, and stays in memory.
fn also_a_result() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[6, 8]);
    let j = turned(&mut p, &x, 1);
    let r = p.pointwise(Dtype::F32, &[&j, &x], "%s = arith.addf %a, %b : f32");
    Case::new("rotated/also_a_result", p, &[&j, &r]).may_copy()
}

/// Parts of different sizes stay as they are.
fn unequal() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[6, 8]);
    let a = extract(&mut p, &x, (&[0, 0], &[6, 3], &[1, 1]));
    let b = extract(&mut p, &x, (&[0, 3], &[6, 5], &[1, 1]));
    let j = joined(&mut p, &[&b, &a], 1);
    let r = p.pointwise(Dtype::F32, &[&j, &x], "%s = arith.addf %a, %b : f32");
    Case::new("rotated/unequal", p, &[&r]).may_copy()
}

/// Queries and keys that are turned by their places, and an attention: heads lie behind tokens.
fn attention([heads, tokens, size]: [usize; 3]) -> Case {
    let mut p = Program::new();
    let [q, k] = [(); 2].map(|()| p.f32(&[tokens, heads, size]));
    let (v, cos, sin) = (p.f32(&[heads, tokens, size]), p.f32(&[tokens, size]), p.f32(&[tokens, size]));
    let shape = [heads, tokens, size];
    let by_heads = |p: &mut Program, x: &Value, map: &str| {
        let to = p.empty(Dtype::F32, &shape);
        p.generic("h t d", &[(x, map)], (&to, "h, t, d"), "%s = arith.addf %a, %a : f32")
    };
    let [cos, sin] = [cos, sin].map(|table| by_heads(&mut p, &table, "t, d"));
    let [q, k] = [q, k].map(|x| {
        let to = p.empty(Dtype::F32, &shape);
        let x = p.named_untyped(ops::linalg::TRANSPOSE, &[&x], &to, "permutation = [1, 0, 2]");
        embedded(&mut p, &x, [&cos, &sin], 2)
    });
    let scores = scores(&mut p, &q, &k);
    let weights = super::rows::softmax(&mut p, &scores);
    let r = sums(&mut p, &weights, &v);
    // Both tables, queries, keys, and the attention.
    Case::new(format!("rotated/attention/{}", by(&shape)), p, &[&r]).dispatches(5)
}
