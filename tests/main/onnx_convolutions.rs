//! Convolutions of ONNX models of any number of dimensions, transposed ones and those of volumes, against plain loops.

use crate::backend::Monopour;
use crate::onnx::{check, floats, from_f32, input, ints, model, node};
use monopour::onnx::proto::ModelProto;
use monopour::onnx::{DataType, Model};
use monopour::program::CpuTarget;
use monopour::{CompileOptions, TargetDescription, compile_onnx};
use monopour_testkit::onnx::{with_int, with_ints};
use monopour_testkit::random::Rng;
use prost::Message;
use std::path::Path;

/// A tensor of whole numbers.
#[derive(Clone, Debug)]
struct Whole {
    shape: Vec<i64>,
    elements: Vec<i64>,
}

impl Whole {
    fn drawn(shape: Vec<i64>, rng: &mut Rng) -> Self {
        let elements = (0..shape.iter().product::<i64>()).map(|_| rng.below(7).cast_signed() - 3).collect();
        Self { shape, elements }
    }

    fn zeros(shape: Vec<i64>) -> Self {
        let elements = vec![0; shape.iter().product::<i64>() as usize];
        Self { shape, elements }
    }

    /// Where an element lies; `None` outside.
    fn at(&self, place: &[i64]) -> Option<usize> {
        let step = |at: i64, (place, size): (&i64, &i64)| (0..*size).contains(place).then_some(at * size + place);
        Some(place.iter().zip(&self.shape).try_fold(0, step)? as usize)
    }

    fn get(&self, place: &[i64]) -> i64 {
        self.at(place).map_or(0, |at| self.elements[at])
    }

    fn f32s(&self) -> Vec<f32> {
        self.elements.iter().map(|value| *value as f32).collect()
    }
}

/// All places of a shape, in order.
fn places(shape: &[i64]) -> Vec<Vec<i64>> {
    let Some((first, rest)) = shape.split_first() else { return vec![vec![]] };
    let rest = places(rest);
    (0..*first).flat_map(|at| rest.iter().map(move |place| [&[at], &place[..]].concat())).collect()
}

/// Strides, dilations, padding in front and behind, what is added to the result of a transposed one, and groups.
#[derive(Clone, Debug)]
struct Form {
    strides: Vec<i64>,
    dilations: Vec<i64>,
    before: Vec<i64>,
    after: Vec<i64>,
    extra: Vec<i64>,
    groups: i64,
}

impl Form {
    fn plain(strides: &[i64], pads: &[i64]) -> Self {
        let (ones, zeros) = (vec![1; strides.len()], vec![0; strides.len()]);
        let (before, after) = (pads.to_vec(), pads.to_vec());
        Self { strides: strides.to_vec(), dilations: ones, before, after, extra: zeros, groups: 1 }
    }
}

/// Each product of an element and a tap is added where it belongs, as the operator is defined.
fn transposed(x: &Whole, w: &Whole, form: &Form) -> Whole {
    let rank = form.strides.len();
    let size = |d: usize| {
        let whole = (x.shape[2 + d] - 1) * form.strides[d] + (w.shape[2 + d] - 1) * form.dilations[d] + 1;
        whole + form.extra[d] - form.before[d] - form.after[d]
    };
    let shape = [vec![x.shape[0], w.shape[1] * form.groups], (0..rank).map(size).collect()].concat();
    let mut out = Whole::zeros(shape);
    let channels = x.shape[1] / form.groups;
    for from in places(&x.shape) {
        for tap in places(&w.shape[1..]) {
            let weight = w.get(&[&[from[1]], &tap[..]].concat());
            let to = (0..rank).map(|d| from[2 + d] * form.strides[d] + tap[1 + d] * form.dilations[d] - form.before[d]);
            let to: Vec<i64> = [from[0], from[1] / channels * w.shape[1] + tap[0]].into_iter().chain(to).collect();
            if let Some(at) = out.at(&to) {
                out.elements[at] += x.get(&from) * weight;
            }
        }
    }
    out
}

fn convolved(x: &Whole, w: &Whole, form: &Form) -> Whole {
    let rank = form.strides.len();
    let size = |d: usize| (x.shape[2 + d] + form.before[d] + form.after[d] - w.shape[2 + d]) / form.strides[d] + 1;
    let mut out = Whole::zeros([vec![x.shape[0], w.shape[0]], (0..rank).map(size).collect()].concat());
    let taps = places(&w.shape[1..]);
    for (at, to) in places(&out.shape).into_iter().enumerate() {
        let term = |tap: &Vec<i64>| {
            let from = (0..rank).map(|d| to[2 + d] * form.strides[d] + tap[1 + d] - form.before[d]);
            let from: Vec<i64> = [to[0], tap[0]].into_iter().chain(from).collect();
            x.get(&from) * w.get(&[&[to[1]], &tap[..]].concat())
        };
        out.elements[at] = taps.iter().map(term).sum();
    }
    out
}

