//! Attention: two products around a softmax, one kernel; on a CPU three where sizes are known at run time only.

use super::case::{Case, by};
use super::contract::MULTIPLY_ADD;
use crate::host_tensor::Dtype;
use crate::text::{Input, Program, Value, tensor};
use monopour_ir::ops;

/// Heads, queries, keys, elements of a head.
type Sizes = [usize; 4];

pub(super) fn cases() -> Vec<Case> {
    let mut out = vec![];
    for sizes in [[1, 7, 7, 5], [3, 17, 17, 8], [2, 33, 9, 16], [4, 64, 64, 32], [12, 16, 16, 64], [2, 1, 65, 17]] {
        out.push(of("plain", sizes, |_, s| s));
        out.push(of("causal", sizes, |p, s| changed(p, &s, &[], CAUSAL)));
    }
    for sizes in [[2, 17, 33, 20], [1, 5, 1, 8], [2, 40, 100, 128], [1, 3, 300, 64], [1, 2, 5, 1], [1, 20, 70, 200]] {
        out.push(of("plain", sizes, |_, s| s));
    }
    // As many scores as a task holds: of a prime number of queries, and of many keys.
    for sizes in [[1, 197, 197, 8], [1, 32, 2048, 4]] {
        out.push(of("plain", sizes, |_, s| s));
        out.push(of("causal", sizes, |p, s| changed(p, &s, &[], CAUSAL)));
    }
    // More than a task of a CPU holds, and no divisor.
    out.push(of("many_rows", [1, 1009, 41, 4], |_, s| s).dispatches(3).on_gpus(1));
    for sizes in [[2, 17, 33, 20], [3, 16, 64, 32]] {
        let [_, queries, keys, _] = sizes;
        out.push(of("added_mask", sizes, |p, s| {
            let mask = p.f32(&[queries, keys]);
            changed(p, &s, &[&mask], "%s = arith.addf %a, %b : f32")
        }));
        out.push(of("padding", sizes, |p, s| {
            let mask = p.f32(&[keys]);
            changed(p, &s, &[&mask], "%s = arith.addf %a, %b : f32")
        }));
        out.push(of("truth_mask", sizes, |p, s| {
            let mask = p.input(Dtype::Int(1), &[queries, keys]);
            let body = "%n = arith.constant -1.0e9 : f32; %s = arith.select %b, %a, %n : f32";
            changed(p, &s, &[&mask], body)
        }));
    }
    out.extend([
        hidden_rows("plain"),
        hidden_rows("guarded"),
        hidden_rows("dropped"),
        hidden_rows("guarded_and_dropped"),
        grouped(),
        biased(),
        weighted(),
        halves(false),
        halves(true),
        rounded(),
        second_reader(),
    ]);
    out.extend([named(), late_keys(), transposed_keys(), two_batches(), wrapped_places(), added_places()]);
    for least in ["-1.0e9", "0xFF800000", "-2.0"] {
        out.extend([masked_halves([2, 64, 160, 32], 0, least), masked_halves([1, 80, 176, 64], 96, least)]);
    }
    for least in ["0xFF800000", "-1.0e4", "-2.0"] {
        out.extend([([1, 130, 130, 8], 0), ([2, 200, 200, 16], 0), ([1, 65, 400, 8], 30)].map(|s| tasks(s, least)));
        out.extend([([2, 96, 160, 8], 40), ([1, 200, 200, 8], -70)].map(|s| tasks(s, least)));
        out.push(tasks_of(([1, 200, 200, 8], -70), least, true));
    }
    out.extend([[2, 17, 33], [1, 1, 70], [3, 40, 64], [2, 5, 0]].map(dynamic));
    out.extend([[2, 2, 17, 33, 16], [3, 4, 1, 70, 8], [2, 3, 40, 40, 24]].map(repeated));
    out.extend([[2, 40, 9, 16], [3, 100, 30, 8], [1, 64, 64, 32]].map(joint));
    out.extend([[1, 50, 4, 16], [2, 33, 3, 8], [1, 17, 1, 8], [3, 1, 2, 4]].map(of_one_product));
    out
}

/// No keys after the query's own place.
const CAUSAL: &str = "%i = linalg.index 1 : index; %j = linalg.index 2 : index; %c = arith.cmpi ule, %j, %i : index; \
                      %n = arith.constant -1.0e9 : f32; %s = arith.select %c, %a, %n : f32";

