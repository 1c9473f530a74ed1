//! Attention: one dispatch without scores in memory, on GPUs by a strategy of its own.

use crate::backend::Monopour;
use crate::onnx::{floats, from_f32, input, ints, node};
use monopour::onnx::proto::ModelProto;
use monopour::onnx::{DataType, Model};
use monopour::program::GpuDescription;
use monopour::{CompileOptions, TargetDescription, compile, compile_onnx};
use monopour_testkit::onnx::{model, opset};
use monopour_testkit::programs::{Size, benchmark};
use monopour_testkit::suite::{Backend, selected};
use monopour_testkit::{Dtype, HostTensor};
use prost::Message;
use std::path::Path;

/// Any adapter, and the one here.
fn targets() -> Vec<TargetDescription> {
    let mut found = vec![TargetDescription::Gpu(GpuDescription::portable())];
    found.extend(Monopour::gpu().map(|gpu| gpu.target().clone()));
    found
}

#[test]
fn no_case_of_the_suite_runs_by_a_fallback() {
    let cases = selected(true);
    let cases: Vec<_> = cases
        .iter()
        .filter(|c| c.family().ends_with("attention") && c.gpu_dispatches.or(c.dispatches) == Some(1))
        .collect();
    assert!(cases.len() > 30, "{} cases", cases.len());
    for target in targets() {
        for case in &cases {
            let options = CompileOptions { targets: vec![target.clone()], ..Default::default() };
            let compiled = compile(case.text.as_bytes(), &case.name, &options);
            let compiled = compiled.unwrap_or_else(|found| panic!("{}: {found}", case.name));
            assert!(compiled.report.remarks.0.is_empty(), "{}: {}", case.name, compiled.report.remarks);
        }
    }
}

/// Of the benchmark program in its full size; the scores alone are 12,582,912 bytes.
#[test]
fn attention_of_512_plans_at_most_its_scores() {
    let program = benchmark("attn_512", Size::Full).expect("it is one of the programs");
    for target in [Monopour::cpu().target().clone()].into_iter().chain(targets()) {
        let options = CompileOptions { targets: vec![target], ..Default::default() };
        let compiled = compile(program.text.as_bytes(), "attn_512", &options).unwrap_or_else(|found| panic!("{found}"));
        let planned = compiled.program.variants[0].plan.planned_bytes;
        println!("attn_512: {planned} bytes planned, bound 12582912");
        assert!(planned <= 12_582_912, "{planned}");
    }
}

#[test]
fn scores_are_not_in_memory() {
    let program = benchmark("attn_512", Size::Small).expect("it is one of the programs");
    for target in targets() {
        check_scores(program.text.as_bytes(), "attn_512", target);
    }
    let cases = selected(true);
    let cases: Vec<_> = cases.iter().filter(|c| c.family().ends_with("attention") && c.dispatches == Some(1)).collect();
    assert!(cases.len() > 30, "{} cases", cases.len());
    for case in cases {
        check_scores(case.text.as_bytes(), &case.name, Monopour::cpu().target().clone());
    }
}

/// One dispatch, which takes no memory of the arena.
fn check_scores(text: &[u8], name: &str, target: TargetDescription) {
    let options = CompileOptions { targets: vec![target], ..Default::default() };
    let compiled = compile(text, name, &options).unwrap_or_else(|found| panic!("{name}: {found}"));
    let variant = &compiled.program.variants[0];
    assert_eq!((variant.plan.planned_bytes, &variant.dispatches[..]), (0, &[1][..]), "{name}");
}

