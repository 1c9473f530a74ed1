//! Attention: two batched products around a softmax, three kernels.

use super::case::Case;
use super::contract::MULTIPLY_ADD;
use crate::host_tensor::Dtype;
use crate::text::{Program, Value};

pub(super) fn cases() -> Vec<Case> {
    let mut out = vec![];
    for (heads, queries, keys, width) in
        [(1, 7, 7, 5), (3, 17, 17, 8), (2, 33, 9, 16), (4, 64, 64, 32), (12, 16, 16, 64), (2, 1, 65, 17)]
    {
        out.push(attention(heads, queries, keys, width, false));
        out.push(attention(heads, queries, keys, width, true));
    }
    out
}

fn attention(heads: usize, queries: usize, keys: usize, width: usize, causal: bool) -> Case {
    let mut p = Program::new();
    let q = p.f32(&[heads, queries, width]);
    let (k, v) = (p.f32(&[heads, keys, width]), p.f32(&[heads, keys, width]));
    let r = write(&mut p, &q, &k, &v, "0.125", causal);
    let name = if causal { "causal" } else { "plain" };
    // A mask by index may be a kernel of its own.
    let case = Case::new(format!("attention/{name}/{heads}x{queries}x{keys}x{width}"), p, &[&r]);
    if causal { case } else { case.dispatches(3) }
}

/// `softmax(q k^T * scale) v`.
pub(super) fn write(p: &mut Program, q: &Value, k: &Value, v: &Value, scale: &str, causal: bool) -> Value {
    let (heads, queries, width, keys) = (q.shape()[0], q.shape()[1], q.shape()[2], k.shape()[1]);
    let zero = p.zeros(Dtype::F32, &[heads, queries, keys]);
    let qk = p.generic("b m n k!", &[(q, "b, m, k"), (k, "b, n, k")], (&zero, "b, m, n"), MULTIPLY_ADD);
    let mut scores =
        p.pointwise(Dtype::F32, &[&qk], &format!("%k = arith.constant {scale} : f32; %s = arith.mulf %a, %k : f32"));
    if causal {
        let body = "%i = linalg.index 1 : index; %j = linalg.index 2 : index; %c = arith.cmpi ule, %j, %i : index; \
                    %n = arith.constant -1.0e9 : f32; %s = arith.select %c, %a, %n : f32";
        scores = p.pointwise(Dtype::F32, &[&scores], body);
    }
    let weights = super::rows::softmax(p, &scores);
    let zero = p.zeros(Dtype::F32, &[heads, queries, width]);
    p.generic("b m n k!", &[(&weights, "b, m, k"), (v, "b, k, n")], (&zero, "b, m, n"), MULTIPLY_ADD)
}