/// A case whose scores `mask` changes.
fn of(name: &str, sizes: Sizes, mask: impl Fn(&mut Program, Value) -> Value) -> Case {
    let [heads, queries, keys, width] = sizes;
    let mut p = Program::new();
    let q = p.f32(&[heads, queries, width]);
    let (k, v) = (p.f32(&[heads, keys, width]), p.f32(&[heads, keys, width]));
    let scores = scores(&mut p, &q, &k);
    let scores = mask(&mut p, scores);
    let weights = super::rows::softmax(&mut p, &scores);
    let r = sums(&mut p, &weights, &v);
    let case = Case::new(format!("attention/{name}/{}", by(&sizes)), p, &[&r]);
    case.dispatches(1)
}

/// Pointwise on the scores, which are `%a`.
fn changed(p: &mut Program, scores: &Value, others: &[&Value], body: &str) -> Value {
    p.pointwise(Dtype::F32, &[&[scores], others].concat(), body)
}

/// `q k^T * 0.125`.
pub(super) fn scores(p: &mut Program, q: &Value, k: &Value) -> Value {
    let zero = p.zeros(Dtype::F32, &[q.shape()[0], q.shape()[1], k.shape()[1]]);
    let qk = p.generic("b m n k!", &[(q, "b, m, k"), (k, "b, n, k")], (&zero, "b, m, n"), MULTIPLY_ADD);
    p.pointwise(Dtype::F32, &[&qk], "%k = arith.constant 0.125 : f32; %s = arith.mulf %a, %k : f32")
}

pub(super) fn sums(p: &mut Program, weights: &Value, v: &Value) -> Value {
    let zero = p.zeros(Dtype::F32, &[v.shape()[0], weights.shape()[1], v.shape()[2]]);
    p.generic("b m n k!", &[(weights, "b, m, k"), (v, "b, k, n")], (&zero, "b, m, n"), MULTIPLY_ADD)
}

/// Tokens of two streams together, as in transformers of images and texts: heads go behind tokens, of which each stream reads its own.
fn joint([heads, first, second, size]: [usize; 4]) -> Case {
    let mut p = Program::new();
    let [q, k, v] = [(); 3].map(|()| {
        let parts = [first, second].map(|tokens| p.f32(&[heads, tokens, size]));
        let parts = parts.map(|part| p.pointwise(Dtype::F32, &[&part], "%s = arith.addf %a, %a : f32"));
        super::slices::joined(&mut p, &[&parts[0], &parts[1]], 1)
    });
    let scores = scores(&mut p, &q, &k);
    let weights = super::rows::softmax(&mut p, &scores);
    let r = sums(&mut p, &weights, &v);
    let to = p.empty(Dtype::F32, &[first + second, heads, size]);
    let r = p.named_untyped(ops::linalg::TRANSPOSE, &[&r], &to, "permutation = [1, 0, 2]");
    let rows = [first + second, heads * size];
    let text =
        format!("tensor.collapse_shape {} [[0], [1, 2]] : {} into {}", r.name, r.ty(), tensor(Dtype::F32, &rows));
    let r = p.op(Dtype::F32, &rows, &text);
    let streams = [(0, first), (first, second)].map(|(at, tokens)| {
        let part = super::slices::extract(&mut p, &r, (&[at, 0], &[tokens, heads * size], &[1, 1]));
        p.pointwise(Dtype::F32, &[&part], "%s = arith.negf %a : f32")
    });
    // Six parts, the attention, both streams; GPUs transpose by a dispatch of its own.
    let case =
        Case::new(format!("attention/joint/{}", by(&[heads, first, second, size])), p, &[&streams[0], &streams[1]]);
    case.dispatches(9).on_gpus(10)
}

/// Two queries that see no key: NaN, which becomes 7, or 0 where the softmax is guarded or its NaNs are dropped.
fn hidden_rows(softmax: &str) -> Case {
    let mut p = Program::new();
    let (q, k, v) = (p.f32(&[2, 9, 16]), p.f32(&[2, 40, 16]), p.f32(&[2, 40, 16]));
    let s = scores(&mut p, &q, &k);
    let body = "%i = linalg.index 1 : index; %two = arith.constant 2 : index; %c = arith.cmpi uge, %i, %two : index; \
                %n = arith.constant 0xFF800000 : f32; %s = arith.select %c, %a, %n : f32";
    let s = changed(&mut p, &s, &[], body);
    let guarded = softmax.starts_with("guarded");
    let weights = if guarded { guarded_softmax(&mut p, &s) } else { super::rows::softmax(&mut p, &s) };
    let weights = if softmax.ends_with("dropped") { without_nans(&mut p, &weights) } else { weights };
    let r = sums(&mut p, &weights, &v);
    let r = with_seven(&mut p, &r);
    Case::new(format!("attention/hidden_rows/{softmax}"), p, &[&r]).dispatches(1)
}

