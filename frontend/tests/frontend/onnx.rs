//! ONNX models: what is refused, and what the import makes of shapes, constants and functions.

use monopour_frontend::import::{ImportOptions, run_onnx};
use monopour_frontend::onnx::proto::{
    AttributeProto, DimensionProto, DimensionValue, FunctionProto, GraphProto, ModelProto, NodeProto,
    OperatorSetIdProto, StringStringEntryProto, TensorProto, TensorShapeProto, TensorTypeProto, TypeProto, TypeValue,
    ValueInfoProto, attribute_type,
};
use monopour_frontend::onnx::{DataType, Model};
use monopour_ir::{Context, Diagnostics};
use prost::Message;
use std::collections::BTreeMap;
use std::path::Path;

/// A value of f32; sizes are numbers or names.
pub(crate) fn value(name: &str, shape: &[&str]) -> ValueInfoProto {
    let dim = |size: &&str| DimensionProto {
        value: Some(match size.parse() {
            Ok(number) => DimensionValue::Value(number),
            Err(_) => DimensionValue::Param((*size).to_owned()),
        }),
    };
    let shape = Some(TensorShapeProto { dim: shape.iter().map(dim).collect() });
    let tensor = TensorTypeProto { elem_type: DataType::F32.number(), shape };
    ValueInfoProto { name: name.to_owned(), r#type: Some(TypeProto { value: Some(TypeValue::Tensor(tensor)) }) }
}

/// A node that is named as its first result.
pub(crate) fn node(op: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    let strings = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
    let name = outputs[0].to_owned();
    NodeProto { op_type: op.to_owned(), input: strings(inputs), output: strings(outputs), name, ..NodeProto::default() }
}

pub(crate) fn ints(name: &str, values: &[i64]) -> TensorProto {
    let (dims, data_type) = (vec![values.len() as i64], DataType::I64.number());
    TensorProto { name: name.to_owned(), dims, data_type, int64_data: values.to_vec(), ..TensorProto::default() }
}

pub(crate) fn graph(inputs: Vec<ValueInfoProto>, nodes: Vec<NodeProto>, output: &str) -> GraphProto {
    GraphProto {
        name: "g".to_owned(),
        input: inputs,
        node: nodes,
        output: vec![ValueInfoProto { name: output.to_owned(), r#type: None }],
        ..GraphProto::default()
    }
}

pub(crate) fn model(graph: GraphProto) -> ModelProto {
    let opset_import = vec![OperatorSetIdProto { domain: String::new(), version: 17 }];
    ModelProto { ir_version: 8, opset_import, graph: Some(graph), ..ModelProto::default() }
}

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
    let bytes = model(graph(vec![value("x", &["4"])], vec![node("Relu", &["x"], &["y"])], "y")).encode_to_vec();
    // A cut falls within the graph, or before or within the version of its ops.
    for end in 0..bytes.len() {
        let Err(found) = Model::from_bytes(&bytes[..end], "m.onnx", Path::new("")) else { panic!("{end} bytes") };
        assert!(found.0.iter().all(|d| ["F0040", "F0041"].contains(&d.code) && d.help.is_some()), "{end}: {found}");
    }
    assert!(open(&model(graph(vec![value("x", &["4"])], vec![node("Relu", &["x"], &["y"])], "y"))).is_ok());
}

#[test]
fn graphs_that_are_not_valid_are_refused() {
    let x = || vec![value("x", &["4"])];
    let undefined = graph(x(), vec![node("Add", &["x", "z"], &["y"])], "y");
    refused(open(&model(undefined)), "F0041", "reads 'z', which is not defined");
    let cycle = graph(x(), vec![node("Add", &["x", "b"], &["a"]), node("Relu", &["a"], &["b"])], "b");
    refused(open(&model(cycle)), "F0041", "reads its own result");
    let twice = graph(x(), vec![node("Relu", &["x"], &["y"]), node("Abs", &["x"], &["y"])], "y");
    refused(open(&model(twice)), "F0041", "the result of two nodes");
    let mut future = model(graph(x(), vec![node("Relu", &["x"], &["y"])], "y"));
    future.opset_import[0].version = 99;
    refused(open(&future), "F0041", "version 99");
}

#[test]
fn functions_that_call_themselves_are_refused() {
    let call = NodeProto { domain: "local".to_owned(), ..node("F", &["x"], &["y"]) };
    let mut proto = model(graph(vec![value("x", &["4"])], vec![call.clone()], "y"));
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
    let proto = model(graph(vec![value("x", &["4"])], nodes, "y"));
    let Err(found) = import(&proto, &[]) else { panic!("the ops are missing") };
    assert_eq!((found.0.len(), found.0[0].code), (1, "F0042"));
    assert_eq!(found.0[0].notes, ["Fancier of ai.onnx 17: b", "Fancy of ai.onnx 17: a, y"]);
}

#[test]
fn nodes_that_are_not_supported_are_named() {
    let proto =
        model(graph(vec![value("x", &["4"]), value("z", &["5"])], vec![node("Add", &["x", "z"], &["sum"])], "sum"));
    refused(import(&proto, &[]), "F0043", "node 'sum' (Add): shapes [4] and [5] do not broadcast");
    let rank =
        AttributeProto { name: "axis".to_owned(), r#type: attribute_type::INT, i: 7, ..AttributeProto::default() };
    let bad = NodeProto { attribute: vec![rank], ..node("Softmax", &["x"], &["y"]) };
    refused(import(&model(graph(vec![value("x", &["4"])], vec![bad], "y")), &[]), "F0043", "axis 7 is not one of 1");
}

#[test]
fn constants_that_cannot_be_read_are_refused() {
    let mut proto = model(graph(vec![value("x", &["4"])], vec![node("Add", &["x", "w"], &["y"])], "y"));
    let entry = |value: &str| StringStringEntryProto { key: "location".to_owned(), value: value.to_owned() };
    let outside = TensorProto { data_location: 1, external_data: vec![entry("../w.bin")], ..ints("w", &[]) };
    proto.graph.as_mut().expect("a graph").initializer = vec![TensorProto { dims: vec![4], ..outside }];
    refused(open(&proto), "F0044", "initializer 'w': its file ../w.bin is not in the model's folder");
    proto.graph.as_mut().expect("a graph").initializer = vec![TensorProto { dims: vec![1 << 60], ..ints("w", &[1]) }];
    refused(open(&proto), "F0044", "too large");
}

#[test]
fn symbols_are_bound_by_their_names() {
    let proto = model(graph(vec![value("x", &["n", "3"])], vec![node("Relu", &["x"], &["y"])], "y"));
    let open = import(&proto, &[]).expect("imports");
    assert!(open.contains("tensor<?x3xf32>") && open.contains(r#"monopour.name = "x""#), "{open}");
    let bound = import(&proto, &[("n", 5)]).expect("imports");
    assert!(bound.contains("tensor<5x3xf32>") && !bound.contains('?'), "{bound}");
    refused(import(&proto, &[("m", 5)]), "F0045", "no dimension is called 'm'");
}

#[test]
fn shape_arithmetic_is_computed_at_import() {
    // x of [n, 6] becomes [n, 2, 3], by way of its shape.
    let nodes = [
        node("Shape", &["x"], &["shape"]),
        node("Gather", &["shape", "zero"], &["rows"]),
        node("Concat", &["rows", "rest"], &["new"]),
        node("Reshape", &["x", "new"], &["y"]),
    ];
    let mut concat = nodes[2].clone();
    concat.attribute.push(AttributeProto {
        name: "axis".to_owned(),
        r#type: attribute_type::INT,
        ..AttributeProto::default()
    });
    let nodes = vec![nodes[0].clone(), nodes[1].clone(), concat, nodes[3].clone()];
    let mut graph = graph(vec![value("x", &["n", "6"])], nodes, "y");
    graph.initializer = vec![ints("zero", &[0]), ints("rest", &[2, 3])];
    let text = import(&model(graph), &[]).expect("imports");
    assert!(text.contains("tensor.expand_shape") && text.contains("tensor<?x2x3xf32>"), "{text}");
    assert!(!text.contains("linalg") && !text.contains("tensor.reshape"), "{text}");
}

#[test]
fn functions_are_inlined_with_their_attributes() {
    let call = NodeProto { domain: "local".to_owned(), ..node("Twice", &["x"], &["y"]) };
    let mut proto = model(graph(vec![value("x", &["4"])], vec![call], "y"));
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
    let mut graph = graph(vec![value("x", &["4"]), value("w", &["4"])], vec![node("Add", &["x", "w"], &["y"])], "y");
    let float_data = vec![1.0, 2.0, 3.0, 4.0];
    let (dims, data_type) = (vec![4], DataType::F32.number());
    graph.initializer =
        vec![TensorProto { name: "w".to_owned(), dims, data_type, float_data, ..TensorProto::default() }];
    let text = import(&model(graph), &[]).expect("imports");
    assert!(text.contains("dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]>"), "{text}");
    assert_eq!(text.matches("monopour.name").count(), 2, "one argument, one result: {text}");
}
