//! ONNX files at the limits of the format: names, versions, functions, sizes and elements.

use crate::onnx::{import, open, refused};
use monopour_frontend::onnx::DataType::{self, F32};
use monopour_frontend::onnx::Model;
use monopour_frontend::onnx::proto::{
    AttributeProto, ElementTypeProto, FunctionProto, ModelProto, NodeProto, StringStringEntryProto, TensorProto,
    TypeProto, TypeValue, attribute_type,
};
use monopour_testkit::onnx::{
    floats, graph, ints, model, node, opset, scalar, untyped, value, with_float, with_graph, with_int,
};
use prost::Message;

fn u64s(name: &str, values: &[u64]) -> TensorProto {
    let (dims, data_type) = (vec![values.len() as i64], DataType::U64.number());
    TensorProto { name: name.to_owned(), dims, data_type, uint64_data: values.to_vec(), ..TensorProto::default() }
}

fn of_domain(domain: &str, node: NodeProto) -> NodeProto {
    NodeProto { domain: domain.to_owned(), ..node }
}

fn function(name: &str, inputs: &[&str], output: &str, node: Vec<NodeProto>) -> FunctionProto {
    FunctionProto {
        name: name.to_owned(),
        domain: "local".to_owned(),
        input: inputs.iter().map(|i| (*i).to_owned()).collect(),
        output: vec![output.to_owned()],
        node,
        ..FunctionProto::default()
    }
}

/// The result of a model of one node and constants, as the constant of the IR.
fn folded(op: &str, constants: Vec<TensorProto>) -> String {
    let names: Vec<&str> = constants.iter().map(|c| c.name.as_str()).collect();
    let text = import(&model(vec![], vec![node(op, &names, &["y"])], constants.clone(), "y"), &[]).expect("imports");
    let line = text.lines().find(|line| line.contains("arith.constant")).unwrap_or_else(|| panic!("{text}"));
    assert!(!text.contains("linalg"), "{text}");
    line.split(" = ").nth(1).expect("a value").to_owned()
}

#[test]
fn attributes_of_a_call_reach_graphs_within_its_function() {
    let alpha = AttributeProto {
        name: "value_float".to_owned(),
        r#type: attribute_type::FLOAT,
        ref_attr_name: "alpha".to_owned(),
        ..AttributeProto::default()
    };
    let constant = NodeProto { attribute: vec![alpha.clone()], ..node("Constant", &[], &["c"]) };
    let then = graph(vec![], vec![constant.clone(), node("Add", &["a", "c"], &["t"])], &["t"]);
    let other = graph(vec![], vec![node("Identity", &["a"], &["e"])], &["e"]);
    let body = with_graph(with_graph(node("If", &["k"], &["b"]), "then_branch", then), "else_branch", other);
    let f = FunctionProto { attribute: vec!["alpha".to_owned()], ..function("F", &["a", "k"], "b", vec![body]) };
    let call = with_float(of_domain("local", node("F", &["x", "k"], &["y"])), "alpha", 5.0);
    let inputs = vec![value("x", F32, &["4"]), value("k", DataType::Bool, &[])];
    let mut proto = model(inputs, vec![call], vec![], "y");
    proto.functions.push(f);
    let text = import(&proto, &[]).expect("imports");
    assert!(text.contains("5.000000e+00") && !text.contains("0.000000e+00"), "{text}");

    let outside = model(vec![value("x", F32, &["4"])], vec![constant, node("Add", &["x", "c"], &["y"])], vec![], "y");
    refused(open(&outside), "F0041", "attribute 'value_float' of node 'c' refers to 'alpha'");
}