/// The largest elements of windows of `size`, one behind the other.
fn pooled(x: &Whole, size: &[i64]) -> Whole {
    let shape = x.shape[2..].iter().zip(size).map(|(extent, size)| extent / size);
    let mut out = Whole::zeros([x.shape[0], x.shape[1]].into_iter().chain(shape).collect());
    for (at, to) in places(&out.shape).into_iter().enumerate() {
        let read = |tap: Vec<i64>| {
            let from = (0..size.len()).map(|d| to[2 + d] * size[d] + tap[d]);
            x.get(&[to[0], to[1]].into_iter().chain(from).collect::<Vec<_>>())
        };
        out.elements[at] = places(size).into_iter().map(read).max().expect("a window has elements");
    }
    out
}

fn each(x: &Whole, f: impl Fn(usize, i64) -> i64) -> Whole {
    let elements = x.elements.iter().enumerate().map(|(at, value)| f(at, *value)).collect();
    Whole { elements, ..x.clone() }
}

fn image(name: &str, x: &Whole, is_known: bool) -> monopour::onnx::proto::ValueInfoProto {
    let size = |(d, size): (usize, &i64)| if is_known || d == 1 { size.to_string() } else { format!("s{d}") };
    let sizes: Vec<String> = x.shape.iter().enumerate().map(size).collect();
    input(name, DataType::F32, &sizes.iter().map(String::as_str).collect::<Vec<_>>())
}

fn has_values(proto: &ModelProto, x: &Whole, expected: &Whole) {
    let sizes = |of: &Whole| of.shape.iter().map(|size| *size as usize).collect::<Vec<_>>();
    let elements: Vec<f64> = expected.elements.iter().map(|value| *value as f64).collect();
    check(proto, &[from_f32(&sizes(x), &x.f32s())], &sizes(expected), &elements);
}

/// The ops of a model, when it was imported or fused.
fn text_of(proto: &ModelProto, phase: &str, target: &TargetDescription) -> String {
    let read = Model::from_bytes(&proto.encode_to_vec(), "m.onnx", Path::new("")).unwrap_or_else(|e| panic!("{e}"));
    let options = CompileOptions { dump_after: vec![phase.to_owned()], ..CompileOptions::default() };
    let options = CompileOptions { targets: vec![target.clone()], ..options };
    compile_onnx(&read, &options).unwrap_or_else(|e| panic!("{e}")).report.dumps[0].text.clone()
}

fn transposed_model(x: &Whole, w: &Whole, form: &Form, is_known: bool) -> ModelProto {
    let pads = [&form.before[..], &form.after].concat();
    let lists: [(&str, &[i64]); 4] =
        [("strides", &form.strides), ("dilations", &form.dilations), ("pads", &pads), ("output_padding", &form.extra)];
    let product = with_int(node("ConvTranspose(x, w, b) -> t", &[]), "group", form.groups);
    let product = lists.into_iter().fold(product, |node, (name, list)| with_ints(node, name, list));
    let nodes = vec![product, node("Relu(t) -> y", &[])];
    let bias: Vec<f32> = (0..w.shape[1] * form.groups).map(|c| c as f32 - 1.0).collect();
    let constants = vec![floats("w", &w.shape, &w.f32s()), floats("b", &[bias.len() as i64], &bias)];
    model(vec![image("x", x, is_known)], nodes, constants, "y")
}