/// One layer of a decoder: two heads of 8 elements, 12 tokens, causal by a mask of truth values.
fn layer() -> ModelProto {
    let [tokens, hidden, wide] = [12usize, 16, 32];
    let weights = |name: &str, shape: &[usize]| {
        let count: usize = shape.iter().product();
        let values: Vec<f32> = (0..count).map(|i| ((i * 7 + name.len()) % 23) as f32 / 46.0 - 0.25).collect();
        floats(name, &shape.iter().map(|s| *s as i64).collect::<Vec<_>>(), &values)
    };
    let causal: Vec<f32> = (0..tokens * tokens).map(|i| if i % tokens > i / tokens { -1e9 } else { 0.0 }).collect();
    let nodes = vec![
        node("LayerNormalization(x, g1, b1) -> n1", &[]),
        node("MatMul(n1, wa) -> a", &[]),
        node("Add(a, ba) -> qkv", &[]),
        node("Split(qkv, thirds) -> q0, k0, v0", &[("axis", &[2])]),
        node("Reshape(q0, heads) -> q1", &[]),
        node("Reshape(k0, heads) -> k1", &[]),
        node("Reshape(v0, heads) -> v1", &[]),
        node("Transpose(q1) -> q", &[("perm", &[0, 2, 1, 3])]),
        node("Transpose(k1) -> k", &[("perm", &[0, 2, 3, 1])]),
        node("Transpose(v1) -> v", &[("perm", &[0, 2, 1, 3])]),
        node("MatMul(q, k) -> s0", &[]),
        node("Mul(s0, scale) -> s1", &[]),
        node("Add(s1, mask) -> s", &[]),
        node("Softmax(s) -> p", &[("axis", &[-1])]),
        node("MatMul(p, v) -> o", &[]),
        node("Transpose(o) -> o1", &[("perm", &[0, 2, 1, 3])]),
        node("Reshape(o1, flat) -> o2", &[]),
        node("MatMul(o2, wp) -> p1", &[]),
        node("Add(p1, bp) -> p2", &[]),
        node("Add(x, p2) -> x1", &[]),
        node("LayerNormalization(x1, g1, b1) -> n2", &[]),
        node("MatMul(n2, wf) -> f1", &[]),
        node("Gelu(f1) -> f2", &[]),
        node("MatMul(f2, wg) -> f3", &[]),
        node("Add(x1, f3) -> y", &[]),
    ];
    let constants = vec![
        weights("g1", &[hidden]),
        weights("b1", &[hidden]),
        weights("wa", &[hidden, 3 * hidden]),
        weights("ba", &[3 * hidden]),
        weights("wp", &[hidden, hidden]),
        weights("bp", &[hidden]),
        weights("wf", &[hidden, wide]),
        weights("wg", &[wide, hidden]),
        floats("scale", &[1], &[0.35]),
        floats("mask", &[tokens as i64, tokens as i64], &causal),
        ints("thirds", &[16, 16, 16]),
        ints("heads", &[1, tokens as i64, 2, 8]),
        ints("flat", &[1, tokens as i64, hidden as i64]),
    ];
    let x = vec![input("x", DataType::F32, &["1", "12", "16"])];
    ModelProto { opset_import: vec![opset("", 20)], ..model(x, nodes, constants, "y") }
}

/// Norm, queries with keys and values, attention, projection, norm, two products.
#[test]
fn a_layer_is_seven_dispatches() {
    let model = Model::from_bytes(&layer().encode_to_vec(), "m.onnx", Path::new("")).unwrap_or_else(|e| panic!("{e}"));
    let values: Vec<f32> = (0..12 * 16).map(|i| (i * 5 % 31) as f32 / 31.0 - 0.5).collect();
    let run = |backend: &Monopour| {
        let options = CompileOptions { targets: vec![backend.target().clone()], verify: true, ..Default::default() };
        let program = compile_onnx(&model, &options).unwrap_or_else(|e| panic!("{e}")).program;
        let run = backend.run_program(program, &[from_f32(&[1, 12, 16], &values)]).unwrap_or_else(|e| panic!("{e}"));
        (run.outputs.iter().flat_map(HostTensor::to_f64).collect::<Vec<f64>>(), run.cost.map(|c| c.dispatches))
    };
    let (expected, on_cpu) = run(&Monopour::cpu());
    assert_eq!((on_cpu, expected.len()), (Some(7), 12 * 16));
    for backend in [Monopour::gpu(), Monopour::portable()].into_iter().flatten() {
        let (found, dispatches) = run(&backend);
        assert_eq!(dispatches, Some(7), "{}", backend.name());
        let worst = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(worst < 1e-5, "{}: {worst:e}", backend.name());
    }
}

