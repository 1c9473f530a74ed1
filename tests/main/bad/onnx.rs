//! ONNX models that are damaged, not valid, or larger than any memory; external data that is missing or elsewhere.

use monopour::onnx::DataType::{self, Bool, F32, I64};
use monopour::onnx::proto::{FunctionProto, GraphProto, ModelProto, NodeProto, StringStringEntryProto, TensorProto};
use monopour_testkit::onnx::{
    floats, graph, ints, model, node, opset, scalar, untyped, value, with_float, with_graph, with_int, with_ints,
};
use prost::Message;

use super::{Case, line};

/// Peak resident memory of a model that is refused: 200 MB less those of the debug binary, of which 80 MB and more are mapped.
const MEMORY_BYTES: u64 = 120 << 20;

/// All cases.
pub fn cases() -> Vec<Case> {
    let all = [damaged(), wrong_types(), graphs(), versions(), external(), large(), long()];
    all.into_iter().flatten().map(|case| case.within(MEMORY_BYTES)).collect()
}

fn refused(bytes: Vec<u8>, code: &str, about: &str) -> Case {
    line("compile m.onnx -o m.mpr --target cpu", 1, &format!("error[{code}")).file("m.onnx", bytes).about(about)
}

fn case(proto: &ModelProto, code: &str, about: &str) -> Case {
    refused(proto.encode_to_vec(), code, about)
}

/// One node from `x` of f32 to `y`, with constants.
fn of(made: NodeProto, constants: Vec<TensorProto>) -> ModelProto {
    model(vec![value("x", F32, &["4", "4"])], vec![made], constants, "y")
}

fn relu() -> ModelProto {
    of(node("Relu", &["x"], &["y"]), vec![])
}

fn damaged() -> Vec<Case> {
    let whole = of(node("Add", &["x", "w"], &["y"]), vec![floats("w", &[4, 4], &[1.0; 16])]).encode_to_vec();
    let mut cases: Vec<Case> = (1..8)
        .map(|part| refused(whole[..whole.len() * part / 8].to_vec(), "F004", &format!("{part} eighths")))
        .collect();
    let mut nested = graph(vec![], vec![node("Relu", &["x"], &["a"])], &["a"]);
    for _ in 0..200 {
        let inner = with_graph(
            with_graph(node("If", &["c"], &["a"]), "then_branch", nested.clone()),
            "else_branch",
            graph(vec![], vec![node("Neg", &["x"], &["a"])], &["a"]),
        );
        nested = graph(vec![], vec![inner], &["a"]);
    }
    let mut deep = relu();
    deep.graph = Some(GraphProto { input: vec![value("x", F32, &["4"]), value("c", Bool, &[])], ..nested });
    cases.extend([
        refused(vec![0xff; 64], "F0040", "no varint ends"),
        // A graph of 2^63 bytes.
        refused(vec![0x3a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], "F0040", "a length beyond the file"),
        refused(
            b"version https://git-lfs.github.com/spec/v1\noid sha256:4665\nsize 90387606\n".to_vec(),
            "F0040",
            "LFS",
        ),
        refused(b"func.func @main() { return }".to_vec(), "F0040", "MLIR"),
        refused(ModelProto::default().encode_to_vec(), "F0040", "no graph"),
        case(&deep, "F0040", "200 graphs, one in the other"),
    ]);
    cases
}