/// Strides that are larger and smaller than windows, groups, dilations, sizes that are known when a model is compiled or not.
#[test]
fn transposed_convolutions_of_any_form() {
    let mut rng = Rng::new(68);
    for round in 0..24 {
        let rank = 1 + round % 3;
        let mut draw = |below: u64, first: i64| -> Vec<i64> {
            (0..rank).map(|_| rng.below(below).cast_signed() + first).collect()
        };
        let (kernel, strides, sizes, pads) = (draw(5, 1), draw(3, 1), draw(5, 2), draw(2, 0));
        let dilations = if round % 4 == 3 { draw(2, 1) } else { vec![1; rank] };
        let extra: Vec<i64> = strides.iter().map(|stride| if round % 2 == 0 { stride - 1 } else { 0 }).collect();
        let groups = [1, 1, 2][round / 3 % 3];
        let form = Form { strides, dilations, after: vec![0; rank], before: pads, extra, groups };
        let batch = 1 + (round / 5 % 2) as i64;
        let x = Whole::drawn([&[batch, 3 * groups], &sizes[..]].concat(), &mut rng);
        let w = Whole::drawn([&[3 * groups, 2], &kernel[..]].concat(), &mut rng);
        let plain = transposed(&x, &w, &form);
        if plain.shape.iter().any(|size| *size < 1) {
            continue;
        }
        let channels = w.shape[1] * groups;
        let places = plain.shape[2..].iter().product::<i64>();
        let expected = each(&plain, |at, value| (value + at as i64 / places % channels - 1).max(0));
        has_values(&transposed_model(&x, &w, &form, round % 3 != 1), &x, &expected);
    }
}

/// Stride 2 in two dimensions: four convolutions, each by the taps of its elements, and no image with zeros between its elements.
#[test]
fn no_transposed_convolution_multiplies_zeros() {
    let mut rng = Rng::new(1);
    let (x, w) = (Whole::drawn(vec![1, 4, 8, 8], &mut rng), Whole::drawn(vec![4, 6, 4, 4], &mut rng));
    let proto = transposed_model(&x, &w, &Form::plain(&[2, 2], &[1, 1]), true);
    let text = text_of(&proto, "import", Monopour::cpu().target());
    assert_eq!(text.matches("arith.mulf").count(), 4, "{text}");
    assert!(text.contains("tensor<6x4x2x2xf32>") && !text.contains("15x15"), "{text}");
}

/// Convolutions of volumes along planes, across them and both, with a residual, a pool and two parts that are put together: on CPUs their
/// channels lie in blocks, planes in front of them.
#[test]
fn volumes_have_their_channels_in_blocks() {
    let mut rng = Rng::new(3);
    for batch in [1, 2] {
        let x = Whole::drawn(vec![batch, 32, 4, 6, 5], &mut rng);
        let mut filter = |window: [i64; 3]| Whole::drawn([&[32, 32], &window[..]].concat(), &mut rng);
        let filters = [filter([3, 3, 3]), filter([3, 1, 1]), filter([1, 3, 3]), filter([1, 1, 1])];
        let (ones, all) = ([1; 3], Form::plain(&[1; 3], &[1; 3]));
        let few = |value: i64| value.rem_euclid(5);
        let first = each(&convolved(&x, &filters[0], &all), |_, value| few(value));
        let along = convolved(&first, &filters[1], &Form::plain(&[2, 1, 1], &[1, 0, 0]));
        let across = convolved(&each(&along, |_, value| few(value)), &filters[2], &Form::plain(&ones, &[0, 1, 1]));
        let points = convolved(&first, &filters[3], &Form::plain(&[2, 1, 1], &[0; 3]));
        let sum = each(&across, |at, value| value + points.elements[at]);
        let last = pooled(&sum, &[1, 2, 2]);
        // Both parts are the same, side by side.
        let own = last.elements.len() / batch as usize;
        let elements: Vec<i64> = last.elements.chunks(own).flat_map(|image| [image, image].concat()).collect();
        let expected = Whole { shape: [&[batch, 64], &last.shape[2..]].concat(), elements };

        let nodes = vec![
            node("Conv(x, w0) -> c0", &[("pads", &[1; 6])]),
            node("Mod(c0, five) -> a", &[("fmod", &[1])]),
            node("Add(a, five) -> a1", &[]),
            node("Mod(a1, five) -> a2", &[("fmod", &[1])]),
            node("Conv(a2, w1) -> c1", &[("pads", &[1, 0, 0, 1, 0, 0]), ("strides", &[2, 1, 1])]),
            node("Mod(c1, five) -> b", &[("fmod", &[1])]),
            node("Add(b, five) -> b1", &[]),
            node("Mod(b1, five) -> b2", &[("fmod", &[1])]),
            node("Conv(b2, w2) -> c2", &[("pads", &[0, 1, 1, 0, 1, 1])]),
            node("Conv(a2, w3) -> c3", &[("strides", &[2, 1, 1])]),
            node("Add(c2, c3) -> s", &[]),
            node("MaxPool(s) -> p", &[("kernel_shape", &[1, 2, 2]), ("strides", &[1, 2, 2])]),
            node("Concat(p, p) -> y", &[("axis", &[1])]),
        ];
        let stored = |(at, w): (usize, &Whole)| floats(&format!("w{at}"), &w.shape, &w.f32s());
        let mut constants: Vec<_> = filters.iter().enumerate().map(stored).collect();
        constants.push(floats("five", &[1], &[5.0]));
        let proto = model(vec![image("x", &x, true)], nodes, constants, "y");
        has_values(&proto, &x, &expected);
        let v3 = TargetDescription::Cpu(CpuTarget::parse("x86-64-v3").expect("the name of a CPU"));
        let text = text_of(&proto, "fuse", &v3);
        let front = if batch == 1 { String::new() } else { format!("{batch}x") };
        // Of the first convolution, of those of every second plane, and of the pool.
        for image in ["4x2x6x5x16", "2x2x6x5x16", "2x2x3x2x16"] {
            assert!(text.contains(&format!("tensor<{front}{image}xf32>")), "{front}{image}: {text}");
        }
    }
}

