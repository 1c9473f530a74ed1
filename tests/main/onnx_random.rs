//! Random numbers of ONNX models: how they are distributed, and that seed, name and place decide them.

use crate::backend::Monopour;
use crate::onnx::{from_f32, input, model, node};
use monopour::onnx::proto::{ModelProto, NodeProto};
use monopour::onnx::{DataType, Model};
use monopour::{CompileOptions, compile_onnx};
use monopour_testkit::HostTensor;
use monopour_testkit::onnx::{with_float, with_ints};
use prost::Message;
use std::path::Path;

const SHAPE: [i64; 2] = [300, 200];

fn run(backend: &Monopour, proto: &ModelProto, inputs: &[HostTensor]) -> Vec<f64> {
    let read = Model::from_bytes(&proto.encode_to_vec(), "m.onnx", Path::new("")).unwrap_or_else(|e| panic!("{e}"));
    let options = CompileOptions { targets: vec![backend.target().clone()], verify: true, ..Default::default() };
    let program = compile_onnx(&read, &options).unwrap_or_else(|e| panic!("{e}")).program;
    backend.run_program(program, inputs).unwrap_or_else(|e| panic!("{e}")).outputs[0].to_f64()
}

/// The numbers of a node with an input of the shape, on the CPU and on a GPU, if there is one; both draw the same, but for the
/// rounding of functions.
fn drawn(node: &NodeProto, sizes: [&str; 2], x: f32) -> Vec<f64> {
    let proto = model(vec![input("x", DataType::F32, &sizes)], vec![node.clone()], vec![], "y");
    let count = (SHAPE[0] * SHAPE[1]) as usize;
    let inputs = [from_f32(&SHAPE.map(|size| size as usize), &vec![x; count])];
    let numbers = run(&Monopour::cpu(), &proto, &inputs);
    assert_eq!(numbers.len(), count);
    if let Some(gpu) = Monopour::gpu() {
        let found = run(&gpu, &proto, &inputs);
        let far = numbers.iter().zip(&found).find(|(a, b)| (*a - *b).abs() > 1e-3);
        assert!(far.is_none() && found.len() == count, "{}: {far:?}", node.op_type);
    }
    numbers
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

/// Of numbers `step` apart.
fn correlation(numbers: &[f64], step: usize) -> f64 {
    let middle = mean(numbers);
    let product = |(a, b): (&f64, &f64)| (a - middle) * (b - middle);
    let together: f64 = numbers.iter().zip(&numbers[step..]).map(product).sum();
    together / numbers.iter().map(|a| product((a, a))).sum::<f64>()
}

/// Moments within five deviations of theirs for so many numbers; neighbours in a row and a column have nothing in common.
#[test]
fn numbers_are_distributed_as_they_should() {
    let normal = with_float(with_float(node("RandomNormalLike(x) -> y", &[]), "mean", 3.0), "scale", 2.0);
    let uniform = with_float(with_float(node("RandomUniformLike(x) -> y", &[]), "low", -1.0), "high", 5.0);
    let count = (SHAPE[0] * SHAPE[1]) as f64;
    for (node, middle, variance, fourth) in [(normal, 3.0, 4.0, 3.0), (uniform, 2.0, 3.0, 1.8)] {
        let numbers = drawn(&node, ["300", "200"], 0.0);
        let power = |n: i32| numbers.iter().map(|v| (v - middle).powi(n)).sum::<f64>() / count;
        assert!((mean(&numbers) - middle).abs() < 5.0 * (variance / count).sqrt(), "{}", mean(&numbers));
        assert!((power(2) / variance - 1.0).abs() < 5.0 * ((fourth - 1.0) / count).sqrt(), "{}", power(2));
        assert!((power(4) / power(2).powi(2) / fourth - 1.0).abs() < 0.1, "{}", power(4));
        for step in [1, SHAPE[1] as usize] {
            assert!(
                correlation(&numbers, step).abs() < 5.0 / count.sqrt(),
                "{step} apart: {}",
                correlation(&numbers, step)
            );
        }
        if node.op_type == "RandomUniformLike" {
            assert!(numbers.iter().all(|v| (-1.0..5.0).contains(v)));
        }
    }
    let ones = drawn(&node("Bernoulli(x) -> y", &[]), ["300", "200"], 0.3);
    assert!(ones.iter().all(|v| *v == 0.0 || *v == 1.0), "truth values");
    assert!((mean(&ones) - 0.3).abs() < 5.0 * (0.21 / count).sqrt(), "{}", mean(&ones));
}

/// The same with a seed, another one, or a name; with sizes that are known at run time, and without an operand.
#[test]
fn seeds_names_and_places_decide() {
    let seeded = |seed: f32| with_float(node("RandomUniformLike(x) -> y", &[]), "seed", seed);
    let first = drawn(&seeded(1.0), ["300", "200"], 0.0);
    assert_eq!(first, drawn(&seeded(1.0), ["n", "m"], 7.0));
    let shaped = with_ints(with_float(node("RandomUniform() -> y", &[]), "seed", 1.0), "shape", &SHAPE);
    assert_eq!(first, drawn(&shaped, ["300", "200"], 0.0));
    let same = |a: &[f64], b: &[f64]| a.iter().zip(b).filter(|(a, b)| a == b).count();
    assert!(same(&first, &drawn(&seeded(2.0), ["300", "200"], 0.0)) < 10, "another seed");
    // Without seeds the results' names decide: the difference of two is not 0.
    let nodes =
        vec![node("RandomNormalLike(x) -> a", &[]), node("RandomNormalLike(x) -> b", &[]), node("Sub(a, b) -> y", &[])];
    let proto = model(vec![input("x", DataType::F32, &["300", "200"])], nodes, vec![], "y");
    let count = (SHAPE[0] * SHAPE[1]) as usize;
    let difference = run(&Monopour::cpu(), &proto, &[from_f32(&[300, 200], &vec![0.0; count])]);
    assert!(difference.iter().filter(|v| **v == 0.0).count() < 10, "two nodes");
}

#[test]
fn integers_are_not_drawn() {
    for text in ["RandomNormalLike(x) -> y", "RandomUniformLike(x) -> y"] {
        let node = monopour_testkit::onnx::with_int(node(text, &[]), "dtype", 7);
        let proto = model(vec![input("x", DataType::F32, &["3"])], vec![node], vec![], "y");
        let read = Model::from_bytes(&proto.encode_to_vec(), "m.onnx", Path::new("")).unwrap_or_else(|e| panic!("{e}"));
        let options = CompileOptions { targets: vec![Monopour::cpu().target().clone()], ..Default::default() };
        let refused = compile_onnx(&read, &options).err().unwrap_or_else(|| panic!("{text}: compiled"));
        assert!(refused.to_string().contains("random numbers of type"), "{refused}");
    }
}
