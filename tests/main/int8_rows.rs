//! Models that allow rows of 8 bits (MatMulNBits of accuracy level 4): CPUs round each block of a row and add integers, GPUs compute
//! floats.

use crate::backend::Monopour;
use crate::block_weights::constant;
use crate::onnx::{from_f32, input, node};
use monopour::onnx::proto::{GraphProto, ModelProto};
use monopour::onnx::{DataType, Model};
use monopour::{CompileOptions, TargetDescription, compile_onnx};
use monopour_testkit::device::full_is_asked_for;
use monopour_testkit::onnx::{floats, graph, model_of, opset, with_int};
use monopour_testkit::suite::Backend;
use prost::Message;
use std::path::Path;

const COLUMNS: usize = 21;

/// Weights: their bits, blocks, terms of a block, and whether blocks have zero points.
#[derive(Clone, Copy, Debug)]
struct Weights {
    bits: u32,
    blocks: usize,
    block: usize,
    zeros: bool,
}

impl Weights {
    fn terms(&self) -> usize {
        self.blocks * self.block
    }
    fn mask(&self) -> usize {
        (1 << self.bits) - 1
    }
    fn element(&self, term: usize, column: usize) -> usize {
        ((term * COLUMNS + column) * 37 % 251) & self.mask()
    }
    fn zero(&self, block: usize, column: usize) -> usize {
        if self.zeros { ((block * COLUMNS + column) * 11 % 239) & self.mask() } else { self.mask().div_ceil(2) }
    }
    fn scale(&self, block: usize, column: usize) -> f32 {
        0.004 + ((column * self.blocks + block) % 7) as f32 * 0.001
    }
    fn number(&self, term: usize, column: usize) -> f64 {
        let block = term / self.block;
        let integer = self.element(term, column) as f64 - self.zero(block, column) as f64;
        integer * f64::from(self.scale(block, column))
    }

    /// A row as a CPU rounds it: blocks whose bytes fill vectors.
    fn rounded(&self, row: &[f32]) -> Vec<f64> {
        let block = |values: &[f32]| -> Vec<f64> {
            let largest = values.iter().fold(0.0, |most: f32, value| most.max(value.abs()));
            let by = if largest > 0.0 { 127.0 / largest } else { 0.0 };
            let unit = f64::from(largest) / 127.0;
            values.iter().map(|value| f64::from((value * by).round_ties_even()) * unit).collect()
        };
        row.chunks(self.block).flat_map(block).collect()
    }

    /// `x` times these, as matrices of terms and columns that the model dequantises: integers with a sign are less half of the range.
    fn dequantized(&self, rows: &str, dtype: DataType) -> ModelProto {
        let less = if dtype.is_unsigned() { 0 } else { 1 << (self.bits - 1) };
        let matrix = |name: &str, lines: usize, element: &dyn Fn(usize, usize) -> usize| {
            let elements: Vec<usize> = (0..lines * COLUMNS).map(|i| element(i / COLUMNS, i % COLUMNS)).collect();
            let byte = |part: &[usize]| {
                part.iter().rev().fold(0, |byte, e| byte << self.bits | e.wrapping_sub(less) & self.mask()) as u8
            };
            constant(name, dtype, &[lines, COLUMNS], elements.chunks(8 / self.bits as usize).map(byte).collect())
        };
        let scales: Vec<f32> = (0..self.blocks * COLUMNS).map(|i| self.scale(i / COLUMNS, i % COLUMNS)).collect();
        let mut initializer = vec![
            matrix("w", self.terms(), &|term, column| self.element(term, column)),
            floats("s", &[self.blocks as i64, COLUMNS as i64], &scales),
        ];
        initializer.extend(self.zeros.then(|| matrix("z", self.blocks, &|block, column| self.zero(block, column))));
        let operands = if self.zeros { "w, s, z" } else { "w, s" };
        let dequantized = with_int(node(&format!("DequantizeLinear({operands}) -> f"), &[]), "axis", 0);
        let dequantized = with_int(dequantized, "block_size", self.block as i64);
        let inputs = vec![input("x", DataType::F32, &[rows, &self.terms().to_string()])];
        let nodes = vec![dequantized, node("MatMul(x, f) -> y", &[])];
        model_of(GraphProto { initializer, ..graph(inputs, nodes, &["y"]) }, 21)
    }

