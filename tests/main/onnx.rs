//! Small ONNX models, from their bytes to results, on the CPU and a GPU.

use crate::backend::Monopour;
use monopour::onnx::proto::{ModelProto, NodeProto, StringStringEntryProto, TensorProto};
use monopour::onnx::{DataType, Model};
use monopour::{CompileOptions, compile_onnx};
pub(crate) use monopour_testkit::onnx::{floats, ints, model, parsed_node as node, value as input};
use monopour_testkit::onnx::{with_float, with_ints, with_text};
use monopour_testkit::{Dtype, HostTensor};
use prost::Message;
use std::path::Path;

/// A tensor of floats.
pub(crate) fn from_f32(shape: &[usize], values: &[f32]) -> HostTensor {
    HostTensor::from_f32(shape, values).expect("as many values as the shape has")
}

/// Runs a model on the CPU and on a GPU, if there is one, and compares its only result.
pub(crate) fn check(proto: &ModelProto, inputs: &[HostTensor], shape: &[usize], expected: &[f64]) {
    check_in(proto, Path::new(""), inputs, shape, expected);
}

/// As [`check`], with files in a folder.
pub(crate) fn check_in(proto: &ModelProto, folder: &Path, inputs: &[HostTensor], shape: &[usize], expected: &[f64]) {
    let model = Model::from_bytes(&proto.encode_to_vec(), "m.onnx", folder).unwrap_or_else(|e| panic!("{e}"));
    for backend in [Some(Monopour::cpu()), Monopour::gpu()].into_iter().flatten() {
        let options = CompileOptions { targets: vec![backend.target().clone()], verify: true, ..Default::default() };
        let program = compile_onnx(&model, &options).unwrap_or_else(|e| panic!("{e}")).program;
        let run = backend.run_program(program, inputs).unwrap_or_else(|e| panic!("{e}"));
        let [result] = run.outputs.as_slice() else { panic!("{} results", run.outputs.len()) };
        let found = result.to_f64();
        assert_eq!(result.shape, shape);
        let close = found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-5 * b.abs().max(1.0));
        assert!(close && found.len() == expected.len(), "{found:?}, expected {expected:?}");
    }
}

#[test]
fn a_padded_convolution_with_its_norm_and_pool() {
    let nodes = vec![
        node("Conv(x, w, b) -> c", &[("pads", &[1, 1, 1, 1]), ("strides", &[2, 2])]),
        node("BatchNormalization(c, scale, shift, mean, variance) -> n", &[]),
        node("Relu(n) -> r", &[]),
        node("GlobalAveragePool(r) -> y", &[]),
    ];
    let constants = vec![
        floats("w", &[2, 1, 3, 3], &[[1.0; 9], [-1.0; 9]].concat()),
        floats("b", &[2], &[0.0, 50.0]),
        floats("scale", &[2], &[2.0, 1.0]),
        floats("shift", &[2], &[1.0, 0.0]),
        floats("mean", &[2], &[3.0, 0.0]),
        // The default epsilon is far below the tolerance beside these.
        floats("variance", &[2], &[4.0, 1.0]),
    ];
    let proto = model(vec![input("x", DataType::F32, &["1", "1", "4", "4"])], nodes, constants, "y");
    let x: Vec<f32> = (0..16).map(|v| v as f32).collect();
    // Sums of the windows at (0, 0), (0, 2), (2, 0), (2, 2): 10, 24, 51, 90.
    let sums = [10.0, 24.0, 51.0, 90.0];
    let channel = |f: &dyn Fn(f64) -> f64| sums.iter().map(|s| f(*s).max(0.0)).sum::<f64>() / 4.0;
    let expected = [channel(&|s| (s - 3.0) / (4.0f64 + 1e-5).sqrt() * 2.0 + 1.0), channel(&|s| 50.0 - s)];
    check(&proto, &[from_f32(&[1, 1, 4, 4], &x)], &[1, 2, 1, 1], &expected);
}

/// Values of small weights, about zero.
fn small(count: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 37 % 101) as f32 - 50.0) / 51.0).collect()
}

