//! Changes to models: of messages, which mostly stay readable, and of their bytes.

use crate::link::position;
use monopour_frontend::onnx::Registry;
use monopour_frontend::onnx::proto::{
    AttributeProto, DimensionProto, DimensionValue, ElementTypeProto, GraphProto, MapTypeProto, ModelProto, NodeProto,
    StringStringEntryProto, TensorProto, TensorShapeProto, TensorTypeProto, TypeProto, TypeValue, ValueInfoProto,
};
use monopour_testkit::random::Rng;
use prost::Message;

/// Boundary values: small ones, and the limits of arithmetic.
const NUMBERS: [i64; 22] = [
    0,
    1,
    -1,
    2,
    3,
    -2,
    4,
    5,
    8,
    16,
    -3,
    100,
    255,
    1 << 20,
    1 << 31,
    -(1 << 31),
    1 << 32,
    1 << 48,
    1 << 60,
    i64::MAX,
    i64::MIN,
    i64::MAX - 1,
];
const FLOATS: [f32; 8] = [0.0, -1.0, 0.5, 1e30, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MIN_POSITIVE];
const TEXTS: [&str; 10] = ["", "NOTSET", "SAME_UPPER", "VALID", "linear", "ij->", "...->i", "half_pixel", "add", "x"];
const LOCATIONS: [&str; 6] = ["weights.bin", "missing.bin", "../weights.bin", "/dev/zero", "", "."];

/// A mutated copy of `proto` as bytes; nodes may come from `donors`.
pub fn mutate(rng: &mut Rng, proto: &ModelProto, donors: &[ModelProto]) -> Vec<u8> {
    let mut proto = proto.clone();
    let of_bytes = rng.below(4) == 0;
    if !of_bytes || rng.below(2) == 0 {
        for _ in 0..1 + rng.below(3) {
            change_model(rng, &mut proto, donors);
        }
    }
    let mut bytes = proto.encode_to_vec();
    if of_bytes {
        for _ in 0..1 + rng.below(4) {
            change_bytes(rng, &mut bytes);
        }
    }
    bytes
}

fn change_bytes(rng: &mut Rng, bytes: &mut Vec<u8>) {
    let at = position(rng, bytes.len());
    let end = (at + 1 + position(rng, 16)).min(bytes.len());
    match rng.below(8) {
        _ if bytes.is_empty() => bytes.push(8),
        0 => bytes.truncate(at),
        1 => drop(bytes.drain(at..end)),
        2 => {
            let piece = bytes[at..end].to_vec();
            let to = position(rng, bytes.len() + 1);
            bytes.splice(to..to, piece);
        }
        3 => bytes[at] = *rng.pick(&[0, 1, 0x7f, 0x80, 0xff]),
        4 => {
            bytes.splice(at..at, [0xff, 0xff, 0xff, 0xff, 0x0f]);
        }
        _ => bytes[at] = rng.below(256) as u8,
    }
}

fn change_model(rng: &mut Rng, proto: &mut ModelProto, donors: &[ModelProto]) {
    match rng.below(24) {
        0 if !proto.opset_import.is_empty() => {
            let at = position(rng, proto.opset_import.len());
            let import = &mut proto.opset_import[at];
            match rng.below(3) {
                0 => import.version = number(rng),
                1 => import.version = 1 + rng.below(28) as i64,
                _ => import.domain = rng.pick(&["", "ai.onnx.ml", "com.microsoft", "local", "unknown"]).to_string(),
            }
        }
        1 if !proto.functions.is_empty() => {
            let at = position(rng, proto.functions.len());
            let function = &mut proto.functions[at];
            match rng.below(4) {
                0 => drop(function.input.pop()),
                1 => function.output.push("c".to_owned()),
                2 => function.attribute.clear(),
                // The function calls itself.
                _ => function.node.iter_mut().for_each(|node| {
                    function.name.clone_into(&mut node.op_type);
                    function.domain.clone_into(&mut node.domain);
                }),
            }
        }
        kind => {
            let Some(main) = &mut proto.graph else { return };
            let graph = within(rng, main);
            match kind {
                2..=8 => change_node(rng, graph),
                9..=12 => change_attribute(rng, graph),
                13..=15 => change_value(rng, graph),
                16..=19 => change_constant(rng, graph),
                20 => borrow(rng, graph, donors),
                _ => change_graph(rng, graph),
            }
        }
    }
}

fn number(rng: &mut Rng) -> i64 {
    *rng.pick(&NUMBERS)
}