/// Tokens that a depthwise convolution reads as an image: their channels stay last, or get into blocks by the copy that pads them.
#[test]
fn tokens_are_images_with_their_channels_last() {
    let mut rng = Rng::new(5);
    let (height, width, channels) = (14, 13, 64);
    let x = Whole::drawn(vec![1, height * width, channels], &mut rng);
    let w = Whole::drawn(vec![channels, 1, 3, 3], &mut rng);
    let at = |y: i64, x: i64| (0..height).contains(&y) && (0..width).contains(&x);
    let element = |place: &[i64]| {
        let (y, column, c) = (place[1] / width, place[1] % width, place[2]);
        let taps = (0..9).map(|tap| (y + tap / 3 - 1, column + tap % 3 - 1, tap)).filter(|(y, x, _)| at(*y, *x));
        taps.map(|(y, column, tap)| x.get(&[0, y * width + column, c]) * w.elements[(c * 9 + tap) as usize])
            .sum::<i64>()
    };
    let expected =
        Whole { shape: x.shape.clone(), elements: places(&x.shape).iter().map(|at| element(at).max(0)).collect() };
    let nodes = vec![
        with_ints(node("Transpose(x) -> t", &[]), "perm", &[0, 2, 1]),
        node("Reshape(t, image) -> i", &[]),
        with_int(node("Conv(i, w) -> c", &[("pads", &[1, 1, 1, 1])]), "group", channels),
        node("Reshape(c, flat) -> f", &[]),
        with_ints(node("Transpose(f) -> b", &[]), "perm", &[0, 2, 1]),
        node("Relu(b) -> y", &[]),
    ];
    let constants = vec![
        floats("w", &w.shape, &w.f32s()),
        ints("image", &[1, channels, height, width]),
        ints("flat", &[1, channels, -1]),
    ];
    let proto = model(vec![image("x", &x, true)], nodes, constants, "y");
    has_values(&proto, &x, &expected);
    let v3 = TargetDescription::Cpu(CpuTarget::parse("x86-64-v3").expect("the name of a CPU"));
    let text = text_of(&proto, "fuse", &v3);
    assert!(text.contains("tensor<4x14x13x16xf32>") && !text.contains("tensor<64x14x13xf32>"), "{text}");
}

/// Convolutions to few channels sum in vectors of the channels that they read, in tiles of columns and channels.
#[test]
fn convolutions_to_few_channels() {
    let mut rng = Rng::new(6);
    for (filters, width) in [(1, 11), (2, 10), (3, 8), (3, 13)] {
        let x = Whole::drawn(vec![1, 32, 6, width], &mut rng);
        let (first, last) =
            (Whole::drawn(vec![32, 32, 3, 3], &mut rng), Whole::drawn(vec![filters, 32, 3, 3], &mut rng));
        let form = Form::plain(&[1; 2], &[1; 2]);
        let expected = convolved(&each(&convolved(&x, &first, &form), |_, value| value.clamp(0, 6)), &last, &form);
        let nodes = vec![
            node("Conv(x, a) -> c", &[("pads", &[1; 4])]),
            node("Clip(c, zero, six) -> r", &[]),
            node("Conv(r, b) -> y", &[("pads", &[1; 4])]),
        ];
        let constants = vec![
            floats("a", &first.shape, &first.f32s()),
            floats("b", &last.shape, &last.f32s()),
            floats("zero", &[], &[0.0]),
            floats("six", &[], &[6.0]),
        ];
        has_values(&model(vec![image("x", &x, true)], nodes, constants, "y"), &x, &expected);
    }
}