/// A product of `x` named `c`, the shape of `x`, its other constants, and the number of its output channels.
type Product = (NodeProto, &'static [usize], Vec<TensorProto>, usize);

/// Products whose output channels lie in each of the ways that there are.
fn products() -> [Product; 5] {
    let constant = |name: &str, shape: &[i64]| floats(name, shape, &small(shape.iter().product::<i64>() as usize));
    let gemm = |name: &str, value| with_float(node("Gemm(x, w, b) -> c", &[]), name, value);
    let conv = node("Conv(x, w) -> c", &[("group", &[2]), ("pads", &[1, 0, 0, 1])]);
    let transposed = node("ConvTranspose(x, w, b) -> c", &[("group", &[2]), ("strides", &[2, 1])]);
    let columns = node("Gemm(x, w) -> c", &[("transB", &[1])]);
    [
        (conv, &[2, 4, 5, 6], vec![constant("w", &[6, 2, 3, 2])], 6),
        (transposed, &[1, 4, 3, 5], vec![constant("w", &[4, 3, 2, 2]), constant("b", &[6])], 6),
        (columns, &[3, 5], vec![constant("w", &[4, 5])], 4),
        (gemm("beta", 2.5), &[3, 5], vec![constant("w", &[5, 4]), constant("b", &[1, 4])], 4),
        (gemm("alpha", -0.5), &[3, 5], vec![constant("w", &[5, 4]), constant("b", &[])], 4),
    ]
}

#[test]
fn norms_in_weights_have_the_values_of_norms() {
    let parameters = |channels: usize| {
        let of = |name: &str, f: &dyn Fn(f32) -> f32| {
            floats(name, &[channels as i64], &(0..channels).map(|c| f(c as f32)).collect::<Vec<_>>())
        };
        vec![
            of("scale", &|c| 0.5 - 0.75 * c),
            of("shift", &|c| c - 1.5),
            of("mean", &|c| 0.25 * c * c),
            of("variance", &|c| 0.3 + c),
        ]
    };
    for (product, shape, weights, channels) in products() {
        let sizes: Vec<String> = shape.iter().map(ToString::to_string).collect();
        let sizes: Vec<&str> = sizes.iter().map(String::as_str).collect();
        let x = from_f32(shape, &small(shape.iter().product()));
        let norm = node("BatchNormalization(c, scale, shift, mean, variance) -> n", &[]);
        let run = |nodes: Vec<NodeProto>, backend: &Monopour| {
            let constants = [weights.clone(), parameters(channels)].concat();
            let proto = model(vec![input("x", DataType::F32, &sizes)], nodes, constants, "y");
            let model =
                Model::from_bytes(&proto.encode_to_vec(), "m.onnx", Path::new("")).unwrap_or_else(|e| panic!("{e}"));
            let options =
                CompileOptions { targets: vec![backend.target().clone()], verify: true, ..Default::default() };
            let program = compile_onnx(&model, &options).unwrap_or_else(|e| panic!("{e}")).program;
            backend.run_program(program, std::slice::from_ref(&x)).unwrap_or_else(|e| panic!("{e}")).outputs[0].to_f64()
        };
        for backend in [Some(Monopour::cpu()), Monopour::gpu()].into_iter().flatten() {
            // A second reader keeps the norm apart: y = n + c - c.
            let kept = vec![product.clone(), norm.clone(), node("Add(n, c) -> s", &[]), node("Sub(s, c) -> y", &[])];
            let expected = run(kept, &backend);
            let found = run(vec![product.clone(), norm.clone(), node("Identity(n) -> y", &[])], &backend);
            let close = found.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= 1e-4 * b.abs().max(1.0));
            assert!(close && found.len() == expected.len(), "{}: {found:?}, expected {expected:?}", product.op_type);
        }
    }
}

