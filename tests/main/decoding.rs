//! A decoding step as PyTorch exports it: heads in groups, and a cache of any length that the new key and value are put behind.

use crate::backend::Monopour;
use crate::onnx::{floats, from_f32, input, ints, node};
use monopour::onnx::proto::{GraphProto, ModelProto};
use monopour::onnx::{DataType, Model};
use monopour::{CompileOptions, compile_onnx};
use monopour_testkit::onnx::{graph, model_of};
use monopour_testkit::suite::Backend;
use prost::Message;
use std::path::Path;

/// Groups of heads, heads of a group, and elements of a head.
const GROUPS: usize = 2;
const HEADS: usize = 3;
const SIZE: usize = 8;
/// What queries and keys are scaled by.
const SCALE: f32 = 0.59;

/// Keys and values are repeated for each head of their group, keys turned by way of three dimensions whose sizes are computed.
fn step() -> ModelProto {
    let mut nodes =
        vec![node("Concat(kc, k) -> ks", &[("axis", &[2])]), node("Concat(vc, v) -> vs", &[("axis", &[2])])];
    let one = |text: &str| node(text, &[]);
    nodes.extend([
        node("Shape(vc) -> past", &[("start", &[2]), ("end", &[3])]),
        one("Add(past, one) -> all"),
        node("Concat(before, all, size) -> repeated", &[("axis", &[0])]),
    ]);
    for name in ["k", "v"] {
        nodes.extend([
            one(&format!("Unsqueeze({name}s, two) -> {name}u")),
            one(&format!("Expand({name}u, repeated) -> {name}e")),
            one(&format!("Reshape({name}e, heads) -> {name}r")),
        ]);
    }
    nodes.extend([
        node("Shape(kr) -> outer", &[("start", &[0]), ("end", &[2])]),
        node("Shape(kr) -> length", &[("start", &[2]), ("end", &[3])]),
        node("Concat(rest, length, size) -> joined", &[("axis", &[0])]),
        one("Reshape(kr, joined) -> k3"),
        node("Transpose(k3) -> kt3", &[("perm", &[0, 2, 1])]),
        node("Concat(outer, size, length) -> turned", &[("axis", &[0])]),
        one("Reshape(kt3, turned) -> kt"),
        one("Mul(kt, scale) -> kf"),
        one("Mul(q, scale) -> qf"),
        one("MatMul(qf, kf) -> s"),
        node("Softmax(s) -> p", &[("axis", &[-1])]),
        one("IsNaN(p) -> n"),
        one("Where(n, zero, p) -> w"),
        one("MatMul(w, vr) -> y"),
    ]);
    let (groups, heads, size) = (GROUPS.to_string(), (GROUPS * HEADS).to_string(), SIZE.to_string());
    let of = |name: &str, shape: [&str; 4]| input(name, DataType::F32, &shape);
    let cache = ["1", &groups, "past", &size];
    let inputs = vec![
        of("q", ["1", &heads, "1", &size]),
        of("k", ["1", &groups, "1", &size]),
        of("v", ["1", &groups, "1", &size]),
        of("kc", cache),
        of("vc", cache),
    ];
    let [all, groups, heads, size] = [GROUPS * HEADS, GROUPS, HEADS, SIZE].map(|n| n as i64);
    let initializer = vec![
        ints("one", &[1]),
        ints("two", &[2]),
        ints("rest", &[-1]),
        ints("size", &[size]),
        ints("before", &[1, groups, heads]),
        ints("heads", &[1, all, -1, size]),
        floats("scale", &[], &[SCALE]),
        floats("zero", &[], &[0.0]),
    ];
    model_of(GraphProto { initializer, ..graph(inputs, nodes, &["y", "ks", "vs"]) }, 20)
}

fn numbers(count: usize, step: usize) -> Vec<f32> {
    (0..count).map(|i| (i * step % 41) as f32 / 16.0 - 1.25).collect()
}

/// The old elements of each group with the new ones behind them.
fn grown(old: &[f32], new: &[f32]) -> Vec<f32> {
    let length = old.len() / GROUPS;
    (0..GROUPS).flat_map(|g| [&old[g * length..][..length], &new[g * SIZE..][..SIZE]].concat()).collect()
}

fn attention(q: &[f32], k: &[f32], v: &[f32]) -> Vec<f64> {
    let length = k.len() / (GROUPS * SIZE);
    let mut out = vec![];
    for head in 0..GROUPS * HEADS {
        let at = |key: usize, d: usize| (head / HEADS * length + key) * SIZE + d;
        let scaled = |x: f32| f64::from(x) * f64::from(SCALE);
        let score = |key: usize| (0..SIZE).map(|d| scaled(q[head * SIZE + d]) * scaled(k[at(key, d)])).sum::<f64>();
        let powers: Vec<f64> = (0..length).map(|key| score(key).exp()).collect();
        let total: f64 = powers.iter().sum();
        out.extend(
            (0..SIZE).map(|d| (0..length).map(|key| powers[key] / total * f64::from(v[at(key, d)])).sum::<f64>()),
        );
    }
    out
}

/// No key or value is repeated or turned in memory: scaled queries, and the attention; the caches are the only copies.
#[test]
fn a_step_reads_its_cache_as_it_is() {
    let model = Model::from_bytes(&step().encode_to_vec(), "m.onnx", Path::new("")).unwrap_or_else(|e| panic!("{e}"));
    for backend in [Some(Monopour::cpu()), Monopour::gpu(), Monopour::portable()].into_iter().flatten() {
        let options = CompileOptions { targets: vec![backend.target().clone()], verify: true, ..Default::default() };
        for past in [0, 1, 7, 96] {
            let (q, k, v) = (numbers(GROUPS * HEADS * SIZE, 7), numbers(GROUPS * SIZE, 11), numbers(GROUPS * SIZE, 5));
            let (old_k, old_v) = (numbers(GROUPS * past * SIZE, 13), numbers(GROUPS * past * SIZE, 17));
            let shape = |heads: usize, tokens: usize| [1, heads, tokens, SIZE];
            let inputs = [
                from_f32(&shape(GROUPS * HEADS, 1), &q),
                from_f32(&shape(GROUPS, 1), &k),
                from_f32(&shape(GROUPS, 1), &v),
                from_f32(&shape(GROUPS, past), &old_k),
                from_f32(&shape(GROUPS, past), &old_v),
            ];
            let program = compile_onnx(&model, &options).unwrap_or_else(|e| panic!("{e}")).program;
            let run = backend.run_program(program, &inputs).unwrap_or_else(|e| panic!("{e}"));
            let (k, v) = (grown(&old_k, &k), grown(&old_v, &v));
            let found = run.outputs[0].to_f64();
            let wrong = found.iter().zip(attention(&q, &k, &v)).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(found.len() == GROUPS * HEADS * SIZE && wrong < 1e-5, "{} {past}: {wrong:e}", backend.name());
            for (output, expected) in run.outputs[1..].iter().zip([k, v]) {
                assert_eq!(*output, from_f32(&shape(GROUPS, past + 1), &expected), "{} {past}", backend.name());
            }
            let cost = run.cost.expect("a program was run");
            // Four copies of parts of lines. On CPUs, scores of a number that only the run knows are in memory.
            let dispatches = 4 + if backend.name() == "cpu" { 4 } else { 2 };
            assert_eq!((cost.dispatches, cost.copies), (dispatches, 4), "{} {past}", backend.name());
        }
    }
}
