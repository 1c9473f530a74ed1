//! ONNX models: what is refused, and what the import makes of shapes, constants and functions.

use monopour_frontend::import::{ImportOptions, run_onnx};
use monopour_frontend::onnx::DataType::{Bool, F32};
use monopour_frontend::onnx::Model;
use monopour_frontend::onnx::proto::{FunctionProto, ModelProto, NodeProto, StringStringEntryProto, TensorProto};
use monopour_ir::{Context, Diagnostics};
use monopour_testkit::onnx::{floats, graph, ints, model, node, untyped, value, with_graph, with_int};
use prost::Message;
use std::collections::BTreeMap;
use std::path::Path;

pub(crate) fn open(proto: &ModelProto) -> Result<Model, Diagnostics> {
    Model::from_bytes(&proto.encode_to_vec(), "m.onnx", Path::new(""))
}

/// The module after import, as text.
pub(crate) fn import(proto: &ModelProto, dims: &[(&str, i64)]) -> Result<String, Diagnostics> {
    let model = open(proto)?;
    let dims: BTreeMap<String, i64> = dims.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect();
    let options = ImportOptions { dims, ..ImportOptions::default() };
    Context::scope(|cx| Ok(run_onnx(cx, &model, &options)?.module.op().to_string()))
}

pub(crate) fn refused<T>(made: Result<T, Diagnostics>, code: &str, text: &str) {
    let Err(found) = made else { panic!("{code} expected: {text}") };
    let all = found.to_string();
    assert!(found.0.iter().any(|d| d.code == code && d.help.is_some()) && all.contains(text), "{code} {text}: {all}");
}

#[test]
fn files_that_are_no_models_are_refused() {
    refused(Model::from_bytes(b"version https://git-lfs", "m.onnx", Path::new("")), "F0040", "not an ONNX model");
    let empty = ModelProto::default();
    refused(open(&empty), "F0040", "no graph");
    let bytes = model(vec![value("x", F32, &["4"])], vec![node("Relu", &["x"], &["y"])], vec![], "y").encode_to_vec();
    // A cut falls within the graph, or before or within the version of its ops.
    for end in 0..bytes.len() {
        let Err(found) = Model::from_bytes(&bytes[..end], "m.onnx", Path::new("")) else { panic!("{end} bytes") };
        assert!(found.0.iter().all(|d| ["F0040", "F0041"].contains(&d.code) && d.help.is_some()), "{end}: {found}");
    }
    assert!(open(&model(vec![value("x", F32, &["4"])], vec![node("Relu", &["x"], &["y"])], vec![], "y")).is_ok());
}

#[test]
fn graphs_that_are_not_valid_are_refused() {
    let x = || vec![value("x", F32, &["4"])];
    let undefined = model(x(), vec![node("Add", &["x", "z"], &["y"])], vec![], "y");
    refused(open(&undefined), "F0041", "reads 'z', which is not defined");
    let cycle = model(x(), vec![node("Add", &["x", "b"], &["a"]), node("Relu", &["a"], &["b"])], vec![], "b");
    refused(open(&cycle), "F0041", "reads its own result");
    let twice = model(x(), vec![node("Relu", &["x"], &["y"]), node("Abs", &["x"], &["y"])], vec![], "y");
    refused(open(&twice), "F0041", "the result of two nodes");
    let mut future = model(x(), vec![node("Relu", &["x"], &["y"])], vec![], "y");
    future.opset_import[0].version = 99;
    refused(open(&future), "F0041", "version 99");
}

#[test]
fn functions_that_call_themselves_are_refused() {
    let call = NodeProto { domain: "local".to_owned(), ..node("F", &["x"], &["y"]) };
    let mut proto = model(vec![value("x", F32, &["4"])], vec![call.clone()], vec![], "y");
    proto.functions.push(FunctionProto {
        name: "F".to_owned(),
        domain: "local".to_owned(),
        input: vec!["x".to_owned()],
        output: vec!["y".to_owned()],
        node: vec![call],
        ..FunctionProto::default()
    });
    refused(open(&proto), "F0041", "call one another");
}