/// Zeros for NaNs.
fn without_nans(p: &mut Program, x: &Value) -> Value {
    changed(
        p,
        x,
        &[],
        "%z = arith.constant 0.0 : f32; %c = arith.cmpf uno, %a, %a : f32; %s = arith.select %c, %z, %a : f32",
    )
}

/// Sevens for NaNs: values of the suite are finite.
fn with_seven(p: &mut Program, x: &Value) -> Value {
    changed(
        p,
        x,
        &[],
        "%z = arith.constant 7.0 : f32; %c = arith.cmpf uno, %a, %a : f32; %s = arith.select %c, %z, %a : f32",
    )
}

/// A softmax whose rows of negative infinity are 0.
fn guarded_softmax(p: &mut Program, x: &Value) -> Value {
    let (full, row) = ("a, b, c", "a, b");
    let most = super::rows::row_reduce(p, x, "%s = arith.maximumf %o, %a : f32", "0xFF800000");
    let e = p.empty(Dtype::F32, x.shape());
    let body = "%n = arith.constant 0xFF800000 : f32; %z = arith.constant 0.0 : f32; %c = arith.cmpf oeq, %b, %n : f32; \
                %m = arith.select %c, %z, %b : f32; %d = arith.subf %a, %m : f32; %s = math.exp %d : f32";
    let powers = p.generic("a b c", &[(x, full), (&most, row)], (&e, full), body);
    let sum = super::rows::row_reduce(p, &powers, "%s = arith.addf %o, %a : f32", "0.0");
    let e = p.empty(Dtype::F32, x.shape());
    let body = "%z = arith.constant 0.0 : f32; %one = arith.constant 1.0 : f32; %c = arith.cmpf oeq, %b, %z : f32; \
                %m = arith.select %c, %one, %b : f32; %s = arith.divf %a, %m : f32";
    p.generic("a b c", &[(&powers, full), (&sum, row)], (&e, full), body)
}

/// Queries that see none of the first keys, which are more than a block.
fn late_keys() -> Case {
    let mut p = Program::new();
    let (q, k, v) = (p.f32(&[2, 18, 24]), p.f32(&[2, 101, 24]), p.f32(&[2, 101, 24]));
    let s = scores(&mut p, &q, &k);
    let body = "%j = linalg.index 2 : index; %f = arith.constant 70 : index; %c = arith.cmpi uge, %j, %f : index; \
                %n = arith.constant 0xFF800000 : f32; %s = arith.select %c, %a, %n : f32";
    let s = changed(&mut p, &s, &[], body);
    let weights = super::rows::softmax(&mut p, &s);
    let r = sums(&mut p, &weights, &v);
    Case::new("attention/late_keys", p, &[&r]).dispatches(1)
}

/// Three heads of queries for each of keys.
fn grouped() -> Case {
    let mut p = Program::new();
    let (q, k, v) = (p.f32(&[2, 3, 19, 16]), p.f32(&[2, 37, 16]), p.f32(&[2, 37, 24]));
    let zero = p.zeros(Dtype::F32, &[2, 3, 19, 37]);
    let s = p.generic("h g m n d!", &[(&q, "h, g, m, d"), (&k, "h, n, d")], (&zero, "h, g, m, n"), MULTIPLY_ADD);
    let weights = super::rows::softmax(&mut p, &s);
    let zero = p.zeros(Dtype::F32, &[2, 3, 19, 24]);
    let r = p.generic("h g m c n!", &[(&weights, "h, g, m, n"), (&v, "h, n, c")], (&zero, "h, g, m, c"), MULTIPLY_ADD);
    Case::new("attention/grouped", p, &[&r]).dispatches(1)
}