#[test]
fn functions_are_told_apart_by_their_overloads() {
    let call = NodeProto { overload: "o".to_owned(), ..of_domain("local", node("G", &["x"], &["y"])) };
    let mut proto = model(vec![value("x", F32, &["4"])], vec![call], vec![], "y");
    let overloaded = |overload: &str, op: &str| FunctionProto {
        overload: overload.to_owned(),
        ..function("G", &["a"], "b", vec![node(op, &["a"], &["b"])])
    };
    proto.functions = vec![overloaded("", "Exp"), overloaded("o", "Neg")];
    let text = import(&proto, &[]).expect("imports");
    assert!(text.contains("arith.negf") && !text.contains("math.exp"), "{text}");
    // The domain ai.onnx has two names.
    let mut proto = model(vec![value("x", F32, &["4"])], vec![node("Own", &["x"], &["y"])], vec![], "y");
    let own = function("Own", &["a"], "b", vec![node("Neg", &["a"], &["b"])]);
    proto.functions = vec![FunctionProto { domain: "ai.onnx".to_owned(), ..own }];
    assert!(import(&proto, &[]).expect("imports").contains("arith.negf"));
}

#[test]
fn versions_of_functions_and_domains_are_checked() {
    let call = of_domain("local", node("G", &["x"], &["y"]));
    let mut proto = model(vec![value("x", F32, &["4"])], vec![call], vec![], "y");
    let g = function("G", &["a"], "b", vec![node("Neg", &["a"], &["b"])]);
    proto.functions = vec![FunctionProto { opset_import: vec![opset("", 99)], ..g }];
    refused(open(&proto), "F0041", "version 99 of the operator set ai.onnx");
    let foreign = model(
        vec![value("x", F32, &["4"])],
        vec![of_domain("com.microsoft", node("Gelu", &["x"], &["y"]))],
        vec![],
        "y",
    );
    refused(open(&foreign), "F0041", "the operator set com.microsoft");
}

#[test]
fn a_name_is_defined_once() {
    let inputs = || vec![value("x", F32, &["4"]), value("w", F32, &["4"])];
    let shadow = model(inputs(), vec![node("Neg", &["x"], &["y"]), node("Exp", &["w"], &["x"])], vec![], "y");
    refused(open(&shadow), "F0041", "'x' is defined twice");
    let constant =
        model(inputs(), vec![node("Neg", &["x"], &["c"]), node("Exp", &["c"], &["y"])], vec![ints("c", &[1])], "y");
    refused(open(&constant), "F0041", "'c' is defined twice");
    let two = vec![ints("c", &[1]), ints("c", &[2])];
    refused(open(&model(inputs(), vec![node("Neg", &["x"], &["y"])], two, "y")), "F0041", "'c' is defined twice");
    let same =
        model(vec![value("x", F32, &["4"]), value("x", F32, &["4"])], vec![node("Neg", &["x"], &["y"])], vec![], "y");
    refused(open(&same), "F0041", "'x' is defined twice");
}

/// The size of the buffer of a module's `negf` is that of the second argument.
fn size_is_of_second_argument(text: &str) {
    let found = text.lines().find(|line| line.contains("tensor.dim %arg1,")).unwrap_or_else(|| panic!("{text}"));
    let size = found.split(" = ").next().expect("a name").trim();
    assert!(text.contains(&format!("tensor.empty({size}) : tensor<?xf32>")), "{text}");
}

#[test]
fn symbols_that_are_made_are_not_those_of_the_model() {
    let nodes = vec![node("NonZero", &["x"], &["i"]), node("Neg", &["z"], &["y"])];
    let mut proto = model(vec![value("x", F32, &["4"]), value("z", F32, &["?1"])], nodes, vec![], "y");
    let output = &mut proto.graph.as_mut().expect("a graph").output;
    output.push(untyped("i"));
    size_is_of_second_argument(&import(&proto, &[]).expect("imports"));

    let mut unnamed = value("x", F32, &["n"]);
    if let Some(TypeProto { value: Some(TypeValue::Tensor(tensor)) }) = &mut unnamed.r#type {
        tensor.shape.as_mut().expect("a shape").dim[0].value = None;
    }
    let nodes = vec![node("Exp", &["x"], &["e"]), node("Neg", &["z"], &["y"])];
    let mut proto = model(vec![unnamed, value("z", F32, &["x.0"])], nodes, vec![], "y");
    let output = &mut proto.graph.as_mut().expect("a graph").output;
    output.push(untyped("e"));
    size_is_of_second_argument(&import(&proto, &[]).expect("imports"));
}