#[test]
fn all_missing_ops_are_listed_at_once() {
    let nodes = vec![node("Fancy", &["x"], &["a"]), node("Fancier", &["a"], &["b"]), node("Fancy", &["b"], &["y"])];
    let proto = model(vec![value("x", F32, &["4"])], nodes, vec![], "y");
    let Err(found) = import(&proto, &[]) else { panic!("the ops are missing") };
    assert_eq!((found.0.len(), found.0[0].code), (1, "F0042"));
    assert_eq!(found.0[0].notes, ["Fancier of ai.onnx 17: b", "Fancy of ai.onnx 17: a, y"]);
}

#[test]
fn nodes_that_are_not_supported_are_named() {
    let proto = model(
        vec![value("x", F32, &["4"]), value("z", F32, &["5"])],
        vec![node("Add", &["x", "z"], &["sum"])],
        vec![],
        "sum",
    );
    refused(import(&proto, &[]), "F0043", "node 'sum' (Add): shapes [4] and [5] do not broadcast");
    let bad = with_int(node("Softmax", &["x"], &["y"]), "axis", 7);
    refused(
        import(&model(vec![value("x", F32, &["4"])], vec![bad], vec![], "y"), &[]),
        "F0043",
        "axis 7 is not one of 1",
    );
}

#[test]
fn constants_that_cannot_be_read_are_refused() {
    let mut proto = model(vec![value("x", F32, &["4"])], vec![node("Add", &["x", "w"], &["y"])], vec![], "y");
    let entry = |value: &str| StringStringEntryProto { key: "location".to_owned(), value: value.to_owned() };
    let outside = TensorProto { data_location: 1, external_data: vec![entry("../w.bin")], ..ints("w", &[]) };
    proto.graph.as_mut().expect("a graph").initializer = vec![TensorProto { dims: vec![4], ..outside }];
    refused(open(&proto), "F0044", "initializer 'w': its file ../w.bin is not in the model's folder");
    proto.graph.as_mut().expect("a graph").initializer = vec![TensorProto { dims: vec![1 << 60], ..ints("w", &[1]) }];
    refused(open(&proto), "F0044", "too large");
}

/// A convolution with a bias, and a norm of it.
fn normed(more: Vec<NodeProto>, output: &str) -> ModelProto {
    let conv = node("Conv", &["x", "w", "b"], &["c"]);
    let norm = node("BatchNormalization", &["c", "scale", "shift", "mean", "variance"], &["n"]);
    let pairs = |name: &str, values: [f32; 2]| floats(name, &[2], &values);
    let constants = vec![
        floats("w", &[2, 1, 1, 2], &[1.0, 2.0, 3.0, 4.0]),
        pairs("b", [0.5, -1.0]),
        pairs("scale", [2.0, 3.0]),
        pairs("shift", [1.5, 0.0]),
        pairs("mean", [1.5, 2.0]),
        pairs("variance", [4.0 - 1e-5, 1.0 - 1e-5]),
    ];
    let nodes = [vec![conv, norm], more].concat();
    model(vec![value("x", F32, &["1", "1", "4", "4"])], nodes, constants, output)
}