/// Groups of heads whose keys and values are repeated, and whose queries and keys are both scaled, as PyTorch exports them.
fn repeated([groups, heads, queries, keys, size]: [usize; 5]) -> Case {
    let mut p = Program::new();
    let all = groups * heads;
    let q = p.f32(&[all, queries, size]);
    let (k, v) = (p.f32(&[groups, keys, size]), p.f32(&[groups, keys, size]));
    let repeat = |p: &mut Program, x: &Value| {
        let shape = [groups, heads, keys, size];
        let e = p.empty(Dtype::F32, &shape);
        let repeated = p.named_untyped(ops::linalg::BROADCAST, &[x], &e, "dimensions = [1]");
        let shape = [all, keys, size];
        let ty = crate::text::tensor(Dtype::F32, &shape);
        let text = format!("tensor.collapse_shape {} [[0, 1], [2], [3]] : {} into {ty}", repeated.name, repeated.ty());
        p.op(Dtype::F32, &shape, &text)
    };
    let (k, v) = (repeat(&mut p, &k), repeat(&mut p, &v));
    let e = p.empty(Dtype::F32, &[all, size, keys]);
    let k = p.named_untyped(ops::linalg::TRANSPOSE, &[&k], &e, "permutation = [0, 2, 1]");
    let scale = "%k = arith.constant 0.5 : f32; %s = arith.mulf %a, %k : f32";
    let (q, k) = (changed(&mut p, &q, &[], scale), changed(&mut p, &k, &[], scale));
    let zero = p.zeros(Dtype::F32, &[all, queries, keys]);
    let s = p.generic("b m n k!", &[(&q, "b, m, k"), (&k, "b, k, n")], (&zero, "b, m, n"), MULTIPLY_ADD);
    let mask = p.f32(&[queries, keys]);
    let s = changed(&mut p, &s, &[&mask], "%s = arith.addf %a, %b : f32");
    let weights = super::rows::softmax(&mut p, &s);
    let weights = without_nans(&mut p, &weights);
    let r = sums(&mut p, &weights, &v);
    // Both are scaled before.
    Case::new(format!("attention/repeated/{}", by(&[groups, heads, queries, keys, size])), p, &[&r]).dispatches(3)
}

/// Heads that lie between tokens and elements, in two batches.
fn two_batches() -> Case {
    let mut p = Program::new();
    let (q, k, v) = (p.f32(&[2, 21, 3, 8]), p.f32(&[2, 33, 3, 8]), p.f32(&[2, 33, 3, 8]));
    let zero = p.zeros(Dtype::F32, &[2, 3, 21, 33]);
    let s = p.generic("b h m n d!", &[(&q, "b, m, h, d"), (&k, "b, n, h, d")], (&zero, "b, h, m, n"), MULTIPLY_ADD);
    let weights = super::rows::softmax(&mut p, &s);
    let zero = p.zeros(Dtype::F32, &[2, 3, 21, 8]);
    let r =
        p.generic("b h m c n!", &[(&weights, "b, h, m, n"), (&v, "b, n, h, c")], (&zero, "b, h, m, c"), MULTIPLY_ADD);
    Case::new("attention/two_batches", p, &[&r]).dispatches(1)
}

/// Keys whose neighbours in memory are elements of other keys.
fn transposed_keys() -> Case {
    let mut p = Program::new();
    let (q, k, v) = (p.f32(&[2, 18, 24]), p.f32(&[2, 24, 35]), p.f32(&[2, 35, 24]));
    let zero = p.zeros(Dtype::F32, &[2, 18, 35]);
    let s = p.generic("b m n k!", &[(&q, "b, m, k"), (&k, "b, k, n")], (&zero, "b, m, n"), MULTIPLY_ADD);
    let weights = super::rows::softmax(&mut p, &s);
    let r = sums(&mut p, &weights, &v);
    Case::new("attention/transposed_keys", p, &[&r]).dispatches(1)
}

/// Biases in both products.
fn biased() -> Case {
    let mut p = Program::new();
    let (q, k, v) = (p.f32(&[2, 18, 24]), p.f32(&[2, 35, 24]), p.f32(&[2, 35, 40]));
    let (bq, bk, bv) = (p.f32(&[2, 24]), p.f32(&[24]), p.f32(&[40]));
    let zero = p.zeros(Dtype::F32, &[2, 18, 35]);
    let ins = [(&q, "b, m, k"), (&bq, "b, k"), (&k, "b, n, k"), (&bk, "k")];
    let body = "%x = arith.addf %a, %b : f32; %y = arith.addf %c, %d : f32; %m = arith.mulf %x, %y : f32; %s = arith.addf %o, %m : f32";
    let s = p.generic("b m n k!", &ins, (&zero, "b, m, n"), body);
    let weights = super::rows::softmax(&mut p, &s);
    let zero = p.zeros(Dtype::F32, &[2, 18, 40]);
    let ins = [(&weights, "b, m, k"), (&v, "b, k, n"), (&bv, "n")];
    let body = "%y = arith.addf %b, %c : f32; %m = arith.mulf %a, %y : f32; %s = arith.addf %o, %m : f32";
    let r = p.generic("b m n k!", &ins, (&zero, "b, m, n"), body);
    Case::new("attention/biased", p, &[&r]).dispatches(1)
}