/// Heads of queries, keys and values with biases, and a projection; in f16 all but the input and the result, which are f32.
fn heads(half: bool) -> ModelProto {
    let [tokens, hidden] = [12i64, 16];
    let mut nodes = vec![];
    let mut constants = vec![ints("split", &[1, tokens, 2, 8]), ints("joined", &[1, tokens, hidden])];
    let cast = |nodes: &mut Vec<_>, name: &str, to: i64| {
        nodes.push(node(&format!("Cast({name}) -> {name}_c"), &[("to", &[if half { to } else { 1 }])]));
        format!("{name}_c")
    };
    let x = cast(&mut nodes, "x", 10);
    for (i, part) in ["q", "k", "v"].into_iter().enumerate() {
        let values =
            |count: i64, step: i64| (0..count).map(|n| ((n * step + i as i64) % 23) as f32 / 32.0 - 0.25).collect();
        let (weights, bias): (Vec<f32>, Vec<f32>) = (values(hidden * hidden, 7), values(hidden, 5));
        constants.extend([
            floats(&format!("w{part}"), &[hidden, hidden], &weights),
            floats(&format!("b{part}"), &[hidden], &bias),
        ]);
        let [w, b] = ["w", "b"].map(|kind| cast(&mut nodes, &format!("{kind}{part}"), 10));
        nodes.extend([
            node(&format!("MatMul({x}, {w}) -> m{part}"), &[]),
            node(&format!("Add(m{part}, {b}) -> a{part}"), &[]),
            node(&format!("Reshape(a{part}, split) -> r{part}"), &[]),
            node(
                &format!("Transpose(r{part}) -> {part}"),
                &[("perm", if part == "k" { &[0, 2, 3, 1] } else { &[0, 2, 1, 3] })],
            ),
        ]);
    }
    nodes.extend([
        node("MatMul(q, k) -> s", &[]),
        node("Softmax(s) -> p", &[("axis", &[-1])]),
        node("MatMul(p, v) -> o", &[]),
        node("Transpose(o) -> t", &[("perm", &[0, 2, 1, 3])]),
        node("Reshape(t, joined) -> j", &[]),
        node("MatMul(j, wq_c) -> z", &[]),
        node("Cast(z) -> y", &[("to", &[1])]),
    ]);
    let x = vec![input("x", DataType::F32, &["1", "12", "16"])];
    ModelProto { opset_import: vec![opset("", 20)], ..model(x, nodes, constants, "y") }
}

/// Three products with their biases, the attention, which rounds to f16 where the model does, and a product.
#[test]
fn attention_of_half_precision_is_one_dispatch() {
    let values: Vec<f32> = (0..12 * 16).map(|i| (i * 5 % 31) as f32 / 16.0 - 1.0).collect();
    let run = |half: bool, backend: &Monopour| {
        let bytes = heads(half).encode_to_vec();
        let model = Model::from_bytes(&bytes, "m.onnx", Path::new("")).unwrap_or_else(|e| panic!("{e}"));
        let options = CompileOptions { targets: vec![backend.target().clone()], verify: true, ..Default::default() };
        let compiled = compile_onnx(&model, &options).unwrap_or_else(|e| panic!("{e}"));
        assert!(compiled.report.remarks.0.is_empty(), "{}: {}", backend.name(), compiled.report.remarks);
        let run =
            backend.run_program(compiled.program, &[from_f32(&[1, 12, 16], &values)]).unwrap_or_else(|e| panic!("{e}"));
        (run.outputs.iter().flat_map(HostTensor::to_f64).collect::<Vec<f64>>(), run.cost.map(|c| c.dispatches))
    };
    let (expected, dispatches) = run(false, &Monopour::cpu());
    assert_eq!(dispatches, Some(5));
    for backend in [Some(Monopour::cpu()), Monopour::gpu()].into_iter().flatten() {
        let (found, dispatches) = run(true, &backend);
        // The input is rounded first.
        // GPUs have queries, keys and values in one.
        let expected_dispatches = if backend.name() == "cpu" { 6 } else { 4 };
        assert_eq!(dispatches, Some(expected_dispatches), "{}", backend.name());
        let worst = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(worst > 0.0 && worst < 4e-3, "{}: {worst:e}", backend.name());
    }
}