/// The graph, or one within it.
fn within<'a>(rng: &mut Rng, graph: &'a mut GraphProto) -> &'a mut GraphProto {
    let attributes =
        graph.node.iter().enumerate().flat_map(|(at, node)| (0..node.attribute.len()).map(move |a| (at, a)));
    let inner: Vec<_> = attributes.filter(|(at, a)| graph.node[*at].attribute[*a].g.is_some()).collect();
    if inner.is_empty() || rng.below(3) == 0 {
        return graph;
    }
    let (at, attribute) = *rng.pick(&inner);
    graph.node[at].attribute[attribute].g.as_mut().expect("it holds a graph")
}

/// All names that a node may read.
fn names(graph: &GraphProto) -> Vec<String> {
    let given = graph.input.iter().map(|i| &i.name).chain(graph.initializer.iter().map(|t| &t.name));
    let mut all: Vec<String> = given.chain(graph.node.iter().flat_map(|n| &n.output)).cloned().collect();
    all.extend(["".to_owned(), "elsewhere".to_owned()]);
    all
}

fn change_node(rng: &mut Rng, graph: &mut GraphProto) {
    let names = names(graph);
    if graph.node.is_empty() {
        return;
    }
    let at = position(rng, graph.node.len());
    let node = &mut graph.node[at];
    match rng.below(10) {
        0..=2 => {
            // Another op, of the same operands.
            let registry = Registry::default();
            let ops: Vec<(&str, &str)> = registry.entries().map(|(domain, op, _)| (domain, op)).collect();
            let (domain, op) = *rng.pick(&ops);
            domain.clone_into(&mut node.domain);
            op.clone_into(&mut node.op_type);
        }
        3 | 4 if !node.input.is_empty() => {
            let operand = position(rng, node.input.len());
            node.input[operand] = rng.pick(&names).clone();
        }
        5 => node.input.push(rng.pick(&names).clone()),
        6 => drop(node.input.pop()),
        7 if !node.output.is_empty() => {
            let result = position(rng, node.output.len());
            node.output[result] = rng.pick(&names).clone();
        }
        8 => node.output.push("more".to_owned()),
        _ => drop(node.output.pop()),
    }
}

