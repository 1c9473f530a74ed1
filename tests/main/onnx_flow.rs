//! Sorts, running sums, scatters and control flow of sizes that ONNX's suite lacks, against plain loops.

use crate::backend::Monopour;
use monopour::onnx::DataType::{Bool, F32, I64};
use monopour::onnx::Model;
use monopour::onnx::proto::GraphProto;
use monopour::{CompileOptions, compile_onnx};
use monopour_testkit::onnx::{graph, ints, model_of, node, scalar, value, with_graph, with_int};
use monopour_testkit::{Data, Dtype, HostTensor};
use prost::Message;
use std::path::Path;

/// The results of a model on a device.
fn run(backend: &Monopour, graph: GraphProto, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let model =
        Model::from_bytes(&model_of(graph, 18).encode_to_vec(), "m.onnx", Path::new(".")).expect("a valid model");
    let options = CompileOptions { targets: vec![backend.target().clone()], ..CompileOptions::default() };
    let compiled = compile_onnx(&model, &options).unwrap_or_else(|found| panic!("{found}"));
    backend.run_program(compiled.program, inputs).expect("it runs").outputs
}

fn floats(shape: &[usize], elements: &[f64]) -> HostTensor {
    HostTensor { dtype: Dtype::F32, shape: shape.to_vec(), data: Data::Float(elements.to_vec()) }
}

fn integers(shape: &[usize], elements: &[i64]) -> HostTensor {
    HostTensor { dtype: Dtype::Int(64), shape: shape.to_vec(), data: Data::Int(elements.to_vec()) }
}

/// Whole numbers below `below`, with many that are equal.
fn numbers(count: usize, below: usize) -> Vec<f64> {
    (0..count).map(|i| ((i * 7919 + i / 13 * 31) % below) as f64).collect()
}

fn check(backend: &Monopour) {
    largest_of_blocks(backend);
    distinct_elements(backend);
    positions_and_sums(backend);
    last_of_many_updates(backend);
    loops(backend);
    branches_and_sequences(backend);
}

fn largest_of_blocks(backend: &Monopour) {
    let (n, k) = (2500, 40);
    let x = numbers(n, 900);
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|i, j| x[*j].total_cmp(&x[*i]));
    order.truncate(k);
    let mut g = graph(vec![value("x", F32, &["2500"])], vec![node("TopK", &["x", "k"], &["v", "i"])], &["v", "i"]);
    g.initializer = vec![ints("k", &[k as i64])];
    let values: Vec<f64> = order.iter().map(|i| x[*i]).collect();
    let indices: Vec<i64> = order.iter().map(|i| *i as i64).collect();
    assert_eq!(run(backend, g, &[floats(&[n], &x)]), [floats(&[k], &values), integers(&[k], &indices)]);
}

fn distinct_elements(backend: &Monopour) {
    let x = numbers(200, 30);
    let mut first: Vec<usize> = vec![];
    for (i, e) in x.iter().enumerate() {
        if !first.iter().any(|f| x[*f] == *e) {
            first.push(i);
        }
    }
    let group = |e: &f64| first.iter().position(|f| x[*f] == *e).expect("every element has a group") as i64;
    let values: Vec<f64> = first.iter().map(|f| x[*f]).collect();
    let groups: Vec<i64> = x.iter().map(group).collect();
    let counts: Vec<i64> = (0..first.len() as i64).map(|g| groups.iter().filter(|x| **x == g).count() as i64).collect();
    let first: Vec<i64> = first.into_iter().map(|f| f as i64).collect();
    let unique = with_int(node("Unique", &["x"], &["v", "i", "g", "c"]), "sorted", 0);
    let g = graph(vec![value("x", F32, &["n"])], vec![unique], &["v", "i", "g", "c"]);
    let m = first.len();
    let expected = [floats(&[m], &values), integers(&[m], &first), integers(&[200], &groups), integers(&[m], &counts)];
    assert_eq!(run(backend, g, &[floats(&[200], &x)]), expected);
}

fn positions_and_sums(backend: &Monopour) {
    // Longer than what is summed directly, of known and unknown size.
    let x = numbers(700, 3);
    let at: Vec<i64> = x.iter().enumerate().filter(|(_, e)| **e != 0.0).map(|(i, _)| i as i64).collect();
    let sums: Vec<f64> = (0..700).map(|i| x[i + 1..].iter().sum()).collect();
    for size in ["700", "n"] {
        let sum = with_int(with_int(node("CumSum", &["x", "axis"], &["s"]), "exclusive", 1), "reverse", 1);
        let nodes = vec![node("NonZero", &["x"], &["p"]), sum];
        let mut g = graph(vec![value("x", F32, &[size])], nodes, &["p", "s"]);
        g.initializer = vec![scalar("axis", 0)];
        let found = run(backend, g, &[floats(&[700], &x)]);
        assert_eq!(found, [integers(&[1, at.len()], &at), floats(&[700], &sums)], "size {size}");
    }
    let none = graph(vec![value("x", F32, &["n"])], vec![node("NonZero", &["x"], &["p"])], &["p"]);
    assert_eq!(run(backend, none, &[floats(&[5], &[0.0; 5])]), [integers(&[1, 0], &[])]);
    let empty = graph(vec![value("x", F32, &["0", "2"])], vec![node("NonZero", &["x"], &["p"])], &["p"]);
    assert_eq!(run(backend, empty, &[floats(&[0, 2], &[])]), [integers(&[2, 0], &[])]);
}

