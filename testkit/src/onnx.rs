//! Builders of ONNX models; by the feature `onnx`.

use monopour_frontend::onnx::DataType;
use monopour_frontend::onnx::proto::{
    AttributeProto, DimensionProto, DimensionValue, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto,
    TensorShapeProto, TensorTypeProto, TypeProto, TypeValue, ValueInfoProto, attribute_type,
};

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// A tensor by its name; sizes are numbers or symbols.
pub fn value(name: &str, dtype: DataType, shape: &[&str]) -> ValueInfoProto {
    let dim = |size: &&str| DimensionProto {
        value: Some(match size.parse() {
            Ok(number) => DimensionValue::Value(number),
            Err(_) => DimensionValue::Param((*size).to_owned()),
        }),
    };
    let shape = Some(TensorShapeProto { dim: shape.iter().map(dim).collect() });
    let tensor = TensorTypeProto { elem_type: dtype.number(), shape };
    ValueInfoProto { name: name.to_owned(), r#type: Some(TypeProto { value: Some(TypeValue::Tensor(tensor)) }) }
}

/// A value by its name alone.
pub fn untyped(name: &str) -> ValueInfoProto {
    ValueInfoProto { name: name.to_owned(), r#type: None }
}

/// A node that is named as its first result.
pub fn node(op: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    NodeProto {
        name: outputs[0].to_owned(),
        op_type: op.to_owned(),
        input: strings(inputs),
        output: strings(outputs),
        ..NodeProto::default()
    }
}

/// A node, `op(a, b) -> c`, with attributes of integers: lists where their name is a plural.
pub fn parsed_node(text: &str, attributes: &[(&str, &[i64])]) -> NodeProto {
    let (call, outputs) = text.split_once(" -> ").expect("results follow an arrow");
    let (op, operands) = call.trim_end_matches(')').split_once('(').expect("operands stand in parentheses");
    let made = node(op, &operands.split(", ").collect::<Vec<_>>(), &outputs.split(", ").collect::<Vec<_>>());
    attributes.iter().fold(made, |node, (name, values)| match values {
        [value] if *name == "axis" || !name.ends_with('s') => with_int(node, name, *value),
        values => with_ints(node, name, values),
    })
}

fn with(mut node: NodeProto, attribute: AttributeProto) -> NodeProto {
    node.attribute.push(attribute);
    node
}

fn attribute(name: &str, r#type: i32) -> AttributeProto {
    AttributeProto { name: name.to_owned(), r#type, ..AttributeProto::default() }
}

/// The node with an integer attribute.
pub fn with_int(node: NodeProto, name: &str, i: i64) -> NodeProto {
    with(node, AttributeProto { i, ..attribute(name, attribute_type::INT) })
}

/// The node with an attribute of integers.
pub fn with_ints(node: NodeProto, name: &str, ints: &[i64]) -> NodeProto {
    with(node, AttributeProto { ints: ints.to_vec(), ..attribute(name, attribute_type::INTS) })
}

/// The node with a float attribute.
pub fn with_float(node: NodeProto, name: &str, f: f32) -> NodeProto {
    with(node, AttributeProto { f, ..attribute(name, attribute_type::FLOAT) })
}

/// The node with an attribute of text.
pub fn with_text(node: NodeProto, name: &str, text: &str) -> NodeProto {
    let s = text.as_bytes().to_vec().into();
    with(node, AttributeProto { s, ..attribute(name, attribute_type::STRING) })
}

/// The node with a graph within it.
pub fn with_graph(node: NodeProto, name: &str, graph: GraphProto) -> NodeProto {
    with(node, AttributeProto { g: Some(graph), ..attribute(name, attribute_type::GRAPH) })
}

/// A constant of floats.
pub fn floats(name: &str, shape: &[i64], values: &[f32]) -> TensorProto {
    let raw_data = values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>().into();
    let (dims, data_type) = (shape.to_vec(), DataType::F32.number());
    TensorProto { name: name.to_owned(), dims, data_type, raw_data, ..TensorProto::default() }
}

/// A constant vector of 64-bit integers.
pub fn ints(name: &str, values: &[i64]) -> TensorProto {
    let (dims, data_type) = (vec![values.len() as i64], DataType::I64.number());
    TensorProto { name: name.to_owned(), dims, data_type, int64_data: values.to_vec(), ..TensorProto::default() }
}

/// A constant 64-bit integer.
pub fn scalar(name: &str, value: i64) -> TensorProto {
    TensorProto { dims: vec![], ..ints(name, &[value]) }
}

/// A graph without constants; its results are of unstated types.
pub fn graph(inputs: Vec<ValueInfoProto>, nodes: Vec<NodeProto>, outputs: &[&str]) -> GraphProto {
    GraphProto {
        name: "g".to_owned(),
        input: inputs,
        node: nodes,
        output: outputs.iter().map(|name| untyped(name)).collect(),
        ..GraphProto::default()
    }
}

/// A version of an operator set.
pub fn opset(domain: &str, version: i64) -> OperatorSetIdProto {
    OperatorSetIdProto { domain: domain.to_owned(), version }
}

/// A model of one result, of version 17 of ai.onnx.
pub fn model(
    inputs: Vec<ValueInfoProto>,
    nodes: Vec<NodeProto>,
    constants: Vec<TensorProto>,
    output: &str,
) -> ModelProto {
    model_of(GraphProto { initializer: constants, ..graph(inputs, nodes, &[output]) }, 17)
}

/// A model of a version of ai.onnx.
pub fn model_of(graph: GraphProto, version: i64) -> ModelProto {
    ModelProto { ir_version: 10, opset_import: vec![opset("", version)], graph: Some(graph), ..ModelProto::default() }
}