#[test]
fn sizes_of_optional_inputs_can_be_bound() {
    let mut optional = value("o", F32, &["n"]);
    let tensor = optional.r#type.take().map(Box::new);
    optional.r#type = Some(TypeProto { value: Some(TypeValue::Optional(ElementTypeProto { elem_type: tensor })) });
    let proto = model(vec![optional], vec![node("OptionalGetElement", &["o"], &["y"])], vec![], "y");
    let proto = ModelProto { opset_import: vec![opset("", 18)], ..proto };
    assert_eq!(open(&proto).expect("opens").symbols(), ["n"]);
    assert!(import(&proto, &[("n", 5)]).expect("imports").contains("tensor<5xf32>"));
}

#[test]
fn tensors_of_too_many_elements_are_refused() {
    let large = "4611686018427387904";
    let cast = with_int(node("Cast", &["x"], &["y"]), "to", 1);
    let packed = model(vec![value("x", DataType::I4, &[large, "2"])], vec![cast], vec![], "y");
    refused(import(&packed, &[]), "F0043", "input 'x'");
    let huge = model(vec![value("x", F32, &[large, large])], vec![node("Neg", &["x"], &["y"])], vec![], "y");
    refused(import(&huge, &[]), "F0043", "input 'x'");
    let dynamic = model(vec![value("x", F32, &["n", large])], vec![node("Neg", &["x"], &["y"])], vec![], "y");
    refused(import(&dynamic, &[]), "F0043", "input 'x'");
    for sizes in [[1 << 32, 1 << 32], [3, 6_148_914_691_236_517_206]] {
        let constants = vec![ints("c", &[1]), ints("s", &sizes)];
        refused(
            import(&model(vec![], vec![node("Expand", &["c", "s"], &["y"])], constants, "y"), &[]),
            "F0043",
            "'y' (Expand)",
        );
        let fill = model(vec![], vec![node("ConstantOfShape", &["s"], &["y"])], vec![ints("s", &sizes)], "y");
        refused(import(&fill, &[]), "F0043", "'y' (ConstantOfShape)");
    }
    // A size of 0 makes the tensor empty, however large the others are.
    let empty = TensorProto { dims: vec![1 << 40, 1 << 40, 0], ..ints("e", &[]) };
    let text = import(&model(vec![], vec![node("Shape", &["e"], &["y"])], vec![empty], "y"), &[]).expect("imports");
    assert!(text.contains("dense<[1099511627776, 1099511627776, 0]>"), "{text}");
}

#[test]
fn truth_values_are_0_or_1() {
    let raw = TensorProto {
        name: "b".to_owned(),
        dims: vec![1],
        data_type: DataType::Bool.number(),
        raw_data: vec![2].into(),
        ..TensorProto::default()
    };
    let typed = TensorProto { raw_data: vec![].into(), int32_data: vec![256], ..raw.clone() };
    for constant in [raw, typed] {
        let cast = with_int(node("Cast", &["b"], &["y"]), "to", 7);
        let text = import(&model(vec![], vec![cast], vec![constant], "y"), &[]).expect("imports");
        assert!(text.contains("dense<1> : tensor<1xi64>"), "{text}");
    }
}

#[test]
fn integers_at_the_limits_are_folded_without_wrapping() {
    let pair = |x, y| vec![ints("a", &[x]), ints("b", &[y])];
    assert!(folded("Max", pair(5, i64::MIN)).starts_with("arith.constant dense<5>"));
    assert!(folded("Min", pair(i64::MAX, -2)).starts_with("arith.constant dense<-2>"));
    for (op, x, y) in [("Less", i64::MIN, 1), ("Greater", i64::MAX, -1), ("LessOrEqual", i64::MIN, i64::MAX)] {
        assert!(folded(op, pair(x, y)).starts_with("arith.constant dense<true>"), "{op}");
    }
    // Of a size: no panic.
    let nodes = vec![node("Shape", &["x"], &["s"]), node("Mul", &["s", "a"], &["t"]), node("Div", &["t", "b"], &["y"])];
    let text = import(&model(vec![value("x", F32, &["n"])], nodes, pair(i64::MIN, -1), "y"), &[]).expect("imports");
    assert!(text.contains("arith.muli"), "{text}");
}