#[test]
fn norms_are_folded_into_weights() {
    let products = |proto: &ModelProto| {
        let text = import(proto, &[]).expect("imports");
        (text.matches("arith.mulf").count(), text)
    };
    let (alone, text) = products(&normed(vec![], "n"));
    // Factors 1 and 3; 0.5 - 1.5 + 1.5 and (-1 - 2) * 3.
    assert_eq!(alone, 1, "{text}");
    assert!(text.contains("[1.000000e+00, 2.000000e+00]") && text.contains("[9.000000e+00, 1.200000e+01]"), "{text}");
    assert!(text.contains("dense<[5.000000e-01, -9.000000e+00]>"), "{text}");
    // Products whose output channels lie in other ways.
    for (product, shape) in [
        (node("ConvTranspose", &["x", "k"], &["c"]), vec![1, 2, 1, 2]),
        (with_int(node("Gemm", &["z", "k", "b"], &["c"]), "transB", 1), vec![2, 3]),
        (node("Gemm", &["z", "k"], &["c"]), vec![3, 2]),
    ] {
        let mut proto = normed(vec![], "n");
        let of = proto.graph.as_mut().expect("a graph");
        of.node[0] = product;
        of.input.push(value("z", F32, &["5", "3"]));
        let elements: Vec<f32> = (0..shape.iter().product::<i64>()).map(|v| v as f32).collect();
        of.initializer.push(floats("k", &shape, &elements));
        assert_eq!(products(&proto).0, 1);
    }
    // Another reader of the convolution, and its result as the model's.
    assert_eq!(products(&normed(vec![node("Add", &["c", "n"], &["s"])], "s")).0, 2);
    let mut both = normed(vec![], "n");
    both.graph.as_mut().expect("a graph").output.push(untyped("c"));
    assert_eq!(products(&both).0, 2);
    // A reader in a graph within a node.
    let branch = |name: &str| graph(vec![], vec![node("Neg", &["c"], &[name])], &[name]);
    let chosen =
        with_graph(with_graph(node("If", &["p"], &["i"]), "then_branch", branch("t")), "else_branch", branch("e"));
    let mut within = normed(vec![chosen, node("Add", &["i", "n"], &["s"])], "s");
    within.graph.as_mut().expect("a graph").input.push(value("p", Bool, &[]));
    assert_eq!(products(&within).0, 2);
    // Numbers that are not constant.
    let mut given = normed(vec![], "n");
    let of = given.graph.as_mut().expect("a graph");
    of.initializer.retain(|c| c.name != "mean");
    of.input.push(value("mean", F32, &["2"]));
    assert_eq!(products(&given).0, 2);
    // A factor that is no number.
    let mut broken = normed(vec![], "n");
    broken.graph.as_mut().expect("a graph").initializer.iter_mut().filter(|c| c.name == "variance").for_each(|c| {
        *c = floats("variance", &[2], &[-1.0, 1.0]);
    });
    assert_eq!(products(&broken).0, 2);
}

#[test]
fn symbols_are_bound_by_their_names() {
    let proto = model(vec![value("x", F32, &["n", "3"])], vec![node("Relu", &["x"], &["y"])], vec![], "y");
    let open = import(&proto, &[]).expect("imports");
    assert!(open.contains("tensor<?x3xf32>") && open.contains(r#"monopour.name = "x""#), "{open}");
    let bound = import(&proto, &[("n", 5)]).expect("imports");
    assert!(bound.contains("tensor<5x3xf32>") && !bound.contains('?'), "{bound}");
    refused(import(&proto, &[("m", 5)]), "F0045", "no dimension is called 'm'");
}

#[test]
fn shape_arithmetic_is_computed_at_import() {
    // x of [n, 6] becomes [n, 2, 3], by way of its shape.
    let nodes = vec![
        node("Shape", &["x"], &["shape"]),
        node("Gather", &["shape", "zero"], &["rows"]),
        with_int(node("Concat", &["rows", "rest"], &["new"]), "axis", 0),
        node("Reshape", &["x", "new"], &["y"]),
    ];
    let constants = vec![ints("zero", &[0]), ints("rest", &[2, 3])];
    let text = import(&model(vec![value("x", F32, &["n", "6"])], nodes, constants, "y"), &[]).expect("imports");
    assert!(text.contains("tensor.expand_shape") && text.contains("tensor<?x2x3xf32>"), "{text}");
    assert!(!text.contains("linalg") && !text.contains("tensor.reshape"), "{text}");
}

#[test]
fn functions_are_inlined_with_their_attributes() {
    let call = NodeProto { domain: "local".to_owned(), ..node("Twice", &["x"], &["y"]) };
    let mut proto = model(vec![value("x", F32, &["4"])], vec![call], vec![], "y");
    proto.functions.push(FunctionProto {
        name: "Twice".to_owned(),
        domain: "local".to_owned(),
        input: vec!["a".to_owned()],
        output: vec!["c".to_owned()],
        node: vec![node("Relu", &["a"], &["b"]), node("Abs", &["b"], &["c"])],
        ..FunctionProto::default()
    });
    let text = import(&proto, &[]).expect("imports");
    assert!(text.contains("arith.maximumf") && text.contains("math.absf"), "{text}");
}

#[test]
fn an_initializer_that_is_an_input_is_a_constant() {
    let w = floats("w", &[4], &[1.0, 2.0, 3.0, 4.0]);
    let inputs = vec![value("x", F32, &["4"]), value("w", F32, &["4"])];
    let text = import(&model(inputs, vec![node("Add", &["x", "w"], &["y"])], vec![w], "y"), &[]).expect("imports");
    assert!(text.contains("dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]>"), "{text}");
    assert_eq!(text.matches("monopour.name").count(), 2, "one argument, one result: {text}");
}