fn wrong_types() -> Vec<Case> {
    let x = |dtype: DataType| vec![value("x", dtype, &["4", "4"])];
    let mixed = model(
        vec![value("x", F32, &["4"]), value("z", I64, &["4"])],
        vec![node("Add", &["x", "z"], &["y"])],
        vec![],
        "y",
    );
    let branch = || graph(vec![], vec![node("Relu", &["x"], &["a"])], &["a"]);
    let condition =
        with_graph(with_graph(node("If", &["x"], &["y"]), "then_branch", branch()), "else_branch", branch());
    let mut number = relu();
    number.graph.as_mut().expect("a graph").input[0] = value("x", F32, &["4"]);
    let mut unknown = ints("w", &[1]);
    unknown.data_type = 99;
    let short = TensorProto { dims: vec![4, 4], ..floats("w", &[2], &[1.0, 2.0]) };
    let untyped_input = model(vec![untyped("x")], vec![node("Relu", &["x"], &["y"])], vec![], "y");
    let text = with_float(node("Softmax", &["x"], &["y"]), "axis", 1.0);
    vec![
        case(&mixed, "F0043", "a sum of floats and integers"),
        case(
            &model(x(Bool), vec![node("MatMul", &["x", "x"], &["y"])], vec![], "y"),
            "F0043",
            "a product of truth values",
        ),
        case(&model(x(DataType::String), vec![node("Identity", &["x"], &["y"])], vec![], "y"), "F0043", "strings"),
        case(
            &model(x(DataType::Complex64), vec![node("Abs", &["x"], &["y"])], vec![], "y"),
            "F0043",
            "complex numbers",
        ),
        case(&of(condition, vec![]), "F0043", "a condition of floats"),
        case(&of(node("Add", &["x", "w"], &["y"]), vec![unknown]), "F0044", "a constant of type 99"),
        case(&of(node("Add", &["x", "w"], &["y"]), vec![short]), "F0044", "too few elements"),
        case(&untyped_input, "F0043", "an input without a type"),
        case(&of(text, vec![]), "F0043", "an attribute of another type"),
        case(&of(with_int(node("Cast", &["x"], &["y"]), "to", 99), vec![]), "F0043", "a cast to type 99"),
        case(&of(node("Relu", &[], &["y"]), vec![]), "F0043", "no operand"),
        case(
            &of(node("Gather", &["w", "x"], &["y"]), vec![floats("w", &[4], &[1.0; 4])]),
            "F0043",
            "indices of floats",
        ),
    ]
}

/// Names and nodes.
fn graphs() -> Vec<Case> {
    let x = || vec![value("x", F32, &["4"])];
    let cycle = model(x(), vec![node("Add", &["x", "b"], &["a"]), node("Relu", &["a"], &["b"])], vec![], "b");
    let own = of(node("Add", &["x", "y"], &["y"]), vec![]);
    let twice = model(x(), vec![node("Relu", &["x"], &["y"]), node("Abs", &["x"], &["y"])], vec![], "y");
    let inner = vec![node("Add", &["x", "b"], &["a"]), node("Relu", &["a"], &["b"])];
    let inner = graph(vec![], inner, &["a"]);
    let within = with_graph(with_graph(node("If", &["c"], &["y"]), "then_branch", inner.clone()), "else_branch", inner);
    let within = model(vec![value("x", F32, &["4"]), value("c", Bool, &[])], vec![within], vec![], "y");
    let call = |name: &str| NodeProto { domain: "local".to_owned(), ..node(name, &["x"], &["y"]) };
    let function = |name: &str, calls: &str| FunctionProto {
        name: name.to_owned(),
        domain: "local".to_owned(),
        input: vec!["x".to_owned()],
        output: vec!["y".to_owned()],
        node: vec![call(calls)],
        opset_import: vec![opset("local", 1)],
        ..FunctionProto::default()
    };
    let mut recursive = model(x(), vec![call("F")], vec![], "y");
    recursive.opset_import.push(opset("local", 1));
    recursive.functions = vec![function("F", "G"), function("G", "F")];
    // 40 functions of two calls each: 2^40 nodes.
    let mut doubling = ModelProto { functions: vec![], ..recursive.clone() };
    doubling.graph.as_mut().expect("a graph").node = vec![call("F0")];
    for level in 0..40 {
        let next = format!("F{}", level + 1);
        let mut made = function(&format!("F{level}"), &next);
        made.node = vec![
            NodeProto { domain: "local".to_owned(), ..node(&next, &["x"], &["h"]) },
            NodeProto { domain: "local".to_owned(), ..node(&next, &["h"], &["y"]) },
        ];
        doubling.functions.push(made);
    }
    doubling.functions.push(FunctionProto {
        node: vec![node("Relu", &["x"], &["y"])],
        opset_import: vec![opset("", 17)],
        ..function("F40", "")
    });
    vec![
        case(&cycle, "F0041", "a cycle"),
        case(&own, "F0041", "a node that reads its result"),
        case(&within, "F0041", "a cycle in a branch"),
        case(&recursive, "F0041", "functions that call one another"),
        case(&doubling, "F004", "functions of 2^40 nodes"),
        case(&twice, "F0041", "two nodes of one result"),
        case(&of(node("Add", &["x", "z"], &["y"]), vec![]), "F0041", "an undefined name"),
        case(&of(node("Relu", &["x"], &["z"]), vec![]), "F0041", "an undefined output"),
    ]
}

