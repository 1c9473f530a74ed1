//! Random nodes of ONNX: each is lowered to IR that verifies, or refused with a diagnostic of the importer.

use monopour_frontend::import::{ImportOptions, run_onnx};
use monopour_frontend::onnx::proto::{
    AttributeProto, DimensionProto, DimensionValue, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto,
    TensorShapeProto, TensorTypeProto, TypeProto, TypeValue, ValueInfoProto, attribute_type,
};
use monopour_frontend::onnx::{DataType, Model, Registry};
use monopour_ir::Context;
use prost::Message;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Nodes per op.
const NODES: usize = 4;
const TYPES: [DataType; 7] =
    [DataType::F32, DataType::F32, DataType::F16, DataType::I64, DataType::I32, DataType::Bool, DataType::U8];
/// Versions of the operator set in which ops changed.
const VERSIONS: [i64; 6] = [8, 11, 13, 18, 23, 27];
/// Attributes that are integers.
const NUMBERS: &str = "axis batch_axis batch_dims bits block_size blocksize center_point_box end group k kv_num_heads \
    local_window_size num_groups num_heads num_scan_inputs offset_group output_height output_width p \
    q_num_heads rotary_embedding_dim sampling_ratio size start stash_type time_axis hidden_size \
    num_outputs";
/// Attributes of integers.
const LISTS: &str = "axes kernel_shape output_shape pads perm pooled_shape qkv_hidden_sizes split dilations \
    output_padding strides scan_input_axes";
/// Attributes that are 0 or 1.
const SWITCHES: &str = "is_test keepdims ceil_mode do_rotary exclusive interleaved inverse is_causal layout onesided \
    unidirectional noop_with_empty_axes";

/// Numbers from a seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % n as u64).expect("less than n")
    }
    fn small(&mut self) -> i64 {
        [-1, 0, 1, 1, 2, 2, 3, 4, -2, 5][self.below(10)]
    }
}

fn value(name: &str, dtype: DataType, shape: &[i64]) -> ValueInfoProto {
    let dim = |size: &i64| DimensionProto {
        value: Some(match size {
            -1 => DimensionValue::Param("n".to_owned()),
            size => DimensionValue::Value(*size),
        }),
    };
    let shape = Some(TensorShapeProto { dim: shape.iter().map(dim).collect() });
    let tensor = TensorTypeProto { elem_type: dtype.number(), shape };
    ValueInfoProto { name: name.to_owned(), r#type: Some(TypeProto { value: Some(TypeValue::Tensor(tensor)) }) }
}

fn attributes(n: &mut Numbers) -> Vec<AttributeProto> {
    let named = |name: &str, r#type| AttributeProto { name: name.to_owned(), r#type, ..AttributeProto::default() };
    let mut out = vec![];
    for name in NUMBERS.split(' ') {
        if n.below(2) == 0 {
            out.push(AttributeProto { i: n.small(), ..named(name, attribute_type::INT) });
        }
    }
    for name in SWITCHES.split(' ') {
        out.push(AttributeProto { i: n.below(2) as i64, ..named(name, attribute_type::INT) });
    }
    for name in LISTS.split(' ') {
        if n.below(3) == 0 {
            let ints = (0..n.below(5)).map(|_| n.small()).collect();
            out.push(AttributeProto { ints, ..named(name, attribute_type::INTS) });
        }
    }
    out
}

/// A model of one node.
fn model(domain: &str, op: &str, version: i64, n: &mut Numbers) -> ModelProto {
    let (count, rank, dtype) = (n.below(8), n.below(6), TYPES[n.below(TYPES.len())]);
    let (mut names, mut inputs, mut constants) = (vec![], vec![], vec![]);
    for at in 0..count {
        // Most operands are of one rank and type.
        let rank = if n.below(3) == 0 { n.below(6) } else { rank };
        let dtype = if n.below(4) == 0 { TYPES[n.below(TYPES.len())] } else { dtype };
        let name = format!("x{at}");
        match n.below(8) {
            0 => names.push(String::new()),
            1 => {
                let values: Vec<i64> = (0..n.below(5)).map(|_| n.small()).collect();
                let (dims, data_type) = (vec![values.len() as i64], DataType::I64.number());
                constants.push(TensorProto {
                    name: name.clone(),
                    dims,
                    data_type,
                    int64_data: values,
                    ..TensorProto::default()
                });
                names.push(name);
            }
            _ => {
                let shape: Vec<i64> = (0..rank).map(|_| [1, 2, 2, 2, 4, 0, -1][n.below(7)]).collect();
                inputs.push(value(&name, dtype, &shape));
                names.push(name);
            }
        }
    }
    let node = NodeProto {
        op_type: op.to_owned(),
        domain: domain.to_owned(),
        input: names,
        output: (0..1 + n.below(3)).map(|at| format!("y{at}")).collect(),
        name: "node".to_owned(),
        attribute: attributes(n),
        ..NodeProto::default()
    };
    let output = vec![ValueInfoProto { name: "y0".to_owned(), r#type: None }];
    let graph = GraphProto {
        name: "g".to_owned(),
        input: inputs,
        node: vec![node],
        initializer: constants,
        output,
        ..GraphProto::default()
    };
    let opset = |domain: &str, version| OperatorSetIdProto { domain: domain.to_owned(), version };
    let mut opset_import = vec![opset("", version)];
    if !domain.is_empty() {
        opset_import.push(opset(domain, 1));
    }
    ModelProto { ir_version: 10, opset_import, graph: Some(graph), ..ModelProto::default() }
}

/// What is wrong with how a model is lowered or refused, if anything.
fn wrong(proto: &ModelProto) -> Option<String> {
    let made = catch_unwind(AssertUnwindSafe(|| {
        let model = Model::from_bytes(&proto.encode_to_vec(), "m.onnx", Path::new(""))?;
        Context::scope(|cx| run_onnx(cx, &model, &ImportOptions::default()).map(|_| ()))
    }));
    match made {
        Err(_) => Some("panicked".to_owned()),
        Ok(Err(found)) if !found.0.iter().all(|d| d.code.starts_with("F004")) => Some(found.to_string()),
        Ok(_) => None,
    }
}

#[test]
fn random_nodes_are_lowered_or_refused() {
    let count = std::env::var("ONNX_RANDOM_NODES").map_or(NODES, |n| n.parse().expect("a number of nodes per op"));
    let mut n = Numbers(11);
    let mut found = vec![];
    for (domain, op, entry) in Registry::default().entries() {
        for _ in 0..count {
            let wanted = VERSIONS[n.below(VERSIONS.len())];
            let version = wanted.clamp(*entry.versions.start(), *entry.versions.end());
            let proto = model(domain, op, if domain.is_empty() { version } else { 21 }, &mut n);
            found.extend(wrong(&proto).map(|why| format!("{domain} {op} {version}: {why}")));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