/// Queries, keys and values as inputs of four dimensions, of which the first has one element; keys are transposed.
fn plain(half: bool) -> ModelProto {
    let of = if half { DataType::F16 } else { DataType::F32 };
    let inputs = ["q", "k", "v"].map(|name| input(name, of, &["1", "3", "20", "8"])).to_vec();
    let mut nodes = vec![
        node("Transpose(k) -> kt", &[("perm", &[0, 1, 3, 2])]),
        node("MatMul(q, kt) -> s", &[]),
        node("Mul(s, scale_c) -> t", &[]),
        node("Softmax(t) -> p", &[("axis", &[-1])]),
        node("MatMul(p, v) -> y", &[]),
    ];
    nodes.insert(0, node("Cast(scale) -> scale_c", &[("to", &[if half { 10 } else { 1 }])]));
    ModelProto { opset_import: vec![opset("", 20)], ..model(inputs, nodes, vec![floats("scale", &[1], &[0.5])], "y") }
}

#[test]
fn attention_of_inputs_of_four_dimensions_is_one_dispatch() {
    let shape = [1, 3, 20, 8];
    let numbers = |step: usize| -> Vec<f32> { (0..480).map(|i| (i * step % 37) as f32 / 16.0 - 1.0).collect() };
    let inputs = [5, 7, 11].map(|step| from_f32(&shape, &numbers(step)));
    let [q, k, v] = [5, 7, 11].map(|step| numbers(step).iter().map(|x| f64::from(*x)).collect::<Vec<f64>>());
    let mut expected = vec![0.0; 480];
    for head in 0..3 {
        for row in 0..20 {
            let at = |token: usize| (head * 20 + token) * 8;
            let score = |key: usize| (0..8).map(|d| q[at(row) + d] * k[at(key) + d]).sum::<f64>() * 0.5;
            let powers: Vec<f64> = (0..20).map(|key| score(key).exp()).collect();
            let total: f64 = powers.iter().sum();
            for d in 0..8 {
                expected[at(row) + d] = (0..20).map(|key| powers[key] / total * v[at(key) + d]).sum();
            }
        }
    }
    for backend in [Some(Monopour::cpu()), Monopour::gpu(), Monopour::portable()].into_iter().flatten() {
        for half in [false, true] {
            let model = Model::from_bytes(&plain(half).encode_to_vec(), "m.onnx", Path::new(""));
            let model = model.unwrap_or_else(|e| panic!("{e}"));
            let options =
                CompileOptions { targets: vec![backend.target().clone()], verify: true, ..Default::default() };
            let compiled = compile_onnx(&model, &options).unwrap_or_else(|e| panic!("{e}"));
            assert!(compiled.report.remarks.0.is_empty(), "{}: {}", backend.name(), compiled.report.remarks);
            // Sixteenths are f16 numbers.
            let dtype = if half { Dtype::F16 } else { Dtype::F32 };
            let given = inputs.clone().map(|x| HostTensor { dtype, ..x });
            let run = backend.run_program(compiled.program, &given).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(run.cost.map(|c| c.dispatches), Some(1), "{}, half: {half}", backend.name());
            let found = run.outputs[0].to_f64();
            let worst = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(worst < if half { 4e-3 } else { 1e-6 }, "{}, half: {half}: {worst:e}", backend.name());
        }
    }
}

/// Software adapters leave loops after some iterations, silently: the host refuses as many keys.
#[test]
fn too_many_keys_are_refused() {
    let Some(gpu) = Monopour::gpu() else { return };
    let TargetDescription::Gpu(adapter) = gpu.target() else { return };
    let cases = selected(true);
    let case = cases.iter().find(|c| c.name == "attention/dynamic/1x1x70").expect("it is one of the suite");
    let options = CompileOptions { targets: vec![gpu.target().clone()], ..Default::default() };
    let program = compile(case.text.as_bytes(), "dynamic", &options).expect("it compiles").program;
    let keys = 65_537;
    let [q, k] = [1, keys].map(|n| from_f32(&[1, n, 24], &vec![1.0; n * 24]));
    match (gpu.run_program(program, &[q, k.clone(), k]), adapter.is_cpu_adapter()) {
        (Err(message), true) => assert!(message.contains("takes at most 65536 keys"), "{message}"),
        (Ok(run), false) => assert_eq!(run.outputs[0].to_f64(), vec![1.0; 24]),
        (other, _) => panic!("{other:?}"),
    }
}