fn versions() -> Vec<Case> {
    let mut cases = vec![];
    for version in [99, 0, -1, i64::MAX, i64::MIN] {
        let mut proto = relu();
        proto.opset_import[0].version = version;
        cases.push(case(&proto, "F0041", &format!("version {version}")));
    }
    let mut none = relu();
    none.opset_import.clear();
    let of_domain = NodeProto { domain: "com.example".to_owned(), ..node("Fancy", &["x"], &["y"]) };
    let mut known = of(of_domain.clone(), vec![]);
    known.opset_import.push(opset("com.example", 1));
    cases.extend([
        case(&none, "F0041", "no version"),
        case(&of(of_domain, vec![]), "F0041", "a domain without a version"),
        case(&known, "F0042", "an op of an unknown domain"),
        case(&of(node("Fancy", &["x"], &["y"]), vec![]), "F0042", "an unknown op"),
    ]);
    cases
}

/// A product with 16 floats of another file, of these entries.
fn elsewhere(entries: &[(&str, &str)]) -> ModelProto {
    let entry =
        |(key, value): &(&str, &str)| StringStringEntryProto { key: (*key).to_owned(), value: (*value).to_owned() };
    let w = TensorProto {
        data_location: 1,
        raw_data: vec![].into(),
        external_data: entries.iter().map(entry).collect(),
        ..floats("w", &[4, 4], &[])
    };
    of(node("MatMul", &["x", "w"], &["y"]), vec![w])
}

fn external() -> Vec<Case> {
    let at = |entries: &[(&str, &str)], about: &str| case(&elsewhere(entries), "F0044", about).file("w.bin", [0; 64]);
    let file = ("location", "w.bin");
    vec![
        case(&elsewhere(&[file]), "F0044", "a file that is missing"),
        case(&elsewhere(&[file]), "F0044", "a file that is cut").file("w.bin", [0; 63]),
        case(&elsewhere(&[file]), "F0044", "a file that is empty").file("w.bin", []),
        at(&[], "a file without a name"),
        at(&[("location", "")], "an empty name"),
        at(&[("location", ".")], "a folder"),
        at(&[("location", "../good/m.mlir")], "a file beside the folder"),
        at(&[("location", "a/../../good/m.mlir")], "a way out of the folder"),
        at(&[("location", "/etc/passwd")], "an absolute name"),
        at(&[("location", "/dev/zero")], "a device"),
        at(&[("location", "w.bin\0")], "a name with NUL"),
        at(&[file, ("offset", "4")], "elements beyond the end"),
        at(&[file, ("offset", "1000")], "an offset beyond the end"),
        at(&[file, ("offset", "18446744073709551615")], "an offset that overflows"),
        at(&[file, ("offset", "-4")], "a negative offset"),
        at(&[file, ("length", "60")], "too few bytes"),
        at(&[file, ("length", "1152921504606846976")], "2^60 bytes"),
        at(&[file, ("offset", "four")], "an offset in words"),
    ]
}

