//! Operands and attributes at the edges of what ONNX's ops allow: values on every device, and what is refused.

use crate::backend::Monopour;
use crate::onnx::{floats, from_f32, input, ints, model, node};
use monopour::onnx::proto::{ModelProto, OperatorSetIdProto, TensorProto, ValueInfoProto};
use monopour::onnx::{DataType, Model};
use monopour::{CompileOptions, compile_onnx};
use monopour_testkit::onnx::{graph, untyped, with_float, with_graph, with_int, with_ints, with_text};
use monopour_testkit::{Data, Dtype, HostTensor};
use prost::Message;
use std::path::Path;

/// A model of one operator set version.
fn of_version(version: i64, mut proto: ModelProto) -> ModelProto {
    proto.ir_version = 10;
    proto.opset_import[0].version = version;
    proto
}

fn integers(dtype: Dtype, shape: &[usize], elements: &[i64]) -> HostTensor {
    HostTensor { dtype, shape: shape.to_vec(), data: Data::Int(elements.to_vec()) }
}

/// Runs a model on every device; integers are equal, floats close.
fn check(proto: &ModelProto, inputs: &[HostTensor], expected: &[HostTensor]) {
    let model = Model::from_bytes(&proto.encode_to_vec(), "m.onnx", Path::new("")).unwrap_or_else(|e| panic!("{e}"));
    for backend in [Some(Monopour::cpu()), Monopour::gpu()].into_iter().flatten() {
        let options = CompileOptions { targets: vec![backend.target().clone()], verify: true, ..Default::default() };
        let program = compile_onnx(&model, &options).unwrap_or_else(|e| panic!("{e}")).program;
        let found = backend.run_program(program, inputs).unwrap_or_else(|e| panic!("{e}")).outputs;
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert_eq!((found.dtype, &found.shape), (expected.dtype, &expected.shape));
            match (&found.data, &expected.data) {
                (Data::Float(a), Data::Float(b)) => {
                    let close = a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-5 * b.abs().max(1.0));
                    assert!(close, "{a:?}, expected {b:?}");
                }
                (a, b) => assert_eq!(a, b),
            }
        }
    }
}

/// A model that is refused, with the op's diagnostic.
fn refused(proto: &ModelProto, why: &str) {
    let model = Model::from_bytes(&proto.encode_to_vec(), "m.onnx", Path::new("")).unwrap_or_else(|e| panic!("{e}"));
    let options = CompileOptions { targets: vec![Monopour::cpu().target().clone()], ..Default::default() };
    let found = compile_onnx(&model, &options).err().unwrap_or_else(|| panic!("compiled: {why}")).to_string();
    assert!(found.contains("F0043") && found.contains(why), "{found}\nexpected: {why}");
}

#[test]
fn the_last_axis_of_an_old_hardmax() {
    let hardmax = node("Hardmax(x) -> y", &[("axis", &[-1])]);
    let proto = of_version(11, model(vec![input("x", DataType::F32, &["2", "3"])], vec![hardmax], vec![], "y"));
    let x = from_f32(&[2, 3], &[1.0, 3.0, 2.0, 4.0, 0.0, 4.0]);
    check(&proto, &[x], &[from_f32(&[2, 3], &[0.0, 1.0, 0.0, 1.0, 0.0, 0.0])]);
}

/// Inputs of an attention of one head of size 1, with that many queries and keys, and values of a type.
fn attention_inputs(queries: &str, keys: &str, values: DataType) -> Vec<ValueInfoProto> {
    vec![
        input("q", DataType::F32, &["1", "1", queries, "1"]),
        input("k", DataType::F32, &["1", "1", keys, "1"]),
        input("v", values, &["1", "1", keys, "1"]),
    ]
}

#[test]
fn a_query_beyond_the_window_has_no_weights() {
    let attention = node("Attention(q, k, v) -> y", &[("left_window_size", &[0])]);
    let proto = of_version(25, model(attention_inputs("3", "2", DataType::F32), vec![attention], vec![], "y"));
    let [q, k, v] = [(3, vec![1.0, 2.0, 3.0]), (2, vec![1.0, 1.0]), (2, vec![5.0, 7.0])]
        .map(|(n, values)| from_f32(&[1, 1, n, 1], &values));
    check(&proto, &[q, k, v], &[from_f32(&[1, 1, 3, 1], &[6.0, 7.0, 0.0])]);
}

