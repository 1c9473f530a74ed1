//! Models that are mutated: small ones of every family of ops.

use monopour_frontend::onnx::DataType::{self, Bool, F16, F32, I4, I8, I32, I64, U8};
use monopour_frontend::onnx::proto::{
    FunctionProto, GraphProto, ModelProto, NodeProto, StringStringEntryProto, TensorProto, ValueInfoProto,
};
use monopour_testkit::onnx::{
    floats, graph, ints, model, node, opset, parsed_node, scalar, value, with_float, with_graph, with_int, with_ints,
    with_text,
};

/// Name of the file of external data beside the models, and its length.
pub const EXTERNAL: (&str, usize) = ("weights.bin", 64);

/// An input: name, type, sizes.
type Input = (&'static str, DataType, &'static [&'static str]);
/// A node, and its attributes of integers.
type Call = (&'static str, &'static [(&'static str, &'static [i64])]);

/// All seeds.
pub fn seeds() -> Vec<ModelProto> {
    let mut all = dense();
    all.extend(attention());
    all.extend(windows());
    all.extend(shapes());
    all.extend(indices());
    all.extend(sequences());
    all.extend(whole());
    all.extend([function(), external(), branches(), iterated(), scanned()]);
    for proto in &mut all {
        proto.opset_import[0].version = 23;
        proto.opset_import.push(opset("com.microsoft", 1));
    }
    all
}

fn inputs(given: &[Input]) -> Vec<ValueInfoProto> {
    given.iter().map(|(name, dtype, shape)| value(name, *dtype, shape)).collect()
}

fn calls(given: &[Call]) -> Vec<NodeProto> {
    let domain = |op: &str| if MICROSOFT.contains(&op) { "com.microsoft" } else { "" };
    let made = given.iter().map(|(text, attributes)| {
        attributes.iter().fold(parsed_node(text, &[]), |node, (name, values)| match values {
            [value] if !LISTS.contains(name) => with_int(node, name, *value),
            values => with_ints(node, name, values),
        })
    });
    made.map(|node| NodeProto { domain: domain(&node.op_type).to_owned(), ..node }).collect()
}

/// Attributes that are lists.
const LISTS: [&str; 6] = ["pads", "strides", "dilations", "kernel_shape", "perm", "output_padding"];
/// Ops of com.microsoft.
const MICROSOFT: [&str; 4] = ["FusedMatMul", "SkipLayerNormalization", "GroupQueryAttention", "MultiHeadAttention"];

/// A model whose result is `y`.
fn seed(given: &[Input], nodes: &[Call], constants: Vec<TensorProto>) -> ModelProto {
    model(inputs(given), calls(nodes), constants, "y")
}

/// A constant of floats of few values.
fn weights(name: &str, shape: &[i64]) -> TensorProto {
    let count = shape.iter().product::<i64>();
    floats(name, shape, &(0..count).map(|i| (i % 7) as f32 * 0.25 - 0.5).collect::<Vec<_>>())
}

fn dense() -> Vec<ModelProto> {
    let x: Input = ("x", F32, &["n", "8"]);
    vec![
        seed(
            &[x],
            &[("Gemm(x, w, b) -> h", &[("transB", &[1])]), ("Relu(h) -> r", &[]), ("MatMul(r, v) -> y", &[])],
            vec![weights("w", &[4, 8]), weights("b", &[4]), weights("v", &[4, 3])],
        ),
        seed(
            &[x],
            &[("LayerNormalization(x, s, b) -> h", &[("axis", &[-1])]), ("Gelu(h) -> g", &[]), ("Add(g, x) -> y", &[])],
            vec![weights("s", &[8]), weights("b", &[8])],
        ),
        seed(
            &[x],
            &[("RMSNormalization(x, s) -> h", &[]), ("Softmax(h) -> y", &[("axis", &[1])])],
            vec![weights("s", &[8])],
        ),
        seed(&[x, ("z", F32, &["n", "8"])], &[("SkipLayerNormalization(x, z, s) -> y", &[])], vec![weights("s", &[8])]),
        seed(&[x], &[("FusedMatMul(x, w) -> y", &[("transB", &[1])])], vec![weights("w", &[4, 8])]),
        seed(&[("a", U8, &["2", "4"]), ("b", I8, &["4", "3"])], &[("MatMulInteger(a, b) -> y", &[])], vec![]),
        seed(&[x], &[("DynamicQuantizeLinear(x) -> q, s, z", &[]), ("DequantizeLinear(q, s, z) -> y", &[])], vec![]),
        model(
            inputs(&[("a", F32, &["2", "3"]), ("b", F32, &["3", "n"])]),
            vec![with_text(node("Einsum", &["a", "b"], &["y"]), "equation", "ij,jk->ik")],
            vec![],
            "y",
        ),
        seed(
            &[("x", F32, &["3", "2", "4"])],
            &[("LSTM(x, w, r) -> y, h, c", &[("hidden_size", &[2])])],
            vec![weights("w", &[1, 8, 4]), weights("r", &[1, 8, 2])],
        ),
        seed(
            &[("x", F32, &["3", "2", "4"])],
            &[("GRU(x, w, r) -> y, h", &[("hidden_size", &[2])])],
            vec![weights("w", &[1, 6, 4]), weights("r", &[1, 6, 2])],
        ),
    ]
}

fn attention() -> Vec<ModelProto> {
    let qkv: [Input; 3] =
        [("q", F32, &["1", "2", "s", "4"]), ("k", F32, &["1", "2", "t", "4"]), ("v", F32, &["1", "2", "t", "4"])];
    vec![
        seed(&qkv, &[("Attention(q, k, v) -> y", &[("is_causal", &[1])])], vec![]),
        seed(
            &qkv,
            &[
                ("Transpose(k) -> kt", &[("perm", &[0, 1, 3, 2])]),
                ("MatMul(q, kt) -> s", &[]),
                ("Softmax(s) -> p", &[]),
                ("MatMul(p, v) -> y", &[]),
            ],
            vec![],
        ),
        seed(
            &[("q", F32, &["1", "s", "8"]), ("k", F32, &["1", "s", "8"]), ("v", F32, &["1", "s", "8"])],
            &[("MultiHeadAttention(q, k, v) -> y", &[("num_heads", &[2])])],
            vec![],
        ),
        seed(
            &[
                ("q", F32, &["1", "s", "8"]),
                ("k", F32, &["1", "s", "4"]),
                ("v", F32, &["1", "s", "4"]),
                ("pk", F32, &["1", "1", "p", "4"]),
                ("pv", F32, &["1", "1", "p", "4"]),
                ("l", I32, &["1"]),
                ("t", I32, &[]),
            ],
            &[(
                "GroupQueryAttention(q, k, v, pk, pv, l, t) -> y, a, b",
                &[("num_heads", &[2]), ("kv_num_heads", &[1])],
            )],
            vec![],
        ),
    ]
}

fn windows() -> Vec<ModelProto> {
    let x: Input = ("x", F32, &["1", "4", "6", "6"]);
    vec![
        seed(
            &[x],
            &[
                ("Conv(x, w, b) -> c", &[("pads", &[1, 1, 1, 1]), ("strides", &[2, 2])]),
                ("BatchNormalization(c, s, b, m, s) -> n", &[]),
                ("Relu(n) -> r", &[]),
                ("GlobalAveragePool(r) -> g", &[]),
                ("Flatten(g) -> y", &[("axis", &[1])]),
            ],
            vec![weights("w", &[4, 4, 3, 3]), weights("b", &[4]), floats("s", &[4], &[1.0; 4]), weights("m", &[4])],
        ),
        seed(
            &[x],
            &[("Conv(x, w) -> y", &[("group", &[4]), ("dilations", &[2, 1])])],
            vec![weights("w", &[4, 1, 2, 2])],
        ),
        seed(
            &[x],
            &[("ConvTranspose(x, w) -> y", &[("strides", &[2, 2]), ("output_padding", &[1, 1])])],
            vec![weights("w", &[4, 2, 2, 2])],
        ),
        seed(&[x], &[("MaxPool(x) -> y, i", &[("kernel_shape", &[2, 2]), ("ceil_mode", &[1])])], vec![]),
        seed(
            &[x],
            &[("AveragePool(x) -> y", &[("kernel_shape", &[3, 3]), ("pads", &[1, 1, 1, 1]), ("strides", &[2, 2])])],
            vec![],
        ),
        seed(&[x], &[("Resize(x, , s) -> y", &[])], vec![floats("s", &[4], &[1.0, 1.0, 2.0, 1.5])]),
        seed(&[x, ("g", F32, &["1", "2", "3", "2"])], &[("GridSample(x, g) -> y", &[])], vec![]),
        seed(&[x], &[("DepthToSpace(x) -> y", &[("blocksize", &[2])])], vec![]),
        seed(&[x], &[("InstanceNormalization(x, s, s) -> y", &[])], vec![weights("s", &[4])]),
        model(
            inputs(&[x]),
            vec![with_float(with_int(node("LRN", &["x"], &["y"]), "size", 3), "alpha", 0.5)],
            vec![],
            "y",
        ),
    ]
}

fn shapes() -> Vec<ModelProto> {
    let x: Input = ("x", F32, &["n", "6"]);
    vec![
        seed(
            &[x],
            &[
                ("Shape(x) -> s", &[]),
                ("Gather(s, zero) -> n", &[("axis", &[0])]),
                ("Concat(n, rest) -> t", &[("axis", &[0])]),
                ("Reshape(x, t) -> y", &[]),
            ],
            vec![ints("zero", &[0]), ints("rest", &[2, 3])],
        ),
        seed(
            &[x],
            &[("Slice(x, a, b, c, d) -> y", &[])],
            vec![ints("a", &[1]), ints("b", &[i64::MAX]), ints("c", &[1]), ints("d", &[2])],
        ),
        seed(&[x], &[("Pad(x, p) -> y", &[])], vec![ints("p", &[1, 0, 0, 2])]),
        seed(&[x], &[("Split(x) -> a, b", &[("axis", &[1]), ("num_outputs", &[2])]), ("Mul(a, b) -> y", &[])], vec![]),
        seed(&[x], &[("Tile(x, r) -> y", &[])], vec![ints("r", &[2, 1])]),
        seed(
            &[x],
            &[("Unsqueeze(x, a) -> u", &[]), ("Expand(u, s) -> y", &[])],
            vec![ints("a", &[0]), ints("s", &[2, 1, 6])],
        ),
        seed(&[("a", I64, &[]), ("b", I64, &[])], &[("Range(a, b, one) -> y", &[])], vec![scalar("one", 1)]),
        seed(&[("s", I64, &["2"])], &[("ConstantOfShape(s) -> y", &[])], vec![]),
        seed(&[x], &[("Trilu(x) -> t", &[("upper", &[0])]), ("Transpose(t) -> y", &[("perm", &[1, 0])])], vec![]),
        seed(&[x], &[("ReduceSum(x, a) -> s", &[("keepdims", &[0])]), ("Sqrt(s) -> y", &[])], vec![ints("a", &[1])]),
        seed(&[x], &[("Cast(x) -> h", &[("to", &[10])]), ("Cast(h) -> y", &[("to", &[22])])], vec![]),
        seed(&[x, ("c", Bool, &["n", "1"]), ("z", F32, &["6"])], &[("Where(c, x, z) -> y", &[])], vec![]),
    ]
}

fn indices() -> Vec<ModelProto> {
    let x: Input = ("x", F32, &["3", "5"]);
    let i: Input = ("i", I64, &["2", "2"]);
    vec![
        seed(&[("i", I64, &["n"])], &[("Gather(w, i) -> y", &[("axis", &[0])])], vec![weights("w", &[10, 4])]),
        seed(&[x, i], &[("GatherND(x, i) -> y", &[])], vec![]),
        seed(&[x, i], &[("GatherElements(x, i) -> y", &[("axis", &[1])])], vec![]),
        seed(&[x, i, ("u", F32, &["2", "2"])], &[("ScatterElements(x, i, u) -> y", &[("axis", &[1])])], vec![]),
        seed(&[x, i, ("u", F32, &["2"])], &[("ScatterND(x, i, u) -> y", &[])], vec![]),
        seed(&[x], &[("TopK(x, k) -> y, i", &[("axis", &[-1])])], vec![ints("k", &[2])]),
        seed(&[x], &[("ArgMax(x) -> y", &[("axis", &[1]), ("keepdims", &[0])])], vec![]),
        seed(&[x], &[("CumSum(x, a) -> y", &[("reverse", &[1])])], vec![scalar("a", 1)]),
        seed(&[x], &[("NonZero(x) -> y", &[])], vec![]),
        seed(&[x, ("c", Bool, &["3"])], &[("Compress(x, c) -> y", &[("axis", &[0])])], vec![]),
        seed(&[x], &[("Unique(x) -> y, i, j, c", &[])], vec![]),
        seed(
            &[("b", F32, &["1", "6", "4"]), ("s", F32, &["1", "2", "6"])],
            &[("NonMaxSuppression(b, s, k, t) -> y", &[])],
            vec![ints("k", &[3]), floats("t", &[1], &[0.5])],
        ),
        seed(
            &[("i", I64, &["4"])],
            &[("OneHot(i, d, v) -> y", &[("axis", &[-1])])],
            vec![scalar("d", 5), floats("v", &[2], &[0.0, 1.0])],
        ),
    ]
}

fn sequences() -> Vec<ModelProto> {
    let x: Input = ("x", F32, &["4", "6"]);
    vec![
        seed(
            &[x],
            &[
                ("SplitToSequence(x) -> s", &[("axis", &[0])]),
                ("SequenceAt(s, one) -> a", &[]),
                ("SequenceInsert(s, a) -> t", &[]),
                ("ConcatFromSequence(t) -> y", &[("axis", &[0])]),
            ],
            vec![scalar("one", 1)],
        ),
        seed(&[x], &[("SequenceConstruct(x, x) -> s", &[]), ("SequenceLength(s) -> y", &[])], vec![]),
        seed(&[x], &[("Optional(x) -> o", &[]), ("OptionalGetElement(o) -> y", &[])], vec![]),
        seed(&[("x", F32, &["4", "6", "1"])], &[("DFT(x, , a) -> y", &[])], vec![scalar("a", 1)]),
        seed(&[("x", F32, &["3", "3"])], &[("Det(x) -> y", &[])], vec![]),
    ]
}

/// Constants of narrow types, and an input with a default value.
fn whole() -> Vec<ModelProto> {
    let packed = TensorProto {
        name: "w".to_owned(),
        dims: vec![4, 4],
        data_type: I4.number(),
        raw_data: vec![0x21, 0x43, 0x65, 0x07, 0x12, 0x34, 0x56, 0x70].into(),
        ..TensorProto::default()
    };
    let halves = TensorProto {
        name: "h".to_owned(),
        dims: vec![4],
        data_type: F16.number(),
        int32_data: vec![0x3c00, 0x4000, 0x4200, 0x4400],
        ..TensorProto::default()
    };
    let mut default =
        seed(&[("x", F32, &["n"]), ("b", F32, &["1"])], &[("Add(x, b) -> y", &[])], vec![weights("b", &[1])]);
    default.graph.iter_mut().for_each(|graph| graph.output[0] = value("y", F32, &["n"]));
    vec![
        seed(
            &[("x", F32, &["n", "4"])],
            &[("DequantizeLinear(w, s) -> d", &[]), ("MatMul(x, d) -> y", &[])],
            vec![packed, floats("s", &[], &[0.5])],
        ),
        seed(&[("x", F16, &["n", "4"])], &[("Mul(x, h) -> y", &[])], vec![halves]),
        default,
        model(
            inputs(&[("x", I32, &["2"])]),
            vec![
                with_ints(node("Constant", &[], &["c"]), "value_ints", &[3, 4]),
                with_int(node("Cast", &["c"], &["d"]), "to", 6),
                node("Mod", &["x", "d"], &["y"]),
            ],
            vec![],
            "y",
        ),
    ]
}

/// A model with a function.
fn function() -> ModelProto {
    let call =
        NodeProto { domain: "local".to_owned(), ..with_float(node("Scaled", &["x", "w"], &["y"]), "alpha", 0.5) };
    let mut proto = model(inputs(&[("x", F32, &["n", "4"])]), vec![call], vec![weights("w", &[4, 3])], "y");
    let mut gemm = node("Gemm", &["a", "b"], &["c"]);
    gemm.attribute = with_float(gemm.clone(), "alpha", 0.0).attribute;
    gemm.attribute[0].ref_attr_name = "alpha".to_owned();
    proto.functions.push(FunctionProto {
        name: "Scaled".to_owned(),
        domain: "local".to_owned(),
        input: vec!["a".to_owned(), "b".to_owned()],
        output: vec!["c".to_owned()],
        attribute: vec!["alpha".to_owned()],
        node: vec![gemm],
        opset_import: vec![opset("", 23)],
        ..FunctionProto::default()
    });
    proto.opset_import.push(opset("local", 1));
    proto
}

/// A model whose weights are in another file.
fn external() -> ModelProto {
    let entry = |key: &str, value: &str| StringStringEntryProto { key: key.to_owned(), value: value.to_owned() };
    let w = TensorProto {
        raw_data: vec![].into(),
        data_location: 1,
        external_data: vec![entry("location", EXTERNAL.0), entry("offset", "16"), entry("length", "48")],
        ..weights("w", &[4, 3])
    };
    seed(&[("x", F32, &["n", "4"])], &[("MatMul(x, w) -> y", &[])], vec![w])
}

fn inner(given: &[Input], nodes: &[Call], outputs: &[&str]) -> GraphProto {
    graph(inputs(given), calls(nodes), outputs)
}

fn branches() -> ModelProto {
    let made = node("If", &["c"], &["y"]);
    let made = with_graph(made, "then_branch", inner(&[], &[("Relu(x) -> a", &[])], &["a"]));
    let made = with_graph(made, "else_branch", inner(&[], &[("Neg(x) -> b", &[])], &["b"]));
    model(inputs(&[("c", Bool, &[]), ("x", F32, &["4"])]), vec![made], vec![], "y")
}

fn iterated() -> ModelProto {
    let given: [Input; 3] = [("i", I64, &[]), ("go", Bool, &[]), ("a", F32, &["4"])];
    let body =
        inner(&given, &[("Add(a, x) -> b", &[]), ("Identity(go) -> on", &[]), ("Abs(b) -> s", &[])], &["on", "b", "s"]);
    let made = with_graph(node("Loop", &["n", "", "x"], &["last", "y"]), "body", body);
    model(inputs(&[("n", I64, &[]), ("x", F32, &["4"])]), vec![made], vec![], "y")
}

fn scanned() -> ModelProto {
    let body = inner(
        &[("a", F32, &["2"]), ("e", F32, &["2"])],
        &[("Add(a, e) -> b", &[]), ("Identity(b) -> s", &[])],
        &["b", "s"],
    );
    let made = with_int(with_graph(node("Scan", &["x", "xs"], &["last", "y"]), "body", body), "num_scan_inputs", 1);
    model(inputs(&[("x", F32, &["2"]), ("xs", F32, &["n", "2"])]), vec![made], vec![], "y")
}