/// 2^60 elements, and sums of such.
fn large() -> Vec<Case> {
    const HUGE: i64 = 1 << 60;
    let huge = HUGE.to_string();
    let input = |shape: &[&str]| model(vec![value("x", F32, shape)], vec![node("Relu", &["x"], &["y"])], vec![], "y");
    let dims = |shape: &[i64]| TensorProto { dims: shape.to_vec(), ..floats("w", &[], &[1.0]) };
    let weighted =
        |shape: &[i64]| case(&of(node("Add", &["x", "w"], &["y"]), vec![dims(shape)]), "F0044", "a constant");
    let sized = |op: &str, sizes: &[i64]| case(&of(node(op, &["x", "s"], &["y"]), vec![ints("s", sizes)]), "F0", op);
    let filled = model(vec![], vec![node("ConstantOfShape", &["s"], &["y"])], vec![ints("s", &[HUGE])], "y");
    let range = vec![scalar("a", 0), scalar("b", HUGE), scalar("c", 1)];
    let range = model(vec![], vec![node("Range", &["a", "b", "c"], &["y"])], range, "y");
    let one_hot = vec![scalar("d", HUGE), floats("v", &[2], &[0.0, 1.0])];
    let one_hot = model(vec![value("x", I64, &["4"])], vec![node("OneHot", &["x", "d", "v"], &["y"])], one_hot, "y");
    let resized = of(node("Resize", &["x", "", "s"], &["y"]), vec![floats("s", &[2], &[1e30, 1.0])]);
    let image = |made: NodeProto| model(vec![value("x", F32, &["1", "1", "4", "4"])], vec![made], vec![], "y");
    let pool = with_ints(node("MaxPool", &["x"], &["y"]), "kernel_shape", &[HUGE, HUGE]);
    let padded = |pad: i64| {
        image(with_ints(with_ints(node("AveragePool", &["x"], &["y"]), "kernel_shape", &[2, 2]), "pads", &[pad; 4]))
    };
    vec![
        case(&input(&[&huge]), "F0", "an input"),
        case(&input(&["1073741824", "1073741824"]), "F0", "an input of two dimensions"),
        case(&input(&["9223372036854775807", "9223372036854775807"]), "F0", "an input of 2^126"),
        weighted(&[HUGE]),
        weighted(&[1 << 31, 1 << 31]),
        weighted(&[i64::MAX, 2]),
        weighted(&[-1]),
        weighted(&[i64::MIN]),
        sized("Expand", &[HUGE, 4, 4]),
        sized("Tile", &[HUGE, 1]),
        sized("Tile", &[i64::MAX, i64::MAX]),
        sized("Reshape", &[HUGE]),
        sized("Pad", &[HUGE, 0, 0, 0]),
        sized("Pad", &[i64::MAX, i64::MAX, i64::MAX, i64::MAX]),
        case(&filled, "F0", "ConstantOfShape"),
        case(&range, "F0", "Range"),
        case(&one_hot, "F0", "OneHot"),
        case(&resized, "F0", "Resize"),
        case(&image(pool), "F0", "a window"),
        case(&padded(HUGE), "F0", "a border"),
        case(&padded(i64::MAX), "F0", "a border whose sum wraps"),
        case(&padded(1 << 28), "F0", "a border of 2^28"),
    ]
}

/// Names of a megabyte: a message stays short.
fn long() -> Vec<Case> {
    let name = "n".repeat(1 << 20);
    let op = of(node(&name, &["x"], &["y"]), vec![]);
    let undefined = of(node("Add", &["x", &name], &["y"]), vec![]);
    let mut many = relu();
    let graph = many.graph.as_mut().expect("a graph");
    graph.node = (0..20_000).map(|n| node("Add", &["x", &format!("a{n}")], &[&format!("b{n}")])).collect();
    vec![
        case(&op, "F0042", "a long op"),
        case(&undefined, "F0041", "a long name"),
        case(&many, "F0041", "20,000 undefined names"),
    ]
}