/// An epilogue: gates and a residual.
fn weighted() -> Case {
    let mut p = Program::new();
    let (q, k, v) = (p.f32(&[2, 18, 24]), p.f32(&[2, 35, 24]), p.f32(&[2, 35, 24]));
    let (gate, rest) = (p.f32(&[24]), p.f32(&[2, 18, 24]));
    let s = scores(&mut p, &q, &k);
    let weights = super::rows::softmax(&mut p, &s);
    let r = sums(&mut p, &weights, &v);
    let body = "%m = arith.mulf %a, %b : f32; %s = arith.addf %m, %c : f32";
    let r = p.pointwise(Dtype::F32, &[&r, &gate, &rest], body);
    Case::new("attention/gated", p, &[&r]).dispatches(1)
}

/// Halves in memory, sums in f32, a result in halves; neighbours in memory may be elements of other keys.
fn halves(transposed: bool) -> Case {
    let mut p = Program::new();
    let input = |p: &mut Program, shape: &[usize]| p.input(Dtype::F16, shape);
    let (of_keys, keys) = if transposed { ([2, 24, 35], "b, k, n") } else { ([2, 35, 24], "b, n, k") };
    let (q, k, v) = (input(&mut p, &[2, 18, 24]), input(&mut p, &of_keys), input(&mut p, &[2, 35, 24]));
    let wide = "%x = arith.extf %a : f16 to f32; %y = arith.extf %b : f16 to f32; %m = arith.mulf %x, %y : f32; %s = arith.addf %o, %m : f32";
    let zero = p.zeros(Dtype::F32, &[2, 18, 35]);
    let s = p.generic("b m n k!", &[(&q, "b, m, k"), (&k, keys)], (&zero, "b, m, n"), wide);
    let weights = super::rows::softmax(&mut p, &s);
    let zero = p.zeros(Dtype::F32, &[2, 18, 24]);
    let half = "%y = arith.extf %b : f16 to f32; %m = arith.mulf %a, %y : f32; %s = arith.addf %o, %m : f32";
    let r = p.generic("b m n k!", &[(&weights, "b, m, k"), (&v, "b, k, n")], (&zero, "b, m, n"), half);
    let r = p.pointwise(Dtype::F16, &[&r], "%s = arith.truncf %a : f32 to f16");
    let name = if transposed { "attention/halves/transposed" } else { "attention/halves/plain" };
    Case::new(name, p, &[&r]).dispatches(1)
}

/// Weights that are rounded to 16 bits before the product, as models of 16 bits have them.
fn rounded() -> Case {
    let mut p = Program::new();
    let inputs = [[2, 18, 24], [2, 35, 24], [2, 35, 24]];
    let [q, k, v] = inputs.map(|shape| p.input(Dtype::F16, &shape));
    let wide = "%x = arith.extf %a : f16 to f32; %y = arith.extf %b : f16 to f32; %m = arith.mulf %x, %y : f32; %s = arith.addf %o, %m : f32";
    let zero = p.zeros(Dtype::F32, &[2, 18, 35]);
    let s = p.generic("b m n k!", &[(&q, "b, m, k"), (&k, "b, n, k")], (&zero, "b, m, n"), wide);
    let weights = super::rows::softmax(&mut p, &s);
    let weights = p.pointwise(Dtype::F16, &[&weights], "%s = arith.truncf %a : f32 to f16");
    let zero = p.zeros(Dtype::F32, &[2, 18, 24]);
    let r = p.generic("b m n k!", &[(&weights, "b, m, k"), (&v, "b, k, n")], (&zero, "b, m, n"), wide);
    let r = p.pointwise(Dtype::F16, &[&r], "%s = arith.truncf %a : f32 to f16");
    // GPUs leave the rounding of the weights out.
    Case::new("widened_attention/rounded", p, &[&r]).dispatches(1).within(1e-3, 2e-3)
}