#[test]
fn queries_give_the_type_of_attention() {
    let mut attention = node("Attention(q, k, v) -> y, pk, pv, w", &[("qk_matmul_output_mode", &[3])]);
    attention.name = "attention".to_owned();
    let mut proto = of_version(23, model(attention_inputs("1", "2", DataType::F16), vec![attention], vec![], "y"));
    let output = |name: &str| ValueInfoProto { name: name.to_owned(), r#type: None };
    proto.graph.as_mut().expect("a graph").output = vec![output("y"), output("w")];
    let (q, k) = (from_f32(&[1, 1, 1, 1], &[1.0]), from_f32(&[1, 1, 2, 1], &[0.0, 1.0]));
    let v = HostTensor { dtype: Dtype::F16, shape: vec![1, 1, 2, 1], data: Data::Float(vec![1.0, 2.0]) };
    let w = [1.0 / (1.0 + 1.0_f32.exp()), 1.0 / (1.0 + (-1.0_f32).exp())];
    let expected = [from_f32(&[1, 1, 1, 1], &[w[0] + 2.0 * w[1]]), from_f32(&[1, 1, 1, 2], &w)];
    check(&proto, &[q, k, v], &expected);
}

#[test]
fn a_mask_of_one_key_hides_the_others() {
    let mut inputs = attention_inputs("2", "2", DataType::F32);
    inputs.push(input("m", DataType::F32, &["2", "1"]));
    let proto = of_version(23, model(inputs, vec![node("Attention(q, k, v, m) -> y", &[])], vec![], "y"));
    let [q, k, v, m] = [[1.0, 2.0], [1.0, 1.0], [5.0, 7.0], [0.0, 0.0]].map(|values| from_f32(&[1, 1, 2, 1], &values));
    let m = HostTensor { shape: vec![2, 1], ..m };
    check(&proto, &[q, k, v, m], &[from_f32(&[1, 1, 2, 1], &[5.0, 5.0])]);
}

#[test]
fn attention_of_other_ranks_is_refused() {
    let of = |shapes: &[(&str, &[&str])], call: &str| {
        let inputs = shapes.iter().map(|(name, shape)| input(name, DataType::F32, shape)).collect();
        of_version(23, model(inputs, vec![node(call, &[])], vec![], "y"))
    };
    let four: &[&str] = &["1", "1", "2", "1"];
    let two: &[&str] = &["1", "2"];
    let call = "Attention(q, k, v) -> y";
    refused(&of(&[("q", two), ("k", two), ("v", two)], call), "not all of rank 3 or all of rank 4");
    let operands = [("q", four), ("k", four), ("v", four)];
    let with = |more: &[(&'static str, &'static [&'static str])]| [&operands[..], more].concat();
    let call = "Attention(q, k, v, , pk, pv) -> y";
    refused(&of(&with(&[("pk", &["1", "2"]), ("pv", &["1", "1", "2", "1"])]), call), "past keys and values");
    refused(&of(&with(&[("pk", &["1", "1", "2", "1"])]), "Attention(q, k, v, , pk) -> y"), "not both");
    let mask = with(&[("m", &["1", "1", "1", "2", "2"])]);
    refused(&of(&mask, "Attention(q, k, v, m) -> y"), "an operand of shape [1, 1, 1, 2, 2] does not broadcast");
}

#[test]
fn slopes_of_unsigned_numbers_change_nothing() {
    let inputs = vec![input("x", DataType::U32, &["3"]), input("s", DataType::U32, &["1"])];
    let proto = of_version(16, model(inputs, vec![node("PRelu(x, s) -> y", &[])], vec![], "y"));
    let unsigned = |values: &[i64]| integers(Dtype::Unsigned(32), &[values.len()], values);
    let x = unsigned(&[0, 7, -1]);
    check(&proto, &[x.clone(), unsigned(&[2])], &[x]);
}

#[test]
fn infinities_and_nan_of_eight_bits() {
    let found = |op: &str, dtype: DataType, bytes: &[i64], expected: &[i64]| {
        let count = bytes.len().to_string();
        let proto =
            model(vec![input("x", dtype, &[count.as_str()])], vec![node(&format!("{op}(x) -> y"), &[])], vec![], "y");
        let x = integers(Dtype::Unsigned(8), &[bytes.len()], bytes);
        check(&of_version(20, proto), &[x], &[integers(Dtype::Int(1), &[bytes.len()], expected)]);
    };
    // Infinity, its negative, NaN, 1; of the other format: NaN of both signs, 448, 1.
    found("IsInf", DataType::F8E5M2, &[0x7c, -4, 0x7f, 0x3c], &[1, 1, 0, 0]);
    found("IsNaN", DataType::F8E5M2, &[0x7c, -4, 0x7f, 0x3c], &[0, 0, 1, 0]);
    found("IsNaN", DataType::F8E4M3FN, &[0x7f, -1, 0x7e, 0x38], &[1, 1, 0, 0]);
}

#[test]
fn powers_of_integers_are_exact() {
    let three = 3_i64.pow(39);
    let long = |values: &[i64]| integers(Dtype::Int(64), &[values.len()], values);
    let inputs = || vec![input("x", DataType::I64, &["4"]), input("e", DataType::I64, &["4"])];
    let proto = model(inputs(), vec![node("Pow(x, e) -> y", &[])], vec![], "y");
    check(&proto, &[long(&[3, -1, 2, -3]), long(&[39, -3, -1, 39])], &[long(&[three, -1, 0, -three])]);
    let proto =
        model(vec![input("x", DataType::I64, &["2"])], vec![node("Pow(x, e) -> y", &[])], vec![ints("e", &[39])], "y");
    check(&proto, &[long(&[3, -3])], &[long(&[three, -three])]);
    let proto =
        model(vec![input("x", DataType::I64, &["3"])], vec![node("Pow(x, e) -> y", &[])], vec![ints("e", &[-1])], "y");
    check(&proto, &[long(&[1, -1, 5])], &[long(&[1, -1, 0])]);
}

#[test]
fn long_integers_shrink_exactly() {
    let shrink = |bias| with_float(with_float(node("Shrink(x) -> y", &[]), "bias", bias), "lambd", 1.5);
    let of = |bias| model(vec![input("x", DataType::I64, &["5"])], vec![shrink(bias)], vec![], "y");
    let long = |values: &[i64]| integers(Dtype::Int(64), &[values.len()], values);
    let big = (1 << 53) + 2;
    check(&of(1.0), &[long(&[big, -big, 2, 1, -2])], &[long(&[big - 1, 1 - big, 1, 0, -1])]);
    refused(&of(0.5), "with bound 1.5 and bias 0.5 are not supported");
}

#[test]
fn attributes_of_transposed_convolutions_are_checked() {
    let of = |name: &str, values: &[i64]| {
        let w = floats("w", &[1, 1, 2, 2], &[1.0; 4]);
        let call = with_ints(node("ConvTranspose(x, w) -> y", &[]), name, values);
        model(vec![input("x", DataType::F32, &["1", "1", "3", "3"])], vec![call], vec![w], "y")
    };
    for (name, values) in [
        ("strides", &[0, 1][..]),
        ("strides", &[2]),
        ("dilations", &[-1, 1]),
        ("pads", &[1]),
        ("output_padding", &[-1, 0]),
        ("output_padding", &[1]),
        ("output_shape", &[5]),
    ] {
        refused(&of(name, values), &format!("attribute '{name}' is "));
    }
    let mut proto = of("strides", &[1, 1]);
    let call = &mut proto.graph.as_mut().expect("a graph").node[0];
    *call = with_int(call.clone(), "group", 0);
    refused(&proto, "0 groups");
}

#[test]
fn states_of_other_ranks_are_refused() {
    let f32 = |name: &str, shape: &[&str]| input(name, DataType::F32, shape);
    let inputs = vec![f32("x", &["1", "2", "4"]), f32("w", &["2", "1", "3"]), f32("s", &["2", "2"])];
    let conv = node("CausalConvWithState(x, w, , s) -> y, t", &[]);
    refused(&of_version(27, model(inputs, vec![conv], vec![], "y")), "its state is not of rank 3");
    for beta in [&["1"][..], &["1", "2"]] {
        let mut inputs: Vec<_> = ["q", "k", "v"].into_iter().map(|name| f32(name, &["1", "2", "4"])).collect();
        inputs.push(f32("b", beta));
        let mut attention = node("LinearAttention(q, k, v, , , b) -> y, s", &[]);
        attention = with_int(with_int(attention, "q_num_heads", 1), "kv_num_heads", 1);
        let attention = with_text(attention, "update_rule", "delta");
        refused(&of_version(27, model(inputs, vec![attention], vec![], "y")), "its rate is not of rank 3");
    }
}

#[test]
fn a_loop_with_sequences_and_no_results_is_refused() {
    let inputs = vec![input("n", DataType::I64, &[]), input("c", DataType::Bool, &[]), untyped("a")];
    let body = graph(inputs, vec![], &[]);
    let nodes = vec![
        node("SequenceConstruct(x) -> s", &[]),
        with_graph(node("Loop(count, , s) -> t", &[]), "body", body),
        node("SequenceAt(t, zero) -> y", &[]),
    ];
    let scalar = |name: &str, value| TensorProto { dims: vec![], ..ints(name, &[value]) };
    let constants = vec![scalar("count", 2), scalar("zero", 0)];
    let proto = model(vec![input("x", DataType::F32, &["2"])], nodes, constants, "y");
    refused(&proto, "its body has too few results");
}

/// A loop that doubles an element until it is 50, with what it stacks.
fn endless(stacked: &[&str]) -> ModelProto {
    let inputs = vec![input("n", DataType::I64, &[]), input("c", DataType::Bool, &[]), input("a", DataType::F32, &[])];
    let mut nodes = vec![node("Add(a, a) -> b", &[]), node("Less(b, limit) -> on", &[])];
    nodes.push(node("Identity(b) -> d", &[]));
    let body = graph(inputs, nodes, &[&["on", "b"], stacked].concat());
    let call = if stacked.is_empty() { "Loop(count, , x) -> y" } else { "Loop(count, , x) -> y, z" };
    let count = TensorProto { dims: vec![], ..ints("count", &[i64::MAX]) };
    let limit = TensorProto { dims: vec![], ..floats("limit", &[], &[50.0]) };
    let constants = vec![count, limit];
    model(vec![input("x", DataType::F32, &[])], vec![with_graph(node(call, &[]), "body", body)], constants, "y")
}

#[test]
fn the_largest_number_of_iterations_is_no_bound() {
    check(&endless(&[]), &[from_f32(&[], &[3.0])], &[from_f32(&[], &[96.0])]);
    refused(&endless(&["d"]), "its number of iterations has no bound");
}

/// A scan that adds two sequences to a state.
fn scan(version: i64, shapes: [&[&str]; 3]) -> ModelProto {
    let scalar = |name: &str| input(name, DataType::F32, &[]);
    let nodes = vec![node("Add(s, a) -> t", &[]), node("Add(t, b) -> u", &[])];
    let body = graph(vec![scalar("s"), scalar("a"), scalar("b")], nodes, &["u"]);
    let call = if version < 9 { "Scan(, first, p, q) -> y" } else { "Scan(first, p, q) -> y" };
    let call = with_graph(with_int(node(call, &[]), "num_scan_inputs", 2), "body", body);
    let inputs = ["first", "p", "q"].into_iter().zip(shapes).map(|(name, shape)| input(name, DataType::F32, shape));
    of_version(version, model(inputs.collect(), vec![call], vec![], "y"))
}

#[test]
fn scanned_operands_agree() {
    let operands = [from_f32(&[], &[1.0]), from_f32(&[2], &[1.0, 2.0]), from_f32(&[2], &[10.0, 20.0])];
    check(&scan(16, [&[], &["2"], &["2"]]), &operands, &[from_f32(&[], &[34.0])]);
    refused(&scan(16, [&[], &["2"], &["3"]]), "it scans 2 and 3 elements");
    refused(&scan(8, [&["2"], &["2", "3"], &[]]), "an operand has no batches");
}

#[test]
fn a_norm_of_an_operand_without_channels() {
    let of = |shape: &[&str], channels: i64| {
        let each = ["scale", "shift", "mean", "variance"].into_iter().zip([2.0, 1.0, 3.0, 4.0]);
        let constants = each.map(|(name, v)| floats(name, &[channels], &vec![v; channels as usize])).collect();
        let norm = node("BatchNormalization(x, scale, shift, mean, variance) -> y", &[]);
        model(vec![input("x", DataType::F32, shape)], vec![norm], constants, "y")
    };
    check(&of(&["3"], 1), &[from_f32(&[3], &[3.0, 5.0, -1.0])], &[from_f32(&[3], &[1.0, 2.999_997_5, -2.999_995])]);
    refused(&of(&["3"], 3), "an operand of rank 1 has no channels");
    refused(&of(&[], 1), "an operand of rank 0 has no channels");
}

#[test]
fn a_norm_that_trains_is_of_its_batch() {
    let of = |result: &str| {
        let norm = node("BatchNormalization(x, scale, shift, mean, variance) -> y, m, v", &[]);
        let constants = [("scale", [2.0, 1.0]), ("shift", [1.0, 0.0]), ("mean", [3.0, 0.0]), ("variance", [4.0, 1.0])];
        let constants = constants.map(|(name, values)| floats(name, &[2], &values)).to_vec();
        model(
            vec![input("x", DataType::F32, &["2", "2", "2"])],
            vec![with_int(norm, "training_mode", 1)],
            constants,
            result,
        )
    };
    // Channels of mean 4 and variance 5, and of 1 and 1.
    let x = from_f32(&[2, 2, 2], &[1.0, 3.0, 0.0, 0.0, 5.0, 7.0, 2.0, 2.0]);
    let first = [-3.0f32, -1.0, 1.0, 3.0].map(|rest| rest / 5.00001f32.sqrt() * 2.0 + 1.0);
    let one = 1.0 / 1.00001f32.sqrt();
    let expected = [first[0], first[1], -one, -one, first[2], first[3], one, one];
    check(&of("y"), std::slice::from_ref(&x), &[from_f32(&[2, 2, 2], &expected)]);
    check(&of("m"), std::slice::from_ref(&x), &[from_f32(&[2], &[3.1, 0.1])]);
    check(&of("v"), &[x], &[from_f32(&[2], &[4.1, 1.0])]);
}

#[test]
fn half_of_a_bias_is_refused() {
    let of = |bias: &[&str]| {
        let shapes: [(&str, &[&str]); 4] =
            [("x", &["1", "1", "2"]), ("w", &["1", "4", "2"]), ("r", &["1", "4", "1"]), ("b", bias)];
        let inputs = shapes.into_iter().map(|(name, shape)| input(name, DataType::F32, shape)).collect();
        let lstm = with_int(node("LSTM(x, w, r, b) -> y", &[]), "hidden_size", 1);
        model(inputs, vec![lstm], vec![], "y")
    };
    refused(&of(&["1", "4"]), "dimension 0 of size 4 has no 4 elements from 4 on");
    let zeros = |shape: &[usize]| from_f32(shape, &vec![0.0; shape.iter().product()]);
    // Gates i, o, f, c: all of the bias is summed in halves.
    let bias = from_f32(&[1, 8], &[1.0, 2.0, 3.0, 4.0, -1.0, -2.0, -3.0, -3.0]);
    let h = 0.5 * (0.5 * 1.0_f32.tanh()).tanh();
    let operands = [zeros(&[1, 1, 2]), zeros(&[1, 4, 2]), zeros(&[1, 4, 1]), bias];
    check(&of(&["1", "8"]), &operands, &[from_f32(&[1, 1, 1, 1], &[h])]);
}

#[test]
fn operands_of_other_types_or_ranks_are_refused() {
    let of = |op: &str, dtype: DataType, shapes: &[&[&str]]| {
        let names: Vec<String> = (0..shapes.len()).map(|at| format!("x{at}")).collect();
        let inputs = names.iter().zip(shapes).map(|(name, shape)| input(name, dtype, shape)).collect();
        model(inputs, vec![node(&format!("{op}({}) -> y", names.join(", ")), &[])], vec![], "y")
    };
    refused(&of("Exp", DataType::I32, &[&["2"]]), "operands do not fit: 'math.exp' op operand #0");
    refused(&of("Add", DataType::F32, &[&["2"]]), "operand 1 is missing");
    refused(&of("LRN", DataType::F32, &[&["2"]]), "an operand of rank 1 has no channels");
}

#[test]
fn a_sequence_has_a_result_for_each_value() {
    let parts = |keepdims| with_int(node("SplitToSequence(x) -> y", &[]), "keepdims", keepdims);
    let of = |keepdims| model(vec![input("x", DataType::F32, &["2", "2"])], vec![parts(keepdims)], vec![], "y");
    let x = from_f32(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let rows = |shape: &[usize]| [from_f32(shape, &[1.0, 2.0]), from_f32(shape, &[3.0, 4.0])];
    check(&of(0), std::slice::from_ref(&x), &rows(&[2]));
    check(&of(1), &[x], &rows(&[1, 2]));
}

#[test]
fn parts_of_sizes_that_are_read() {
    let inputs = || vec![input("x", DataType::F32, &["n"]), input("sizes", DataType::I64, &["3"])];
    let split = node("SplitToSequence(x, sizes) -> s", &[]);
    let proto = |more| model(inputs(), vec![split.clone(), more], vec![ints("two", &[2])], "y");
    let given = [from_f32(&[6], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), integers(Dtype::Int(64), &[3], &[1, 2, 3])];
    let length = proto(node("SequenceLength(s) -> y", &[]));
    check(&length, &given, &[integers(Dtype::Int(64), &[], &[3])]);
    let last = proto(node("SequenceAt(s, two) -> y", &[]));
    check(&last, &given, &[from_f32(&[3], &[4.0, 5.0, 6.0])]);
}

#[test]
fn shared_buffers_and_biases_of_packed_attention_are_refused() {
    let f32 = |name: &str, shape: &[&str]| input(name, DataType::F32, shape);
    let contrib = |op: &str, inputs: Vec<ValueInfoProto>, attribute: &str| {
        let mut call = with_int(with_int(node(op, &[]), "num_heads", 2), attribute, 1);
        call.domain = "com.microsoft".to_owned();
        let mut proto = model(inputs, vec![call], vec![], "y");
        let opset = OperatorSetIdProto { domain: "com.microsoft".to_owned(), version: 1 };
        proto.opset_import.push(opset);
        proto
    };
    let packed = f32("x", &["1", "3", "2", "3", "2"]);
    let bias = vec![packed, f32("b", &["12"])];
    refused(&contrib("MultiHeadAttention(x, , , b) -> y", bias, "unidirectional"), "a bias of packed operands");
    let past = ["p", "r"].map(|name| f32(name, &["1", "2", "4", "2"]));
    let lengths = input("n", DataType::I32, &["1"]);
    let projected = ["x", "k", "v"].map(|name| f32(name, &["1", "1", "4"]));
    let all = [&projected[..], &past, &[lengths]].concat();
    let call = "MultiHeadAttention(x, k, v, , , , p, r, n) -> y";
    refused(&contrib(call, all, "unidirectional"), "operand 8 is not supported");
    let inputs = vec![f32("x", &["1", "2", "4"]), f32("w", &["4", "12"])];
    let call = "Attention(x, w) -> y";
    refused(&contrib(call, inputs, "past_present_share_buffer"), "attribute 'past_present_share_buffer'");
}

#[test]
fn exponentials_are_summed_over_axes_that_are_read() {
    let inputs = vec![input("x", DataType::F32, &["2", "2"]), input("a", DataType::I64, &["1"])];
    let proto = of_version(18, model(inputs, vec![node("ReduceLogSumExp(x, a) -> y", &[])], vec![], "y"));
    // log(e^100 + e^101), log(e^0 + e^1); no f32 holds e^100.
    let rest = (1.0 + (-1.0_f32).exp()).ln();
    let x = from_f32(&[2, 2], &[100.0, 101.0, 0.0, 1.0]);
    let axis = |at| integers(Dtype::Int(64), &[1], &[at]);
    check(&proto, &[x.clone(), axis(1)], &[from_f32(&[2, 1], &[101.0 + rest, 1.0 + rest])]);
    check(&proto, &[x, axis(0)], &[from_f32(&[1, 2], &[100.0, 101.0])]);
}