fn last_of_many_updates(backend: &Monopour) {
    // More updates than are compared with every place.
    let (n, count) = (600, 2100);
    let (x, updates) = (numbers(n, 50), numbers(count, 1000));
    let places: Vec<i64> = (0..count).map(|i| ((i * 31) % 577) as i64 - if i % 2 == 0 { 600 } else { 0 }).collect();
    let mut expected = x.clone();
    for (place, update) in places.iter().zip(&updates) {
        expected[place.rem_euclid(600) as usize] = *update;
    }
    let inputs = vec![value("x", F32, &["600"]), value("i", I64, &["2100", "1"]), value("u", F32, &["2100"])];
    let g = graph(inputs, vec![node("ScatterND", &["x", "i", "u"], &["y"])], &["y"]);
    let operands = [floats(&[n], &x), integers(&[count, 1], &places), floats(&[count], &updates)];
    assert_eq!(run(backend, g, &operands), [floats(&[n], &expected)]);
}

fn loops(backend: &Monopour) {
    // Doubles until an element is 50 or more, and stacks the numbers of the iterations.
    let nodes = vec![
        node("Add", &["a", "a"], &["b"]),
        with_int(node("ReduceMax", &["b"], &["most"]), "keepdims", 0),
        node("Less", &["most", "limit"], &["on"]),
    ];
    let inputs = vec![value("number", I64, &[]), value("c", Bool, &[]), value("a", F32, &["2"])];
    let mut body = graph(inputs, nodes, &["on", "b", "stacked"]);
    body.node.push(node("Identity", &["number"], &["stacked"]));
    let whole = with_graph(node("Loop", &["count", "", "x"], &["y", "s"]), "body", body);
    let inputs = vec![value("count", I64, &[]), value("limit", F32, &[]), value("x", F32, &["2"])];
    let g = graph(inputs, vec![whole], &["y", "s"]);
    let operands = [integers(&[], &[100]), floats(&[], &[50.0]), floats(&[2], &[1.0, 3.0])];
    assert_eq!(run(backend, g, &operands), [floats(&[2], &[32.0, 96.0]), integers(&[5], &[0, 1, 2, 3, 4])]);

    // A carried value that grows.
    let inputs = vec![value("number", I64, &[]), value("c", Bool, &[]), value("a", F32, &["m"])];
    let join = with_int(node("Concat", &["a", "x"], &["b"]), "axis", 0);
    let body = graph(inputs, vec![node("Identity", &["c"], &["on"]), join], &["on", "b"]);
    let grows = with_graph(node("Loop", &["count", "", "x"], &["y"]), "body", body);
    let inputs = vec![value("count", I64, &[]), value("x", F32, &["2"])];
    let g = graph(inputs, vec![grows], &["y"]);
    let operands = [integers(&[], &[2]), floats(&[2], &[1.0, 2.0])];
    assert_eq!(run(backend, g, &operands), [floats(&[6], &[1.0, 2.0, 1.0, 2.0, 1.0, 2.0])]);
}

fn branches_and_sequences(backend: &Monopour) {
    let twice = graph(vec![], vec![with_int(node("Concat", &["x", "x"], &["t"]), "axis", 0)], &["t"]);
    let once = graph(vec![], vec![node("Relu", &["x"], &["e"])], &["e"]);
    let branch = with_graph(with_graph(node("If", &["c"], &["z"]), "then_branch", twice), "else_branch", once);
    let nodes = vec![branch, node("Mul", &["z", "z"], &["y"])];
    let truth = |value: i64| HostTensor { dtype: Dtype::Int(1), shape: vec![], data: Data::Int(vec![value]) };
    let x = floats(&[2], &[-1.0, 2.0]);
    for (value_of, shape, expected) in [(1, 4, &[1.0, 4.0, 1.0, 4.0][..]), (0, 2, &[0.0, 4.0])] {
        let g = graph(vec![value("c", Bool, &[]), value("x", F32, &["2"])], nodes.clone(), &["y"]);
        assert_eq!(run(backend, g, &[truth(value_of), x.clone()]), [floats(&[shape], expected)]);
    }

    let body =
        graph(vec![value("p", F32, &["2"]), value("k", F32, &["2"])], vec![node("Mul", &["p", "k"], &["q"])], &["q"]);
    let nodes = vec![
        with_int(node("SplitToSequence", &["x"], &["parts"]), "keepdims", 0),
        with_graph(node("SequenceMap", &["parts", "k"], &["made"]), "body", body),
        node("SequenceInsert", &["made", "k", "first"], &["more"]),
        with_int(with_int(node("ConcatFromSequence", &["more"], &["y"]), "axis", 0), "new_axis", 1),
        node("SequenceLength", &["more"], &["n"]),
    ];
    let mut g = graph(vec![value("x", F32, &["2", "2"]), value("k", F32, &["2"])], nodes, &["y", "n"]);
    g.initializer = vec![scalar("first", 0)];
    let operands = [floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0]), floats(&[2], &[10.0, 100.0])];
    let expected = [floats(&[3, 2], &[10.0, 100.0, 10.0, 200.0, 30.0, 400.0]), integers(&[], &[3])];
    assert_eq!(run(backend, g, &operands), expected);
}

#[test]
fn sizes_that_data_decides_and_control_flow_are_right_on_the_cpu() {
    check(&Monopour::cpu());
}

#[test]
fn sizes_that_data_decides_and_control_flow_are_right_on_a_gpu() {
    if let Some(gpu) = Monopour::gpu() {
        check(&gpu);
    }
}