/// Halves, and no keys more than `offset` after the query's own place: those have the score `least`, which counts where the
/// others' are not far above it.
fn masked_halves(sizes: Sizes, offset: usize, least: &str) -> Case {
    let [heads, queries, keys, width] = sizes;
    let mut p = Program::new();
    let inputs = [[heads, queries, width], [heads, keys, width], [heads, keys, width]];
    let [q, k, v] = inputs.map(|shape| p.input(Dtype::F16, &shape));
    let wide = "%x = arith.extf %a : f16 to f32; %y = arith.extf %b : f16 to f32; %m = arith.mulf %x, %y : f32; %s = arith.addf %o, %m : f32";
    let zero = p.zeros(Dtype::F32, &[heads, queries, keys]);
    let s = p.generic("b m n k!", &[(&q, "b, m, k"), (&k, "b, n, k")], (&zero, "b, m, n"), wide);
    let mask = format!(
        "%i = linalg.index 1 : index; %j = linalg.index 2 : index; %f = arith.constant {offset} : index; %l = arith.addi %i, %f : index; \
         %c = arith.cmpi sle, %j, %l : index; %n = arith.constant {least} : f32; %s = arith.select %c, %a, %n : f32"
    );
    let s = changed(&mut p, &s, &[], &mask);
    let weights = super::rows::softmax(&mut p, &s);
    let zero = p.zeros(Dtype::F32, &[heads, queries, width]);
    let half = "%y = arith.extf %b : f16 to f32; %m = arith.mulf %a, %y : f32; %s = arith.addf %o, %m : f32";
    let r = p.generic("b m n k!", &[(&weights, "b, m, k"), (&v, "b, k, n")], (&zero, "b, m, n"), half);
    let r = p.pointwise(Dtype::F16, &[&r], "%s = arith.truncf %a : f32 to f16");
    let name = format!("attention/masked_halves/{}/{offset}/{least}", by(&sizes));
    Case::new(name, p, &[&r]).dispatches(1)
}

/// No keys more than `offset` after the query's own place, nor one that a second mask hides, in several tasks; rows that see
/// none are NaN, which becomes 7, or the mean of all values. Some of the scores behind the mask are infinite.
fn tasks(sizes: (Sizes, i64), least: &str) -> Case {
    tasks_of(sizes, least, false)
}

/// The same, with NaNs of the weights dropped or not.
fn tasks_of((sizes, offset): (Sizes, i64), least: &str, is_dropped: bool) -> Case {
    let [heads, queries, keys, width] = sizes;
    let mut p = Program::new();
    let (q, k, v) = (p.f32(&[heads, queries, width]), p.f32(&[heads, keys, width]), p.f32(&[heads, keys, width]));
    let s = scores(&mut p, &q, &k);
    let mask = format!(
        "%i = linalg.index 1 : index; %j = linalg.index 2 : index; %f = arith.constant {offset} : index; %l = arith.addi %i, %f : index; \
         %c = arith.cmpi sgt, %j, %l : index; %h = arith.constant 11 : index; %e = arith.cmpi eq, %j, %h : index; %d = arith.ori %c, %e : i1; \
         %late = arith.cmpi sgt, %j, %i : index; %m = arith.constant 0x7F800000 : f32; %x = arith.select %late, %m, %a : f32; \
         %y = arith.select %c, %x, %a : f32; %n = arith.constant {least} : f32; %s = arith.select %d, %n, %y : f32"
    );
    let s = changed(&mut p, &s, &[], &mask);
    let mut weights = super::rows::softmax(&mut p, &s);
    if is_dropped {
        weights = without_nans(&mut p, &weights);
    }
    let r = sums(&mut p, &weights, &v);
    let r = with_seven(&mut p, &r);
    let dropped = if is_dropped { "/dropped" } else { "" };
    Case::new(format!("attention/tasks/{}/{offset}/{least}{dropped}", by(&sizes)), p, &[&r]).dispatches(1)
}

/// A causal mask by places of eight bits, of which those from 128 on are negative: most keys behind them are seen.
fn wrapped_places() -> Case {
    let mut p = Program::new();
    let (q, k, v) = (p.f32(&[1, 40, 16]), p.f32(&[1, 200, 16]), p.f32(&[1, 200, 16]));
    let s = scores(&mut p, &q, &k);
    let body = "%i = linalg.index 1 : index; %j = linalg.index 2 : index; %x = arith.index_cast %i : index to i8; \
                %y = arith.index_cast %j : index to i8; %c = arith.cmpi sle, %y, %x : i8; \
                %n = arith.constant 0xFF800000 : f32; %s = arith.select %c, %a, %n : f32";
    let s = changed(&mut p, &s, &[], body);
    let weights = super::rows::softmax(&mut p, &s);
    let r = sums(&mut p, &weights, &v);
    Case::new("attention/wrapped_places", p, &[&r]).dispatches(1)
}