    /// `x` times these, and times them again if `twice`.
    fn model(&self, rows: &str, twice: bool) -> ModelProto {
        let per_byte = 8 / self.bits as usize;
        let packed = |integers: &[usize]| -> Vec<u8> {
            let byte = |part: &[usize]| part.iter().rev().fold(0, |byte, e| byte << self.bits | e) as u8;
            integers.chunks(per_byte).map(byte).collect()
        };
        let constant = |name: &str, dims: &[usize], bytes| constant(name, DataType::U8, dims, bytes);
        let column = |n: usize| packed(&(0..self.terms()).map(|k| self.element(k, n)).collect::<Vec<_>>());
        let zeros = |n: usize| packed(&(0..self.blocks).map(|block| self.zero(block, n)).collect::<Vec<_>>());
        let scales = |factor: f32| -> Vec<f32> {
            let scale = |i: usize| factor * self.scale(i % self.blocks, i / self.blocks);
            (0..COLUMNS * self.blocks).map(scale).collect()
        };
        let bytes = (0..COLUMNS).flat_map(column).collect();
        let mut initializer = vec![
            constant("b", &[COLUMNS, self.blocks, self.block / per_byte], bytes),
            floats("s", &[(COLUMNS * self.blocks) as i64], &scales(1.0)),
        ];
        let packed_zeros: Vec<u8> = (0..COLUMNS).flat_map(zeros).collect();
        initializer.extend(self.zeros.then(|| constant("z", &[packed_zeros.len()], packed_zeros)));
        let sizes = [("N", COLUMNS), ("K", self.terms()), ("bits", self.bits as usize), ("block_size", self.block)];
        let product = |result: &str| {
            let operands = if self.zeros { "x, b, s, z" } else { "x, b, s" };
            let mut product = node(&format!("MatMulNBits({operands}) -> {result}"), &[]);
            product.domain = "com.microsoft".to_owned();
            let attributes = sizes.into_iter().chain([("accuracy_level", 4)]);
            attributes.fold(product, |product, (name, size)| with_int(product, name, size as i64))
        };
        let mut nodes = vec![product("y")];
        if twice {
            // A second product of other weights: twice the scales.
            initializer.push(floats("s2", &[(COLUMNS * self.blocks) as i64], &scales(2.0)));
            let mut second = product("y2");
            second.input[2] = "s2".to_owned();
            nodes.push(second);
        }
        let inputs = vec![input("x", DataType::F32, &[rows, &self.terms().to_string()])];
        let results: &[&str] = if twice { &["y", "y2"] } else { &["y"] };
        let mut proto = model_of(GraphProto { initializer, ..graph(inputs, nodes, results) }, 21);
        proto.opset_import.push(opset("com.microsoft", 1));
        proto
    }
}

/// Checks a model on each CPU, which may make so many dispatches and rounds if `is_rounded`, and on GPUs, which never round.
fn check(weights: Weights, (rows, size): (usize, &str), most: u64, is_rounded: bool, twice: bool) {
    check_model(weights, &weights.model(size, twice), rows, most, is_rounded, false);
}

/// As [`check`], of a model of these weights; `asks`: with the option that rounds where a model says nothing.
fn check_model(weights: Weights, proto: &ModelProto, rows: usize, most: u64, is_rounded: bool, asks: bool) {
    let twice = proto.graph.as_ref().is_some_and(|graph| graph.output.len() == 2);
    let model = Model::from_bytes(&proto.encode_to_vec(), "m.onnx", Path::new("")).unwrap_or_else(|e| panic!("{e}"));
    let terms = weights.terms();
    // The first block of the second row has zeros alone.
    let value =
        |i: usize| if (terms..terms + weights.block).contains(&i) { 0.0 } else { (i * 29 % 41) as f32 / 16.0 - 1.25 };
    let x: Vec<f32> = (0..rows * terms).map(value).collect();
    let sums = |is_rounded: bool| -> Vec<f64> {
        let row = |row: &[f32]| {
            let row = if is_rounded { weights.rounded(row) } else { row.iter().map(|x| f64::from(*x)).collect() };
            let sum = move |n: usize| row.iter().enumerate().map(|(k, x)| x * weights.number(k, n)).sum::<f64>();
            (0..COLUMNS).map(sum).collect::<Vec<f64>>()
        };
        x.chunks(terms).flat_map(row).collect()
    };
    let adds_bytes = |cpu: &Monopour| matches!(cpu.target(), TargetDescription::Cpu(cpu) if cpu.adds_bytes(false));
    let on_cpu = |cpu: Monopour| {
        let is_rounded = is_rounded && (weights.bits < 8 || adds_bytes(&cpu));
        (cpu, is_rounded, most)
    };
    let others = Monopour::cpu_of_short_dots().into_iter().chain(Monopour::all_aarch64());
    let cpus = [Monopour::cpu()].into_iter().chain(Monopour::lower_cpus()).chain(others).map(on_cpu);
    // A GPU's kernels are those of any weights of few bits.
    let gpus = [Monopour::gpu(), Monopour::portable()].into_iter().flatten().filter(|_| rows == 2);
    for (backend, is_rounded, most) in cpus.chain(gpus.map(|gpu| (gpu, false, 1 + u64::from(twice)))) {
        let name = format!("{weights:?}, {rows} rows on {}", backend.name());
        let options = CompileOptions {
            targets: vec![backend.target().clone()],
            verify: true,
            rounded_rows: asks,
            ..Default::default()
        };
        let program = compile_onnx(&model, &options).unwrap_or_else(|e| panic!("{name}: {e}")).program;
        let run = backend.run_program(program, &[from_f32(&[rows, terms], &x)]).unwrap_or_else(|e| panic!("{e}"));
        let expected = sums(is_rounded);
        for (output, factor) in run.outputs.iter().zip([1.0, 2.0]) {
            let found = output.to_f64();
            let wrong = found.iter().zip(&expected).map(|(a, b)| (a - factor * b).abs()).fold(0.0, f64::max);
            assert!(found.len() == expected.len() && wrong < 5e-5, "{name}: {wrong:e}");
        }
        let cost = run.cost.expect("a program was run");
        assert!(cost.dispatches <= most && cost.copies == 0, "{name}: {cost:?}");
    }
    // What is checked tells rounded rows from others.
    let apart = sums(true).iter().zip(sums(false)).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(apart > 2e-4, "{apart:e}");
}