fn change_attribute(rng: &mut Rng, graph: &mut GraphProto) {
    let holders: Vec<usize> = (0..graph.node.len()).filter(|at| !graph.node[*at].attribute.is_empty()).collect();
    if holders.is_empty() {
        let Some(node) = graph.node.first_mut() else { return };
        let name = *rng.pick(&["axis", "to", "keepdims", "num_heads", "group"]);
        node.attribute.push(AttributeProto { name: name.to_owned(), r#type: 2, i: number(rng), ..Default::default() });
        return;
    }
    let at = *rng.pick(&holders);
    let attributes = &mut graph.node[at].attribute;
    let which = position(rng, attributes.len());
    let attribute = &mut attributes[which];
    match rng.below(12) {
        0 => drop(attributes.swap_remove(which)),
        1 => {
            let copy = attribute.clone();
            attributes.push(copy);
        }
        2 => attribute.r#type = rng.below(15) as i32,
        3 => attribute.ref_attr_name = "alpha".to_owned(),
        4 => attribute.name = rng.pick(&["axis", "axes", "perm", "pads", "to", "body", "none"]).to_string(),
        5 => attribute.s = rng.pick(&TEXTS).as_bytes().to_vec().into(),
        6 => attribute.f = *rng.pick(&FLOATS),
        7 if !attribute.ints.is_empty() => drop(attribute.ints.pop()),
        8 => attribute.ints.push(number(rng)),
        _ if !attribute.ints.is_empty() => {
            let element = position(rng, attribute.ints.len());
            attribute.ints[element] = number(rng);
        }
        _ => attribute.i = number(rng),
    }
}

/// The type of an input or output.
fn change_value(rng: &mut Rng, graph: &mut GraphProto) {
    let values = if rng.below(4) == 0 { &mut graph.output } else { &mut graph.input };
    if values.is_empty() {
        return;
    }
    let at = position(rng, values.len());
    let ValueInfoProto { name, r#type } = &mut values[at];
    let kind = rng.below(16);
    match (kind, r#type) {
        (0, ty) => *ty = None,
        (1, ty) => {
            let element = ElementTypeProto { elem_type: ty.clone().map(Box::new) };
            let map = TypeValue::Map(MapTypeProto { key_type: 7 });
            let made = [TypeValue::Sequence(element.clone()), TypeValue::Optional(element), map];
            *ty = Some(TypeProto { value: Some(rng.pick(&made).clone()) });
        }
        (2, _) => name.clear(),
        (3, _) => name.push('x'),
        (_, Some(TypeProto { value: Some(TypeValue::Tensor(tensor)) })) => change_tensor_type(rng, tensor),
        (_, ty) => {
            let tensor = TensorTypeProto { elem_type: 1, shape: Some(TensorShapeProto { dim: vec![] }) };
            *ty = Some(TypeProto { value: Some(TypeValue::Tensor(tensor)) });
        }
    }
}

fn change_tensor_type(rng: &mut Rng, tensor: &mut TensorTypeProto) {
    let made = match rng.below(5) {
        0 => None,
        1 | 2 => Some(DimensionValue::Param(rng.pick(&["n", "m", "", "s"]).to_string())),
        _ => Some(DimensionValue::Value(number(rng))),
    };
    let (dim, kind) = (DimensionProto { value: made }, rng.below(8));
    let Some(shape) = tensor.shape.as_mut().filter(|_| kind > 0) else {
        tensor.shape = None;
        return;
    };
    match kind {
        1 | 2 => tensor.elem_type = rng.below(28) as i32,
        3 => shape.dim.push(dim),
        4 => drop(shape.dim.pop()),
        _ if !shape.dim.is_empty() => {
            let axis = position(rng, shape.dim.len());
            shape.dim[axis] = dim;
        }
        _ => shape.dim.push(dim),
    }
}

fn change_constant(rng: &mut Rng, graph: &mut GraphProto) {
    if graph.initializer.is_empty() {
        return;
    }
    let at = position(rng, graph.initializer.len());
    let TensorProto { name, dims, data_type, raw_data, int64_data, external_data, data_location, .. } =
        &mut graph.initializer[at];
    match rng.below(12) {
        0 => name.push('x'),
        1 => *data_type = rng.below(28) as i32,
        2 => dims.push(number(rng)),
        3 => drop(dims.pop()),
        4 | 5 if !dims.is_empty() => {
            let axis = position(rng, dims.len());
            dims[axis] = number(rng);
        }
        6 => *raw_data = raw_data.slice(..position(rng, raw_data.len() + 1)),
        7 => {
            let entry = |key: &str, value: String| StringStringEntryProto { key: key.to_owned(), value };
            *data_location = 1;
            *external_data = vec![
                entry("location", rng.pick(&LOCATIONS).to_string()),
                entry("offset", number(rng).to_string()),
                entry("length", number(rng).to_string()),
            ];
        }
        8 => int64_data.push(number(rng)),
        _ if !int64_data.is_empty() => {
            let element = position(rng, int64_data.len());
            int64_data[element] = number(rng);
        }
        _ => {
            let mut bytes = raw_data.to_vec();
            let count = bytes.len();
            if let Some(byte) = bytes.get_mut(position(rng, count)) {
                *byte = rng.below(256) as u8;
            }
            *raw_data = bytes.into();
        }
    }
}

/// Takes a node of another model, with that model's constants.
fn borrow(rng: &mut Rng, graph: &mut GraphProto, donors: &[ModelProto]) {
    let Some(donor) = &rng.pick(donors).graph else { return };
    let mut node: NodeProto = rng.pick(&donor.node).clone();
    let names = names(graph);
    for input in &mut node.input {
        if rng.below(2) == 0 {
            *input = rng.pick(&names).clone();
        }
    }
    let known = |name: &str| names.iter().any(|n| n == name);
    graph.initializer.extend(donor.initializer.iter().filter(|t| !known(&t.name)).cloned());
    node.output.iter_mut().filter(|name| known(name)).for_each(|name| name.push_str("_of_another"));
    if let (Some(result), Some(output)) = (node.output.first(), graph.output.first_mut()) {
        result.clone_into(&mut output.name);
    }
    graph.node.push(node);
}

fn change_graph(rng: &mut Rng, graph: &mut GraphProto) {
    let count = graph.node.len();
    match rng.below(8) {
        0 if count > 0 => drop(graph.node.remove(position(rng, count))),
        1 if count > 0 => {
            let copy = graph.node[position(rng, count)].clone();
            graph.node.push(copy);
        }
        2 if count > 1 => {
            let (first, second) = (position(rng, count), position(rng, count));
            graph.node.swap(first, second);
        }
        3 => drop(graph.input.pop()),
        4 => {
            let all = names(graph);
            graph.output.push(ValueInfoProto { name: rng.pick(&all).clone(), r#type: None });
        }
        5 => drop(graph.output.pop()),
        6 => drop(graph.initializer.pop()),
        // A constant becomes the default of an input.
        _ => {
            if let Some(constant) = graph.initializer.first() {
                graph.input.push(ValueInfoProto { name: constant.name.clone(), r#type: None });
            }
        }
    }
}