/// Negative infinity is added to scores of keys behind the query's own place, and a bias to all.
fn added_places() -> Case {
    let mut p = Program::new();
    let (q, k, v) = (p.f32(&[2, 144, 16]), p.f32(&[2, 144, 16]), p.f32(&[2, 144, 16]));
    let bias = p.f32(&[144, 144]);
    let s = scores(&mut p, &q, &k);
    let body = "%i = linalg.index 1 : index; %j = linalg.index 2 : index; %c = arith.cmpi sgt, %j, %i : index; \
                %n = arith.constant 0xFF800000 : f32; %z = arith.constant 0.0 : f32; %m = arith.select %c, %n, %z : f32; \
                %x = arith.addf %a, %b : f32; %s = arith.addf %x, %m : f32";
    let s = changed(&mut p, &s, &[&bias], body);
    let weights = super::rows::softmax(&mut p, &s);
    let r = sums(&mut p, &weights, &v);
    Case::new("attention/added_places", p, &[&r]).dispatches(1)
}

/// Weights that are a result too stay in memory.
fn second_reader() -> Case {
    let mut p = Program::new();
    let (q, k, v) = (p.f32(&[2, 18, 24]), p.f32(&[2, 35, 24]), p.f32(&[2, 35, 24]));
    let s = scores(&mut p, &q, &k);
    let weights = super::rows::softmax(&mut p, &s);
    let r = sums(&mut p, &weights, &v);
    Case::new("attention/second_reader", p, &[&r, &weights]).dispatches(3)
}

/// Heads, queries and keys of sizes that are known at run time only; also no keys.
fn dynamic(sizes: [usize; 3]) -> Case {
    let [heads, queries, keys] = sizes;
    let (x, s) = ("tensor<?x?x24xf32>", "tensor<?x?x?xf32>");
    let map = |results: &str| format!("affine_map<(b, m, n, k) -> ({results})>");
    let maps = [map("b, m, k"), map("b, n, k"), map("b, m, n")].join(", ");
    let text = format!(
        "func.func @main(%q: {x}, %k: {x}, %v: {x}) -> {x} {{\n  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n  \
         %z = arith.constant 0.0 : f32\n  %h = tensor.dim %q, %c0 : {x}\n  %m = tensor.dim %q, %c1 : {x}\n  %n = tensor.dim %k, %c1 : {x}\n  \
         %e = tensor.empty(%h, %m, %n) : {s}\n  %f = linalg.fill ins(%z : f32) outs(%e : {s}) -> {s}\n  \
         %qk = linalg.batch_matmul indexing_maps = [{maps}] ins(%q, %k : {x}, {x}) outs(%f : {s}) -> {s}\n  \
         %p = linalg.softmax dimension(2) ins(%qk : {s}) outs(%e : {s}) -> {s}\n  \
         %oe = tensor.empty(%h, %m) : {x}\n  %of = linalg.fill ins(%z : f32) outs(%oe : {x}) -> {x}\n  \
         %r = linalg.batch_matmul ins(%p, %v : {s}, {x}) outs(%of : {x}) -> {x}\n  return %r : {x}\n}}\n"
    );
    let inputs =
        [[heads, queries, 24], [heads, keys, 24], [heads, keys, 24]].map(|shape| Input::new(Dtype::F32, &shape));
    Case::of_text(&format!("attention/dynamic/{}", by(&sizes)), &text, inputs.into()).on_gpus(1)
}

/// `linalg.softmax`, whose maximum drops NaNs and begins at one.
fn named() -> Case {
    let mut p = Program::new();
    let (q, k, v) = (p.f32(&[2, 18, 24]), p.f32(&[2, 35, 24]), p.f32(&[2, 35, 24]));
    let s = scores(&mut p, &q, &k);
    let e = p.empty(Dtype::F32, s.shape());
    let text =
        format!("linalg.softmax dimension(2) ins({} : {}) outs({} : {}) -> {}", s.name, s.ty(), e.name, e.ty(), e.ty());
    let weights = p.op(Dtype::F32, s.shape(), &text);
    let r = sums(&mut p, &weights, &v);
    Case::new("attention/named_softmax", p, &[&r]).dispatches(1)
}