/// The largest of each block, the integers, and the product.
#[test]
fn rows_are_rounded_where_the_model_allows_it() {
    for (i, (bits, blocks, block)) in
        [(4, 5, 32), (4, 2, 64), (4, 1, 128), (2, 3, 64), (4, 3, 96)].into_iter().enumerate()
    {
        for zeros in [false, true].into_iter().filter(|zeros| full_is_asked_for() || *zeros == (i % 2 == 0)) {
            let weights = Weights { bits, blocks, block, zeros };
            check(weights, (2, "2"), 3, true, false);
            check(weights, (19, "19"), 3, true, false);
            check(weights, (6, "rows"), 3, true, false);
        }
    }
}

/// Of weights of 8 bits CPUs with a dot product of bytes round rows, and then no more than 64 that are known.
#[test]
fn few_rows_of_weights_of_bytes_are_rounded() {
    for (blocks, block, zeros) in [(5, 32, false), (3, 16, true), (2, 128, true)] {
        let weights = Weights { bits: 8, blocks, block, zeros };
        check(weights, (2, "2"), 3, true, false);
        check(weights, (6, "rows"), 3, true, false);
    }
    check(Weights { bits: 8, blocks: 2, block: 32, zeros: false }, (65, "65"), 2, false, false);
}

/// Bytes of a block that fill no vector: floats, whose weights several rows compute before.
#[test]
fn blocks_without_whole_vectors_are_floats() {
    check(Weights { bits: 4, blocks: 3, block: 16, zeros: true }, (2, "2"), 2, false, false);
    check(Weights { bits: 2, blocks: 3, block: 32, zeros: false }, (2, "2"), 2, false, false);
}

/// As queries, keys and values do.
#[test]
fn products_of_the_same_rows_share_what_is_rounded() {
    check(Weights { bits: 4, blocks: 3, block: 32, zeros: false }, (3, "3"), 4, true, true);
}

/// The compiler's option, of weights of a product that says nothing, and of weights that are dequantised.
#[test]
fn rows_are_rounded_where_the_user_allows_it() {
    let weights = Weights { bits: 4, blocks: 3, block: 32, zeros: true };
    let mut silent = weights.model("rows", false);
    let product = &mut silent.graph.as_mut().expect("a graph").node[0];
    product.attribute.retain(|attribute| attribute.name != "accuracy_level");
    for (asks, most) in [(true, 3), (false, 1)] {
        check_model(weights, &silent, 2, most, asks, asks);
        let of = |rows: &str, dtype| weights.dequantized(rows, dtype);
        check_model(weights, &of("2", DataType::U4), 2, most + u64::from(!asks), asks, asks);
    }
    for (dtype, bits, zeros) in
        [(DataType::I4, 4, true), (DataType::U8, 8, true), (DataType::I8, 8, true), (DataType::I8, 8, false)]
    {
        let weights = Weights { bits, zeros, ..weights };
        check_model(weights, &weights.dequantized("3", dtype), 3, 3, true, true);
    }
}