#[test]
fn unsigned_integers_of_64_bits_are_not_folded_as_signed() {
    // MLIR computes them, as unsigned.
    let pair = || vec![u64s("a", &[1 << 63]), u64s("b", &[2])];
    let results = [
        ("Max", "arith.constant -9223372036854775808 : i64"),
        ("Less", "arith.constant false"),
        ("Div", "arith.constant 4611686018427387904 : i64"),
    ];
    for (op, expected) in results {
        let text = import(&model(vec![], vec![node(op, &["a", "b"], &["y"])], pair(), "y"), &[]).expect("imports");
        assert!(text.contains(expected), "{op}: {text}");
    }
    let cast = with_int(node("Cast", &["a"], &["y"]), "to", 1);
    let text = import(&model(vec![], vec![cast], vec![u64s("a", &[1 << 63])], "y"), &[]).expect("imports");
    assert!(text.contains("arith.constant 9.22337203E+18 : f32"), "{text}");
}

#[test]
fn bits_of_floats_are_refused() {
    let one = floats("a", &[1], &[1.0]);
    for (op, names) in [("BitwiseAnd", vec!["a", "a"]), ("BitwiseNot", vec!["a"]), ("Not", vec!["a"])] {
        let proto = model(vec![], vec![node(op, &names, &["y"])], vec![one.clone()], "y");
        let proto = ModelProto { opset_import: vec![opset("", 18)], ..proto };
        refused(import(&proto, &[]), "F0043", &format!("'y' ({op})"));
    }
}