/// Taps that meet padding alone are no part of a filter of known numbers, but where one of them is infinite.
#[test]
fn taps_of_padding_are_left_out() {
    let ([height, width], [down, across]) = ([3_i64, 4], [3_i64, 2]);
    let image: Vec<f32> = (0..height * width).map(|v| v as f32 + 1.0).collect();
    for (corner, is_cut) in [(0.5, true), (f32::INFINITY, false)] {
        let filter: Vec<f32> = (0..9).map(|tap| if tap == 0 { corner } else { tap as f32 - 3.0 }).collect();
        let pads = [down, across, down, across];
        let conv = node("Conv(x, w) -> y", &[("dilations", &[down, across]), ("pads", &pads)]);
        let inputs = vec![input("x", DataType::F32, &["1", "1", "3", "4"])];
        let proto = model(inputs, vec![conv], vec![floats("w", &[1, 1, 3, 3], &filter)], "y");
        let options = CompileOptions { dump_after: vec!["import".to_owned()], ..CompileOptions::default() };
        let options = CompileOptions { targets: vec![Monopour::cpu().target().clone()], ..options };
        let read = Model::from_bytes(&proto.encode_to_vec(), "m.onnx", Path::new("")).unwrap_or_else(|e| panic!("{e}"));
        let dumps = compile_onnx(&read, &options).unwrap_or_else(|e| panic!("{e}")).report.dumps;
        assert_eq!(dumps[0].text.contains("tensor<3x8xf32>"), is_cut, "rows are not padded: {}", dumps[0].text);
        let sum = |at: i64| {
            let taps = (0..9).map(|tap| (at / width + (tap / 3 - 1) * down, at % width + (tap % 3 - 1) * across, tap));
            let read = |(y, x): (i64, i64)| {
                if (0..height).contains(&y) && (0..width).contains(&x) { image[(y * width + x) as usize] } else { 0.0 }
            };
            taps.map(|(y, x, tap)| f64::from(read((y, x)) * filter[tap as usize])).sum::<f64>()
        };
        let expected: Vec<f64> = (0..height * width).map(sum).collect();
        if is_cut {
            check(&proto, &[from_f32(&[1, 1, 3, 4], &image)], &[1, 1, 3, 4], &expected);
        } else {
            assert!(expected.iter().all(|value| value.is_nan()), "{expected:?}");
            let run = Monopour::cpu().run_program(
                compile_onnx(&read, &options).unwrap_or_else(|e| panic!("{e}")).program,
                &[from_f32(&[1, 1, 3, 4], &image)],
            );
            let found = run.unwrap_or_else(|e| panic!("{e}")).outputs[0].to_f64();
            assert!(found.iter().all(|value| value.is_nan()), "{found:?}");
        }
    }
}

/// A product of four unknown sizes, whose result is transposed: more than a grid cuts. It was refused.
#[test]
fn products_of_many_unknown_sizes_are_transposed() {
    let perm = with_ints(node("Transpose(p) -> y", &[]), "perm", &[0, 2, 3, 4, 1]);
    let product = with_text(node("Einsum(t, g) -> p", &[]), "equation", "nic,dhwc->nidhw");
    let inputs = vec![input("t", DataType::F32, &["n", "3", "2"]), input("g", DataType::F32, &["d", "h", "w", "2"])];
    let proto = model(inputs, vec![product, perm], vec![], "y");
    let t: Vec<f32> = (0..12).map(|v| v as f32).collect();
    let g: Vec<f32> = (0..24).map(|v| v as f32 - 7.0).collect();
    let sum = |n: usize, place: usize, i: usize| (0..2).map(|c| t[(n * 3 + i) * 2 + c] * g[place * 2 + c]).sum::<f32>();
    let expected: Vec<f64> = (0..2 * 12 * 3).map(|at| f64::from(sum(at / 36, at / 3 % 12, at % 3))).collect();
    check(&proto, &[from_f32(&[2, 3, 2], &t), from_f32(&[2, 3, 2, 2], &g)], &[2, 2, 3, 2, 3], &expected);
}

/// To the far end, which needs no remainder, and beyond it, of sizes that are known when a model is compiled and not.
#[test]
fn reflections_reach_the_far_end_and_beyond() {
    let (rows, columns) = (2_i64, 4_i64);
    let x: Vec<f32> = (0..rows * columns).map(|v| v as f32 + 1.0).collect();
    let period = 2 * (columns - 1);
    for (before, after) in [(3, 3), (0, 2), (1, 0), (5, 7)] {
        for sizes in [["2", "4"], ["n", "m"]] {
            let pad = with_text(node("Pad(x, pads) -> y", &[]), "mode", "reflect");
            let pads = vec![ints("pads", &[0, before, 0, after])];
            let proto = model(vec![input("x", DataType::F32, &sizes)], vec![pad], pads, "y");
            let width = before + columns + after;
            let place = |at: i64| {
                let step = (at - before).rem_euclid(period);
                step.min(period - step)
            };
            let expected: Vec<f64> =
                (0..rows * width).map(|at| f64::from(x[(at / width * columns + place(at % width)) as usize])).collect();
            check(&proto, &[from_f32(&[2, 4], &x)], &[2, width as usize], &expected);
        }
    }
}

#[test]
fn a_transposed_convolution_of_a_line_of_any_length() {
    let nodes = vec![node("ConvTranspose(x, w) -> y", &[("strides", &[2]), ("pads", &[1, 0])])];
    let constants = vec![floats("w", &[1, 1, 3], &[1.0, 2.0, 3.0])];
    let proto = model(vec![input("x", DataType::F32, &["1", "1", "n"])], nodes, constants, "y");
    // Whole: 1 2 3+10 20 30+100 200 300; one element is cut off in front.
    check(&proto, &[from_f32(&[1, 1, 3], &[1.0, 10.0, 100.0])], &[1, 1, 6], &[2.0, 13.0, 20.0, 130.0, 200.0, 300.0]);
}

