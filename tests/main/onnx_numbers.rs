//! Numbers at the edges of their types, sizes that meet only at run time, and nodes that are refused; values of ONNX's
//! reference evaluator.

use crate::backend::Monopour;
use crate::onnx::{check, floats, from_f32, input, ints, model, node};
use monopour::onnx::proto::{AttributeProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, attribute_type};
use monopour::onnx::{DataType, Model};
use monopour::{CompileOptions, compile_onnx};
use monopour_testkit::{Data, Dtype, HostTensor};
use prost::Message;
use std::path::Path;

fn integers(dtype: Dtype, shape: &[usize], elements: &[i64]) -> HostTensor {
    HostTensor { dtype, shape: shape.to_vec(), data: Data::Int(elements.to_vec()) }
}

fn halves(shape: &[usize], elements: &[f64]) -> HostTensor {
    HostTensor { dtype: Dtype::F16, shape: shape.to_vec(), data: Data::Float(elements.to_vec()) }
}

/// The node with an attribute of one integer.
fn int(mut node: NodeProto, name: &str, i: i64) -> NodeProto {
    node.attribute.push(AttributeProto { name: name.to_owned(), r#type: attribute_type::INT, i, ..Default::default() });
    node
}

/// The node with an attribute of text.
fn text(mut node: NodeProto, name: &str, value: &'static str) -> NodeProto {
    let (name, s) = (name.to_owned(), value.as_bytes().into());
    node.attribute.push(AttributeProto { name, r#type: attribute_type::STRING, s, ..Default::default() });
    node
}

/// The node with a float attribute.
fn float(mut node: NodeProto, name: &str, f: f32) -> NodeProto {
    node.attribute.push(AttributeProto {
        name: name.to_owned(),
        r#type: attribute_type::FLOAT,
        f,
        ..Default::default()
    });
    node
}

fn contrib(node: NodeProto) -> NodeProto {
    NodeProto { domain: "com.microsoft".to_owned(), ..node }
}

/// The model of another version.
fn version(mut proto: ModelProto, version: i64) -> ModelProto {
    let import = |domain: &str, version| OperatorSetIdProto { domain: domain.to_owned(), version };
    proto.opset_import = vec![import("", version), import("com.microsoft", 1)];
    proto
}

/// Runs a model on the CPU and on a GPU, if there is one, and compares its only result: floats within 1/1000, NaN by none.
fn check_all(proto: &ModelProto, inputs: &[HostTensor], expected: &HostTensor) {
    for backend in [Some(Monopour::cpu()), Monopour::gpu()].into_iter().flatten() {
        check_on(&backend, proto, inputs, expected, 1e-3);
    }
}

fn check_on(backend: &Monopour, proto: &ModelProto, inputs: &[HostTensor], expected: &HostTensor, tolerance: f64) {
    let model = Model::from_bytes(&proto.encode_to_vec(), "m.onnx", Path::new("")).unwrap_or_else(|e| panic!("{e}"));
    let options = CompileOptions { targets: vec![backend.target().clone()], verify: true, ..Default::default() };
    let program = compile_onnx(&model, &options).unwrap_or_else(|e| panic!("{e}")).program;
    let run = backend.run_program(program, inputs).unwrap_or_else(|e| panic!("{e}"));
    let [result] = run.outputs.as_slice() else { panic!("{} results", run.outputs.len()) };
    assert_eq!((result.dtype, &result.shape), (expected.dtype, &expected.shape));
    match (&result.data, &expected.data) {
        (Data::Float(found), Data::Float(wanted)) => {
            let close = |a: f64, b: f64| a == b || (a - b).abs() <= tolerance * b.abs().max(1.0);
            let all = found.iter().zip(wanted).all(|(a, b)| close(*a, *b));
            assert!(all && found.len() == wanted.len(), "{found:?}, expected {wanted:?}");
        }
        (found, wanted) => assert_eq!(found, wanted),
    }
}

/// What a model is refused for.
fn refusal(proto: &ModelProto) -> String {
    let options = CompileOptions { targets: vec![Monopour::cpu().target().clone()], ..Default::default() };
    let model = match Model::from_bytes(&proto.encode_to_vec(), "m.onnx", Path::new("")) {
        Ok(model) => model,
        Err(error) => return error.to_string(),
    };
    compile_onnx(&model, &options).map_or_else(|error| error.to_string(), |_| String::from("nothing"))
}

const BIG: i64 = i64::MAX;

#[test]
fn minima_of_large_integers_are_exact() {
    let x = || vec![input("x", DataType::I64, &["3"])];
    let given = [integers(Dtype::Int(64), &[3], &[BIG, BIG - 1, BIG])];
    let least = model(x(), vec![int(node("ReduceMin(x) -> y", &[]), "keepdims", 0)], vec![], "y");
    check_all(&least, &given, &integers(Dtype::Int(64), &[], &[BIG - 1]));
    let place = model(x(), vec![int(node("ArgMin(x) -> y", &[]), "keepdims", 0)], vec![], "y");
    check_all(&place, &given, &integers(Dtype::Int(64), &[], &[1]));
    let scatter = text(node("ScatterElements(x, at, u) -> y", &[]), "reduction", "min");
    let scattered = model(x(), vec![scatter], vec![ints("at", &[2]), ints("u", &[7])], "y");
    check_all(&version(scattered, 18), &given, &integers(Dtype::Int(64), &[3], &[BIG, BIG - 1, 7]));
}

#[test]
fn integer_scalars_are_exact() {
    let scalar = |name: &str, value: i64| TensorProto { dims: vec![], ..ints(name, &[value]) };
    let constants = vec![ints("p", &[0, 1]), scalar("v", BIG)];
    let padded = model(vec![input("x", DataType::I64, &["2"])], vec![node("Pad(x, p, v) -> y", &[])], constants, "y");
    check_all(&padded, &[integers(Dtype::Int(64), &[2], &[1, 2])], &integers(Dtype::Int(64), &[3], &[1, 2, BIG]));
    let odd = (1 << 53) + 1;
    let constants = vec![scalar("start", odd), scalar("step", 1)];
    let range = node("Range(start, limit, step) -> y", &[]);
    let range = model(vec![input("limit", DataType::I64, &[])], vec![range], constants, "y");
    let limit = integers(Dtype::Int(64), &[], &[odd + 2]);
    check_all(&range, &[limit], &integers(Dtype::Int(64), &[2], &[odd, odd + 1]));
}

#[test]
fn halves_are_summed_as_floats() {
    let x = |shape: &[&str]| input("x", DataType::F16, shape);
    let inputs = vec![x(&["64", "64"]), input("axes", DataType::I64, &["2"])];
    let mean = version(model(inputs, vec![node("ReduceMean(x, axes) -> y", &[])], vec![], "y"), 18);
    let given = [halves(&[64, 64], &[32.0; 4096]), integers(Dtype::Int(64), &[2], &[0, 1])];
    check_all(&mean, &given, &halves(&[1, 1], &[32.0]));
    let one =
        TensorProto { data_type: DataType::F16.number(), raw_data: vec![0, 0x3c].into(), ..floats("s", &[1], &[]) };
    let norm = node("InstanceNormalization(x, s, s) -> y", &[]);
    let norm = model(vec![x(&["1", "1", "4"])], vec![norm], vec![one], "y");
    let given = [halves(&[1, 1, 4], &[-1000.0, 1000.0, -1000.0, 1000.0])];
    check_all(&norm, &given, &halves(&[1, 1, 4], &[0.0, 2.0, 0.0, 2.0]));
    let norm = float(float(node("LRN(x) -> y", &[("size", &[1])]), "alpha", 1.0), "beta", 0.5);
    let norm = model(vec![x(&["1", "1", "2"])], vec![norm], vec![], "y");
    check_all(&norm, &[halves(&[1, 1, 2], &[400.0, 0.0])], &halves(&[1, 1, 2], &[1.0, 0.0]));
    let kernel = |op: &str| {
        let mut node = node(&format!("{op}(x) -> y"), &[("kernel_shape", &[2])]);
        (node.attribute[0].r#type, node.attribute[0].ints) = (attribute_type::INTS, vec![2]);
        model(vec![x(&["1", "1", "2"])], vec![node], vec![], "y")
    };
    check_all(&kernel("AveragePool"), &[halves(&[1, 1, 2], &[40000.0; 2])], &halves(&[1, 1, 1], &[40000.0]));
    check_all(&kernel("LpPool"), &[halves(&[1, 1, 2], &[300.0, 400.0])], &halves(&[1, 1, 1], &[500.0]));
}

/// A constant of halves, given by their bits.
fn half_bits(name: &str, shape: &[i64], bits: &[u16]) -> TensorProto {
    let raw_data = bits.iter().flat_map(|bits| bits.to_le_bytes()).collect::<Vec<_>>().into();
    TensorProto { data_type: DataType::F16.number(), raw_data, ..floats(name, shape, &[]) }
}

#[test]
fn products_of_halves_are_summed_as_floats() {
    // From 2048 on a sum of ones in f16 stays as it is.
    let ones = |shape: &[usize]| halves(shape, &vec![1.0; shape.iter().product()]);
    let weights = |shape: &[i64]| half_bits("w", shape, &vec![0x3c00; shape.iter().product::<i64>() as usize]);
    let x = |shape: &[&str]| vec![input("x", DataType::F16, shape)];
    let product = model(x(&["2", "4096"]), vec![node("MatMul(x, w) -> y", &[])], vec![weights(&[4096, 3])], "y");
    check_all(&product, &[ones(&[2, 4096])], &halves(&[2, 3], &[4096.0; 6]));
    let open = model(x(&["n", "4096"]), vec![node("MatMul(x, w) -> y", &[])], vec![weights(&[4096, 3])], "y");
    check_all(&open, &[ones(&[2, 4096])], &halves(&[2, 3], &[4096.0; 6]));
    let gemm = node("Gemm(x, w, c) -> y", &[("transB", &[1])]);
    let constants = vec![weights(&[3, 4096]), half_bits("c", &[3], &[0, 0xe800, 0])];
    let gemm = model(x(&["2", "4096"]), vec![gemm], constants, "y");
    check_all(&gemm, &[ones(&[2, 4096])], &halves(&[2, 3], &[4096.0, 2048.0, 4096.0, 4096.0, 2048.0, 4096.0]));
    let image = &["1", "1024", "2", "2"];
    let conv = model(x(image), vec![node("Conv(x, w) -> y", &[])], vec![weights(&[1, 1024, 2, 2])], "y");
    check_all(&conv, &[ones(&[1, 1024, 2, 2])], &halves(&[1, 1, 1, 1], &[4096.0]));
    let inputs = ["q", "k", "v"].map(|name| input(name, DataType::F16, &["1", "1", "1", "4096"])).into();
    let attention = version(model(inputs, vec![node("Attention(q, k, v) -> y", &[])], vec![], "y"), 23);
    check_all(&attention, &[(); 3].map(|()| ones(&[1, 1, 1, 4096])), &ones(&[1, 1, 1, 4096]));
}

#[test]
fn a_mean_of_unsigned_integers_has_no_sign() {
    let mean = model(vec![input("x", DataType::U32, &["2"])], vec![node("ReduceMean(x) -> y", &[])], vec![], "y");
    let given = [integers(Dtype::Unsigned(32), &[2], &[2_000_000_000, 1_000_000_000])];
    check_all(&mean, &given, &integers(Dtype::Unsigned(32), &[1], &[1_500_000_000]));
}

#[test]
fn the_logarithm_of_a_sum_of_nothing_is_infinite() {
    let x = || input("x", DataType::F32, &["2", "2"]);
    let given = from_f32(&[2, 2], &[f32::NEG_INFINITY, f32::NEG_INFINITY, 0.0, 0.0]);
    let wanted = from_f32(&[2, 1], &[f32::NEG_INFINITY, 2f32.ln()]);
    let known = node("ReduceLogSumExp(x, axes) -> y", &[]);
    let known = model(vec![x()], vec![known], vec![ints("axes", &[1])], "y");
    check_all(&version(known, 18), std::slice::from_ref(&given), &wanted);
    let inputs = vec![x(), input("axes", DataType::I64, &["1"])];
    let read = model(inputs, vec![node("ReduceLogSumExp(x, axes) -> y", &[])], vec![], "y");
    check_all(&version(read, 18), &[given, integers(Dtype::Int(64), &[1], &[1])], &wanted);
}

#[test]
fn an_operand_expands_from_a_size_of_one_at_run_time() {
    let inputs = || vec![input("x", DataType::F32, &["n"]), input("s", DataType::I64, &["2"])];
    let read = model(inputs(), vec![node("Expand(x, s) -> y", &[])], vec![], "y");
    let size = |sizes: [i64; 2]| integers(Dtype::Int(64), &[2], &sizes);
    check(&read, &[from_f32(&[1], &[5.0]), size([1, 3])], &[1, 3], &[5.0; 3]);
    check(&read, &[from_f32(&[2], &[5.0, 6.0]), size([2, 1])], &[2, 2], &[5.0, 6.0, 5.0, 6.0]);
    check(&read, &[from_f32(&[2], &[5.0, 6.0]), size([1, 2])], &[1, 2], &[5.0, 6.0]);
    let known = vec![input("x", DataType::F32, &["n"])];
    let known = model(known, vec![node("Expand(x, s) -> y", &[])], vec![ints("s", &[3])], "y");
    check(&known, &[from_f32(&[1], &[5.0])], &[3], &[5.0; 3]);
    check(&known, &[from_f32(&[3], &[5.0, 6.0, 7.0])], &[3], &[5.0, 6.0, 7.0]);
}

#[test]
fn either_operand_broadcasts_from_a_size_of_one_at_run_time() {
    let inputs = || vec![input("x", DataType::F32, &["n", "2"]), input("z", DataType::F32, &["m", "2"])];
    let of = |rows: usize, by: f32| from_f32(&[rows, 2], &(0..2 * rows).map(|at| by * at as f32).collect::<Vec<_>>());
    let sum = model(inputs(), vec![node("Add(x, z) -> y", &[])], vec![], "y");
    check(&sum, &[of(1, 1.0), of(3, 10.0)], &[3, 2], &[0.0, 11.0, 20.0, 31.0, 40.0, 51.0]);
    check(&sum, &[of(3, 1.0), of(1, 10.0)], &[3, 2], &[0.0, 11.0, 2.0, 13.0, 4.0, 15.0]);
    check(&sum, &[of(2, 1.0), of(2, 10.0)], &[2, 2], &[0.0, 11.0, 22.0, 33.0]);
    check(&sum, &[of(1, 1.0), of(0, 10.0)], &[0, 2], &[]);
    for backend in [Some(Monopour::cpu()), Monopour::gpu()].into_iter().flatten() {
        let model = Model::from_bytes(&sum.encode_to_vec(), "m.onnx", Path::new("")).unwrap_or_else(|e| panic!("{e}"));
        let options = CompileOptions { targets: vec![backend.target().clone()], ..Default::default() };
        let program = compile_onnx(&model, &options).unwrap_or_else(|e| panic!("{e}")).program;
        let error =
            backend.run_program(program, &[of(2, 1.0), of(3, 10.0)]).expect_err("2 and 3 rows do not broadcast");
        assert!(error.to_string().contains("a dimension of size n broadcasts to"), "{error}");
    }
    let inputs = vec![input("x", DataType::F32, &["n"]), input("z", DataType::F32, &["3"])];
    let known = model(inputs, vec![node("Mul(x, z) -> y", &[])], vec![], "y");
    let three = || from_f32(&[3], &[1.0, 2.0, 3.0]);
    check(&known, &[from_f32(&[1], &[5.0]), three()], &[3], &[5.0, 10.0, 15.0]);
    check(&known, &[three(), three()], &[3], &[1.0, 4.0, 9.0]);
    let inputs = vec![input("x", DataType::F32, &["n", "1", "2"]), input("z", DataType::F32, &["m", "2", "1"])];
    let product = model(inputs, vec![node("MatMul(x, z) -> y", &[])], vec![], "y");
    let batches = |count: usize, shape: [usize; 2]| {
        from_f32(&[count, shape[0], shape[1]], &(1..=2 * count).map(|at| at as f32).collect::<Vec<_>>())
    };
    check(&product, &[batches(1, [1, 2]), batches(2, [2, 1])], &[2, 1, 1], &[5.0, 11.0]);
    check(&product, &[batches(2, [1, 2]), batches(2, [2, 1])], &[2, 1, 1], &[5.0, 25.0]);
}

#[test]
fn blocks_of_all_elements_of_an_axis() {
    let inputs = vec![input("x", DataType::I8, &["1", "2", "3"]), input("s", DataType::F32, &["1", "2", "3"])];
    let node = node("DequantizeLinear(x, s) -> y", &[("axis", &[0]), ("block_size", &[2])]);
    let proto = version(model(inputs, vec![node], vec![], "y"), 21);
    let scales = from_f32(&[1, 2, 3], &[1.0, 1.0, 1.0, 2.0, 2.0, 2.0]);
    let given = [integers(Dtype::Int(8), &[1, 2, 3], &[1, 2, 3, 4, 5, 6]), scales];
    check(&proto, &given, &[1, 2, 3], &[1.0, 2.0, 3.0, 8.0, 10.0, 12.0]);
}

#[test]
fn no_updates_leave_the_operand() {
    for reduction in ["none", "add"] {
        let scatter = text(node("ScatterElements(x, at, u) -> y", &[]), "reduction", reduction);
        for size in ["n", "0"] {
            let inputs = vec![
                input("x", DataType::F32, &["2"]),
                input("at", DataType::I64, &[size]),
                input("u", DataType::F32, &[size]),
            ];
            let proto = version(model(inputs, vec![scatter.clone()], vec![], "y"), 18);
            let given = [from_f32(&[2], &[1.0, 2.0]), integers(Dtype::Int(64), &[0], &[]), from_f32(&[0], &[])];
            check(&proto, &given, &[2], &[1.0, 2.0]);
        }
    }
}

#[test]
fn an_index_tuple_outside_writes_nothing() {
    let inputs = vec![input("x", DataType::F32, &["2", "3"]), input("u", DataType::F32, &["2"])];
    let at = TensorProto { dims: vec![2, 2], ..ints("at", &[0, 5, 1, 0]) };
    let proto = model(inputs, vec![node("ScatterND(x, at, u) -> y", &[])], vec![at], "y");
    let given = [from_f32(&[2, 3], &[0.0; 6]), from_f32(&[2], &[8.0, 9.0])];
    check(&proto, &given, &[2, 3], &[0.0, 0.0, 0.0, 9.0, 0.0, 0.0]);
}

#[test]
fn one_table_turns_all_batches() {
    let inputs = vec![input("x", DataType::F32, &["2", "1", "1", "2"])];
    let constants = vec![floats("cos", &[1, 1, 1], &[0.0]), floats("sin", &[1, 1, 1], &[1.0])];
    let proto = model(inputs, vec![node("RotaryEmbedding(x, cos, sin) -> y", &[])], constants, "y");
    let given = from_f32(&[2, 1, 1, 2], &[1.0, 2.0, 3.0, 4.0]);
    check(&version(proto, 23), &[given], &[2, 1, 1, 2], &[-2.0, 1.0, -4.0, 3.0]);
}

#[test]
fn a_frame_that_is_longer_than_its_window() {
    let scalar = |name: &str, value: i64| TensorProto { dims: vec![], ..ints(name, &[value]) };
    let constants = vec![scalar("step", 4), floats("w", &[2], &[1.0, 2.0]), scalar("n", 4)];
    let inputs = vec![input("x", DataType::F32, &["1", "4", "1"])];
    let proto = model(inputs, vec![node("STFT(x, step, w, n) -> y", &[])], constants, "y");
    // The transform of 1, 2, 0, 0.
    let given = from_f32(&[1, 4, 1], &[1.0; 4]);
    check(&proto, &[given], &[1, 1, 3, 2], &[3.0, 0.0, 1.0, -2.0, -1.0, 0.0]);
}

#[test]
fn each_axis_is_resized_by_its_own_rounding() {
    let constants = vec![floats("s", &[4], &[1.0, 1.0, 2.0, 2.0 / 3.0])];
    let inputs = vec![input("x", DataType::F32, &["1", "1", "2", "3"])];
    let proto = version(model(inputs, vec![node("Resize(x, s) -> y", &[])], constants, "y"), 10);
    let given = from_f32(&[1, 1, 2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    check(&proto, &[given], &[1, 1, 4, 2], &[0.0, 2.0, 0.0, 2.0, 3.0, 5.0, 3.0, 5.0]);
}

/// Growth by whole numbers repeats elements in some modes, and takes others in the rest.
#[test]
fn images_that_grow_by_whole_numbers_take_the_nearest_elements() {
    let (height, width) = (3, 5);
    let given = from_f32(&[1, 2, height, width], &(0..30).map(|n| n as f32).collect::<Vec<_>>());
    type Rounding = (&'static str, fn(f64) -> f64);
    type Place = (&'static str, fn(f64, f64) -> f64);
    let round: [Rounding; 4] = [
        ("round_prefer_floor", |place| (place - 0.5).ceil()),
        ("round_prefer_ceil", |place| (place + 0.5).floor()),
        ("floor", f64::floor),
        ("ceil", f64::ceil),
    ];
    let places: [Place; 2] = [("asymmetric", |at, by| at / by), ("half_pixel", |at, by| (at + 0.5) / by - 0.5)];
    for (rows, columns) in [(2, 2), (1, 4), (3, 2)] {
        for ((rounding, rounded), (transformation, place)) in
            round.iter().flat_map(|r| places.iter().map(move |p| (r, p)))
        {
            let scales = floats("s", &[4], &[1.0, 1.0, rows as f32, columns as f32]);
            let resize = text(node("Resize(x, , s) -> y", &[]), "nearest_mode", rounding);
            let resize = text(resize, "coordinate_transformation_mode", transformation);
            let inputs = vec![input("x", DataType::F32, &["1", "2", "h", "5"])];
            let proto = version(model(inputs, vec![resize], vec![scales], "y"), 13);
            let nearest = |at: usize, by: usize, size: usize| {
                rounded(place(at as f64, by as f64)).clamp(0.0, (size - 1) as f64) as usize
            };
            let (tall, wide) = (height * rows, width * columns);
            let mut wanted = vec![];
            for channel in 0..2 {
                for (i, j) in (0..tall).flat_map(|i| (0..wide).map(move |j| (i, j))) {
                    let (row, column) = (nearest(i, rows, height), nearest(j, columns, width));
                    wanted.push(((channel * height + row) * width + column) as f32);
                }
            }
            check_all(&proto, std::slice::from_ref(&given), &from_f32(&[1, 2, tall, wide], &wanted));
        }
    }
}

#[test]
fn types_of_further_results() {
    let inputs = vec![input("x", DataType::F32, &["2"])];
    let proto = version(model(inputs, vec![node("Dropout(x) -> y, m", &[])], vec![], "m"), 7);
    check_all(&proto, &[from_f32(&[2], &[3.0, 4.0])], &from_f32(&[2], &[1.0, 1.0]));
    let one = TensorProto {
        data_type: DataType::F16.number(),
        raw_data: [0, 0x3c].repeat(3).into(),
        ..floats("w", &[3], &[])
    };
    let norm = node("LayerNormalization(x, w) -> y, m", &[("stash_type", &[11])]);
    let proto = model(vec![input("x", DataType::F16, &["3"])], vec![norm], vec![one], "m");
    let wanted = HostTensor { dtype: Dtype::F64, shape: vec![1], data: Data::Float(vec![7.0 / 3.0]) };
    check_on(&Monopour::cpu(), &proto, &[halves(&[3], &[1.0, 2.0, 4.0])], &wanted, 1e-12);
}

#[test]
fn a_vector_has_one_channel() {
    let constants = vec![floats("one", &[1], &[1.0]), floats("two", &[1], &[2.0]), floats("var", &[1], &[4.0])];
    let norm = float(node("BatchNormalization(x, two, one, one, var) -> y", &[]), "epsilon", 0.0);
    let proto = model(vec![input("x", DataType::F32, &["3"])], vec![norm], constants, "y");
    check(&proto, &[from_f32(&[3], &[1.0, 3.0, 5.0])], &[3], &[1.0, 3.0, 5.0]);
}

#[test]
fn a_step_of_the_least_integer() {
    let constants = vec![ints("from", &[-1]), ints("to", &[i64::MIN]), ints("axes", &[0]), ints("step", &[i64::MIN])];
    let inputs = vec![input("x", DataType::F32, &["3"])];
    let proto = model(inputs, vec![node("Slice(x, from, to, axes, step) -> y", &[])], constants, "y");
    check(&proto, &[from_f32(&[3], &[1.0, 2.0, 3.0])], &[1], &[3.0]);
}

/// Each model is refused for that.
fn all_refused(cases: &[(ModelProto, &str)]) {
    for (proto, wanted) in cases {
        let found = refusal(proto);
        assert!(found.contains(wanted), "{found}, expected {wanted}");
    }
}

/// Without a check these nodes end in a panic or in numbers.
#[test]
fn operands_that_do_not_fit_are_refused() {
    let f32 = |name: &str, shape: &[&str]| input(name, DataType::F32, shape);
    let one = |inputs, node, opset| version(model(inputs, vec![node], vec![], "y"), opset);
    let x3 = || f32("x", &["2", "3"]);
    let bytes = |shape: &[&str]| input("b", DataType::U8, shape);
    let bits = || {
        let attributes: [(&str, &[i64]); 3] = [("N", &[64]), ("K", &[256]), ("block_size", &[32])];
        int(contrib(node("MatMulNBits(x, b, s) -> y", &attributes)), "bits", 4)
    };
    let cases: Vec<(ModelProto, &str)> = vec![
        (one(vec![x3(), f32("z", &["2", "2"])], node("Concat(x, z) -> y", &[("axis", &[0])]), 17), "of size 3 and 2"),
        (
            one(vec![input("x", DataType::I32, &["2", "2"])], float(node("Gemm(x, x) -> y", &[]), "alpha", 0.5), 17),
            "a factor that is no integer",
        ),
        (
            one(vec![f32("x", &["3", "3"]), f32("c", &["1", "3", "3"])], node("Gemm(x, x, c) -> y", &[]), 17),
            "of a rank above 2",
        ),
        (
            one(vec![f32("x", &["1", "256"]), bytes(&["64", "4", "16"]), f32("s", &["512"])], bits(), 17),
            "elements do not have the shape",
        ),
        (
            one(vec![f32("x", &["1", "128"]), bytes(&["64", "8", "16"]), f32("s", &["512"])], bits(), 17),
            "a product over 128 and 256 elements",
        ),
    ];
    all_refused(&cases);
}

#[test]
fn ranks_that_do_not_fit_are_refused() {
    let f32 = |name: &str, shape: &[&str]| input(name, DataType::F32, shape);
    let one = |inputs, node, opset| version(model(inputs, vec![node], vec![], "y"), opset);
    let x3 = || f32("x", &["2", "3"]);
    let heads = || int(contrib(node("MultiHeadAttention(x, , , bias) -> y", &[])), "num_heads", 1);
    let hidden = node("LSTM(x, w, r, b) -> y", &[("hidden_size", &[1])]);
    let cases: Vec<(ModelProto, &str)> = vec![
        (
            one(vec![f32("x", &["2", "3", "1", "3", "4"]), f32("bias", &["12"])], heads(), 17),
            "a bias of packed operands",
        ),
        (one(vec![f32("x", &[])], contrib(node("SkipLayerNormalization(x, x, x) -> y", &[])), 17), "has no dimensions"),
        (one(vec![f32("x", &["3"])], node("LRN(x) -> y", &[("size", &[1])]), 17), "has no channels"),
        (one(vec![x3()], node("Dropout(x) -> y", &[]), 6), "training is not supported"),
        (one(vec![x3()], node("Gemm(x, x) -> y", &[]), 17), "a product over 3 and 2 elements"),
        (
            one(vec![f32("x", &["3"])], node("Attention(x, x, x) -> y", &[]), 23),
            "are not all of rank 3 or all of rank 4",
        ),
        (
            one(vec![f32("x", &["3"]), f32("s", &["1"])], node("InstanceNormalization(x, s, s) -> y", &[]), 17),
            "its image has no channels",
        ),
        (
            one(vec![x3(), f32("s", &["2"])], node("DequantizeLinear(x, s) -> y", &[("axis", &[1])]), 17),
            "does not broadcast",
        ),
        (
            one(
                vec![f32("x", &["1", "3", "4"]), f32("s", &["1", "2", "4"])],
                node("NonMaxSuppression(x, s) -> y", &[]),
                17,
            ),
            "not as many as its scores",
        ),
        (
            one(
                vec![f32("x", &["1", "1", "4", "4"]), f32("r", &["1", "3"]), input("i", DataType::I64, &["1"])],
                node("RoiAlign(x, r, i) -> y", &[]),
                16,
            ),
            "its regions are not four numbers each",
        ),
        (
            one(
                vec![
                    f32("x", &["1", "1", "1"]),
                    f32("w", &["1", "4", "1"]),
                    f32("r", &["1", "4", "1"]),
                    f32("b", &["1", "4"]),
                ],
                hidden,
                17,
            ),
            "has no 4 elements from 4 on",
        ),
    ];
    all_refused(&cases);
}

#[test]
fn tables_that_do_not_fit_are_refused() {
    let f32 = |name: &str, shape: &[&str]| input(name, DataType::F32, shape);
    let one = |inputs, node, opset| version(model(inputs, vec![node], vec![], "y"), opset);
    let x3 = || f32("x", &["2", "3"]);
    let cases: Vec<(ModelProto, &str)> = vec![
        (
            one(
                vec![f32("x", &["2", "1", "1", "4"]), f32("c", &["2", "1", "1"])],
                node("RotaryEmbedding(x, c, c) -> y", &[]),
                23,
            ),
            "a table of width 1 for 2 pairs",
        ),
        (
            one(vec![f32("x", &[]), f32("s", &["2"])], node("DequantizeLinear(x, s) -> y", &[]), 17),
            "has no dimension to scale",
        ),
        (
            one(
                vec![x3(), f32("c", &[]), input("p", DataType::I64, &["1"])],
                contrib(node("RotaryEmbedding(x, p, c, c) -> y", &[])),
                17,
            ),
            "its sines and cosines are not of rank 2",
        ),
    ];
    all_refused(&cases);
}