#[test]
fn elements_of_two_types_in_one_place_are_two_weights() {
    let folder = std::env::temp_dir().join(format!("monopour-onnx-files-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("w.bin"), vec![0; 4096]).expect("a file");
    let entry = |key: &str, value: &str| StringStringEntryProto { key: key.to_owned(), value: value.to_owned() };
    let outside = |name: &str, dtype: DataType| TensorProto {
        name: name.to_owned(),
        dims: vec![1024],
        data_type: dtype.number(),
        data_location: 1,
        external_data: vec![entry("location", "w.bin")],
        ..TensorProto::default()
    };
    let nodes = vec![node("Add", &["x", "a"], &["y"]), node("Add", &["z", "b"], &["w"])];
    let inputs = vec![value("x", F32, &["1024"]), value("z", DataType::I32, &["1024"])];
    let mut proto = model(inputs, nodes, vec![outside("a", F32), outside("b", DataType::I32)], "y");
    let output = &mut proto.graph.as_mut().expect("a graph").output;
    output.push(untyped("w"));
    let opened = Model::from_bytes(&proto.encode_to_vec(), "m.onnx", &folder);
    std::fs::remove_dir_all(&folder).expect("removed");
    let options = monopour_frontend::import::ImportOptions::default();
    let text = monopour_ir::Context::scope(|cx| {
        let imported = monopour_frontend::import::run_onnx(cx, &opened.expect("opens"), &options).expect("imports");
        imported.module.op().to_string()
    });
    assert!(text.contains("> : tensor<1024xf32>") && text.contains("> : tensor<1024xi32>"), "{text}");
}

#[test]
fn size_arithmetic_that_grows_is_left_to_the_run() {
    let mut nodes = vec![node("Shape", &["x"], &["s"]), node("Add", &["s", "one"], &["p0"])];
    for k in 0..14 {
        let (from, to) = (format!("p{k}"), if k == 13 { "y".to_owned() } else { format!("p{}", k + 1) });
        nodes.push(node("Mul", &[&from, &from], &[&to]));
    }
    let text =
        import(&model(vec![value("x", F32, &["n"])], nodes, vec![ints("one", &[1])], "y"), &[]).expect("imports");
    assert!(text.matches("arith.muli").count() < 100, "{text}");

    let mut nodes = vec![node("Shape", &["x"], &["s0"])];
    for k in 0..3000 {
        let [from, sum] = [format!("s{k}"), format!("a{k}")];
        let to = if k == 2999 { "y".to_owned() } else { format!("s{}", k + 1) };
        nodes.extend([node("Add", &[&from, "one"], &[&sum]), node("Div", &[&sum, "three"], &[&to])]);
    }
    let constants = vec![scalar("one", 1), scalar("three", 3)];
    let text = import(&model(vec![value("x", F32, &["n"])], nodes, constants, "y"), &[]).expect("imports");
    assert!(text.contains("arith.divsi"), "the deep expression is computed");
}

#[test]
fn a_result_that_is_not_wanted_has_no_name() {
    let branch = graph(vec![], vec![], &[""]);
    let nodes = vec![
        node("Dropout", &["x"], &["d", ""]),
        with_graph(with_graph(node("If", &["k"], &["y"]), "then_branch", branch.clone()), "else_branch", branch),
    ];
    let inputs = vec![value("x", F32, &["4"]), value("k", DataType::Bool, &[])];
    refused(open(&model(inputs, nodes, vec![], "y")), "F0041", "output '' of graph 'g' is not defined");
}

#[test]
fn graphs_that_take_other_operands_are_refused() {
    let given = ["i", "c", "a", "b"];
    for (count, why) in [(2, "takes only 2 operands"), (4, "has an input 'b' too many")] {
        let types = [DataType::I64, DataType::Bool, F32, F32];
        let inputs = given.iter().zip(types).take(count).map(|(name, dtype)| value(name, dtype, &[])).collect();
        let nodes = vec![node("Identity", &["c"], &["on"]), node("Neg", &["x"], &["n"])];
        let whole = with_graph(node("Loop", &["m", "", "x"], &["y"]), "body", graph(inputs, nodes, &["on", "n"]));
        let inputs = vec![value("m", DataType::I64, &[]), value("x", F32, &[])];
        refused(import(&model(inputs, vec![whole], vec![], "y"), &[]), "F0043", why);
    }
}

#[test]
fn what_is_stated_twice_is_refused() {
    let nodes = || vec![node("Softmax", &["x"], &["y"])];
    let twice = with_int(with_int(node("Softmax", &["x"], &["y"]), "axis", 0), "axis", 1);
    let attribute = model(vec![value("x", F32, &["4", "4"])], vec![twice], vec![], "y");
    refused(open(&attribute), "F0041", "attribute 'axis' of node 'y' (Softmax) is given twice");

    let call = of_domain("local", node("G", &["x"], &["y"]));
    let mut functions = model(vec![value("x", F32, &["4"])], vec![call], vec![], "y");
    functions.functions = ["Neg", "Exp"].map(|op| function("G", &["a"], "b", vec![node(op, &["a"], &["b"])])).to_vec();
    refused(open(&functions), "F0041", "function 'G' of local is defined twice");

    let mut versions = model(vec![value("x", F32, &["4", "4"])], nodes(), vec![], "y");
    versions.opset_import = vec![opset("", 11), opset("ai.onnx", 13)];
    refused(open(&versions), "F0041", "the operator set ai.onnx is imported in two versions, one of them 11");
    versions.opset_import = vec![opset("", 13), opset("ai.onnx", 13)];
    assert!(import(&versions, &[]).is_ok());
}

#[test]
fn sizes_that_are_long_sums_are_not_multiplied_out() {
    // Three dimensions, each the sum of 20 sizes: their product has 8000 terms.
    let mut inputs = vec![];
    let mut nodes = vec![];
    for axis in 0..3 {
        let names: Vec<String> = (0..20).map(|k| format!("x{axis}_{k}")).collect();
        for name in &names {
            let mut shape = ["1"; 3];
            shape[axis] = name;
            inputs.push(value(name, F32, &shape));
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        nodes.push(with_int(node("Concat", &names, &[&format!("c{axis}")]), "axis", axis as i64));
    }
    nodes.extend([node("Add", &["c0", "c1"], &["s"]), node("Add", &["s", "c2"], &["t"]), node("Size", &["t"], &["y"])]);
    let text = import(&model(inputs, nodes, vec![], "y"), &[]).expect("imports");
    assert!(text.matches("arith.muli").count() < 10, "{text}");
}