#[test]
fn sizes_of_one_symbol_broadcast_and_reduce() {
    let nodes = vec![
        node("Add(x, b) -> s", &[]),
        node("Mul(s, column) -> m", &[]),
        node("ReduceMax(m) -> y", &[("axes", &[1])]),
    ];
    let inputs = vec![input("x", DataType::F32, &["n", "3"]), input("column", DataType::F32, &["n", "1"])];
    let proto = model(inputs, nodes, vec![floats("b", &[3], &[1.0, 0.0, -1.0])], "y");
    let x = from_f32(&[2, 3], &[1.0, 2.0, 3.0, -4.0, -5.0, -6.0]);
    check(&proto, &[x, from_f32(&[2, 1], &[2.0, -1.0])], &[2, 1], &[4.0, 7.0]);
}

#[test]
fn a_shape_that_data_decides() {
    let inputs = vec![input("x", DataType::F32, &["n"]), input("shape", DataType::I64, &["2"])];
    let proto = model(inputs, vec![node("Reshape(x, shape) -> r", &[]), node("Transpose(r) -> y", &[])], vec![], "y");
    let shape = |sizes: [i64; 2]| {
        let bytes: Vec<u8> = sizes.iter().flat_map(|s| s.to_le_bytes()).collect();
        HostTensor::from_bytes(Dtype::Int(64), &[2], &bytes).expect("two numbers")
    };
    let x = from_f32(&[6], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    check(&proto, &[x.clone(), shape([2, 3])], &[3, 2], &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    check(&proto, &[x, shape([-1, 2])], &[2, 3], &[0.0, 2.0, 4.0, 1.0, 3.0, 5.0]);
}

#[test]
fn slices_from_the_end_and_backwards() {
    let nodes = vec![
        node("Slice(x, from, to, axis, step) -> back", &[]),
        node("Gather(x, at) -> picked", &[]),
        node("Concat(back, picked) -> y", &[("axis", &[0])]),
    ];
    let constants =
        vec![ints("from", &[-1]), ints("to", &[-5]), ints("axis", &[0]), ints("step", &[-2]), ints("at", &[-1, 0])];
    let proto = model(vec![input("x", DataType::F32, &["n"])], nodes, constants, "y");
    check(&proto, &[from_f32(&[5], &[0.0, 1.0, 2.0, 3.0, 4.0])], &[4], &[4.0, 2.0, 4.0, 0.0]);
}

/// Indices count over the whole result, and may lie outside of the windows of their elements.
#[test]
fn an_element_is_unpooled_to_its_index() {
    let nodes = vec![node("MaxUnpool(x, at) -> y", &[("kernel_shape", &[2, 2]), ("strides", &[2, 2])])];
    let at = TensorProto { dims: vec![1, 1, 1, 2], ..ints("at", &[7, 0]) };
    let proto = model(vec![input("x", DataType::F32, &["1", "1", "1", "2"])], nodes, vec![at], "y");
    let expected = [4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 3.0];
    check(&proto, &[from_f32(&[1, 1, 1, 2], &[3.0, 4.0])], &[1, 1, 2, 4], &expected);
}

#[test]
fn weights_in_a_file_beside_the_model() {
    let folder = std::env::temp_dir().join(format!("monopour-onnx-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    // Larger than what is written into the module, from an odd offset on.
    let (rows, columns) = (40, 20);
    let weights: Vec<f32> = (0..rows * columns).map(|v| (v % 7) as f32).collect();
    let bytes: Vec<u8> = [0_u8; 3].into_iter().chain(weights.iter().flat_map(|v| v.to_le_bytes())).collect();
    std::fs::write(folder.join("w.bin"), bytes).expect("the file can be written");
    let entry = |key: &str, value: &str| StringStringEntryProto { key: key.to_owned(), value: value.to_owned() };
    let w = TensorProto {
        data_location: 1,
        external_data: vec![entry("location", "w.bin"), entry("offset", "3")],
        ..floats("w", &[rows, columns], &[])
    };
    let x = input("x", DataType::F32, &["1", "40"]);
    let proto = model(vec![x], vec![node("Gemm(x, w) -> y", &[])], vec![w], "y");
    let ones = from_f32(&[1, 40], &[1.0; 40]);
    let sum = |c: i64| (0..rows).map(|r| weights[(r * columns + c) as usize]).sum::<f32>();
    let expected: Vec<f64> = (0..columns).map(|c| f64::from(sum(c))).collect();
    check_in(&proto, &folder, &[ones], &[1, 20], &expected);
    std::fs::remove_dir_all(&folder).expect("the folder can be removed");
}