/// Queries, keys and values of one product, as PyTorch's models have them: reshaped, transposed and sliced. Batches, tokens, heads,
/// elements of a head.
fn of_one_product([b, t, h, s]: [usize; 4]) -> Case {
    let (all, rows, width) = (b * h, b * t, h * s);
    let part = |name: &str, at: usize| {
        format!(
            "  %{name}5 = tensor.extract_slice %t[{at}, 0, 0, 0, 0] [1, {b}, {h}, {t}, {s}] [1, 1, 1, 1, 1] \
             : tensor<3x{b}x{h}x{t}x{s}xf32> to tensor<1x{b}x{h}x{t}x{s}xf32>\n  \
             %{name} = tensor.collapse_shape %{name}5 [[0, 1, 2], [3], [4]] : tensor<1x{b}x{h}x{t}x{s}xf32> into tensor<{all}x{t}x{s}xf32>\n"
        )
    };
    let zeros = |name: &str, shape: &str| {
        format!(
            "  %{name}e = tensor.empty() : tensor<{shape}xf32>\n  \
             %{name} = linalg.fill ins(%z : f32) outs(%{name}e : tensor<{shape}xf32>) -> tensor<{shape}xf32>\n"
        )
    };
    let product = |name: &str, kind: &str, [x, y]: [(&str, String); 2], of: &str| {
        format!(
            "{}  %{name} = linalg.{kind} ins(%{}, %{} : tensor<{}xf32>, tensor<{}xf32>) outs(%{name}z : tensor<{of}xf32>) \
             -> tensor<{of}xf32>\n",
            zeros(&format!("{name}z"), of),
            x.0,
            y.0,
            x.1,
            y.1
        )
    };
    let (scores, heads, turned) = (format!("{all}x{t}x{t}"), format!("{all}x{t}x{s}"), format!("{all}x{s}x{t}"));
    let three = format!("{rows}x{}", 3 * width);
    let text = format!(
        "func.func @main(%x: tensor<{rows}x{width}xf32>, %w: tensor<{width}x{}xf32>) -> tensor<{heads}xf32> {{\n  \
         %z = arith.constant 0.0 : f32\n{}  \
         %y = tensor.expand_shape %p [[0, 1], [2, 3, 4]] output_shape [{b}, {t}, 3, {h}, {s}] \
         : tensor<{three}xf32> into tensor<{b}x{t}x3x{h}x{s}xf32>\n  \
         %te = tensor.empty() : tensor<3x{b}x{h}x{t}x{s}xf32>\n  \
         %t = linalg.transpose ins(%y : tensor<{b}x{t}x3x{h}x{s}xf32>) outs(%te : tensor<3x{b}x{h}x{t}x{s}xf32>) \
         permutation = [2, 0, 3, 1, 4]\n{}{}{}  %kte = tensor.empty() : tensor<{turned}xf32>\n  \
         %kt = linalg.transpose ins(%k : tensor<{heads}xf32>) outs(%kte : tensor<{turned}xf32>) permutation = [0, 2, 1]\n{}  \
         %we = tensor.empty() : tensor<{scores}xf32>\n  \
         %o = linalg.softmax dimension(2) ins(%s : tensor<{scores}xf32>) outs(%we : tensor<{scores}xf32>) -> tensor<{scores}xf32>\n{}  \
         return %r : tensor<{heads}xf32>\n}}\n",
        3 * width,
        product("p", "matmul", [("x", format!("{rows}x{width}")), ("w", format!("{width}x{}", 3 * width))], &three),
        part("q", 0),
        part("k", 1),
        part("v", 2),
        product("s", "batch_matmul", [("q", heads.clone()), ("kt", turned.clone())], &scores),
        product("r", "batch_matmul", [("o", scores.clone()), ("v", heads.clone())], &heads),
    );
    let inputs = [[rows, width], [width, 3 * width]].map(|shape| Input::new(Dtype::F32, &shape));
    let name = format!("attention/of_one_product/{}", by(&[b, t, h, s]));
    let case = Case::of_text(&name, &text, inputs.to_vec()).within(1e-4, 1e-4);
    // Heads of several batches are one dimension of the products and two of the slices: four dispatches.
    if b == 1 && h > 1 { case.dispatches(2) } else { case }
}
