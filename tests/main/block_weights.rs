//! Models whose weights are integers of few bits with a scale for each block of terms, as exporters write them: a product reads
//! the integers as they are stored.

use crate::backend::Monopour;
use crate::onnx::{from_f32, input, node};
use monopour::onnx::proto::{GraphProto, ModelProto, NodeProto, TensorProto};
use monopour::onnx::{DataType, Model};
use monopour::{CompileOptions, compile_onnx};
use monopour_testkit::device::full_is_asked_for;
use monopour_testkit::onnx::{floats, graph, model_of, opset, with_int};
use monopour_testkit::suite::Backend;
use monopour_testkit::{Data, Dtype, HostTensor};
use prost::Message;
use std::path::Path;

/// Terms and columns, and terms of a block.
const TERMS: usize = 48;
const COLUMNS: usize = 24;
const BLOCK: usize = 16;

/// Which elements share a scale.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Scales {
    Blocks,
    Columns,
    All,
}

/// How weights are stored.
#[derive(Clone, Copy, Debug)]
struct Stored {
    dtype: DataType,
    scales: Scales,
    /// Whether the model transposes them.
    turned: bool,
    zeros: bool,
}

impl Stored {
    fn bits(&self) -> u32 {
        self.dtype.bits().expect("integers have bits")
    }
    /// The integer of that number.
    fn integer(&self, number: usize) -> i64 {
        let range = 1 << self.bits();
        let least = if self.dtype.is_unsigned() { 0 } else { range / 2 };
        (number * 37 % 251) as i64 % range - least
    }
    fn element(&self, term: usize, column: usize) -> i64 {
        self.integer(term * COLUMNS + column)
    }
    fn group(&self, term: usize, column: usize) -> usize {
        match self.scales {
            Scales::Blocks => term / BLOCK * COLUMNS + column,
            Scales::Columns => column,
            Scales::All => 0,
        }
    }
    fn scale(group: usize) -> f32 {
        0.004 + (group % 7) as f32 * 0.001
    }
    fn zero(&self, group: usize) -> i64 {
        if self.zeros { self.integer(group * 11 + 5) } else { 0 }
    }
    fn number(&self, term: usize, column: usize) -> f64 {
        let group = self.group(term, column);
        (self.element(term, column) - self.zero(group)) as f64 * f64::from(Self::scale(group))
    }

    /// A constant, row-major.
    fn constant(&self, name: &str, dims: &[i64], elements: &[i64]) -> TensorProto {
        let mask = (1i64 << self.bits()) - 1;
        let packed = |part: &[i64]| part.iter().rev().fold(0, |byte, e| byte << self.bits() | (e & mask)) as u8;
        let raw_data = elements.chunks(8 / self.bits() as usize).map(packed).collect::<Vec<_>>().into();
        let (dims, data_type) = (dims.to_vec(), self.dtype.number());
        TensorProto { name: name.to_owned(), dims, data_type, raw_data, ..TensorProto::default() }
    }

    /// A matrix of the model's order: its sizes, and its elements.
    fn matrix<T>(&self, terms: usize, element: impl Fn(usize, usize) -> T) -> (Vec<i64>, Vec<T>) {
        let count = terms * COLUMNS;
        match self.turned {
            false => {
                (vec![terms as i64, COLUMNS as i64], (0..count).map(|i| element(i / COLUMNS, i % COLUMNS)).collect())
            }
            true => (vec![COLUMNS as i64, terms as i64], (0..count).map(|i| element(i % terms, i / terms)).collect()),
        }
    }

    /// `x` times the weights.
    fn model(&self, rows: &str) -> ModelProto {
        let (dims, elements) = self.matrix(TERMS, |term, column| self.element(term, column));
        let (of_scales, groups) = match self.scales {
            Scales::Blocks => self.matrix(TERMS / BLOCK, |block, column| block * COLUMNS + column),
            Scales::Columns => (vec![COLUMNS as i64], (0..COLUMNS).collect()),
            Scales::All => (vec![], vec![0]),
        };
        let scales: Vec<f32> = groups.iter().map(|group| Self::scale(*group)).collect();
        let mut initializer = vec![self.constant("w", &dims, &elements), floats("s", &of_scales, &scales)];
        let zeros: Vec<i64> = groups.iter().map(|group| self.zero(*group)).collect();
        initializer.extend(self.zeros.then(|| self.constant("z", &of_scales, &zeros)));
        let operands = if self.zeros { "w, s, z" } else { "w, s" };
        let axis = i64::from((self.scales == Scales::Columns) != self.turned);
        let mut dequantized = node(&format!("DequantizeLinear({operands}) -> f"), &[]);
        if self.scales != Scales::All {
            dequantized = with_int(dequantized, "axis", axis);
        }
        if self.scales == Scales::Blocks {
            dequantized = with_int(dequantized, "block_size", BLOCK as i64);
        }
        let product = match self.turned {
            false => vec![node("MatMul(x, f) -> y", &[])],
            true => vec![node("Transpose(f) -> t", &[("perm", &[1, 0])]), node("MatMul(x, t) -> y", &[])],
        };
        let nodes = [dequantized].into_iter().chain(product).collect();
        let inputs = vec![input("x", DataType::F32, &[rows, &TERMS.to_string()])];
        model_of(GraphProto { initializer, ..graph(inputs, nodes, &["y"]) }, if self.bits() == 2 { 25 } else { 21 })
    }
}

/// `x` times weights of the given numbers: that many dispatches, and no copies.
fn check(name: &str, proto: &ModelProto, rows: usize, most: [u64; 2], number: impl Fn(usize, usize) -> f64) {
    let model = Model::from_bytes(&proto.encode_to_vec(), "m.onnx", Path::new("")).unwrap_or_else(|e| panic!("{e}"));
    let x: Vec<f32> = (0..rows * TERMS).map(|i| (i * 29 % 41) as f32 / 16.0 - 1.25).collect();
    let of = |m: usize, n: usize| (0..TERMS).map(|k| f64::from(x[m * TERMS + k]) * number(k, n)).sum::<f64>();
    let expected: Vec<f64> = (0..rows * COLUMNS).map(|i| of(i / COLUMNS, i % COLUMNS)).collect();
    let cpus = std::iter::once(Monopour::cpu()).chain(Monopour::lower_cpus()).map(|cpu| (cpu, most[0]));
    let gpus = [Monopour::gpu(), Monopour::portable()].into_iter().flatten().map(|gpu| (gpu, most[1]));
    for (backend, most) in cpus.chain(gpus) {
        let options = CompileOptions { targets: vec![backend.target().clone()], verify: true, ..Default::default() };
        let program = compile_onnx(&model, &options).unwrap_or_else(|e| panic!("{name}: {e}")).program;
        let run = backend.run_program(program, &[from_f32(&[rows, TERMS], &x)]).unwrap_or_else(|e| panic!("{e}"));
        let found = run.outputs[0].to_f64();
        let wrong = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(found.len() == expected.len() && wrong < 2e-4, "{name}, {rows} rows on {}: {wrong:e}", backend.name());
        let cost = run.cost.expect("a program was run");
        assert!(cost.dispatches <= most, "{name}, {rows} rows on {}: {} dispatches", backend.name(), cost.dispatches);
        assert_eq!(cost.copies, 0, "{name}, {rows} rows on {}", backend.name());
    }
}

/// One dispatch of one row; of several rows a CPU computes the weights first.
#[test]
fn a_product_reads_the_integers_of_dequantize_linear() {
    use DataType::{I2, I4, I8, U2, U4, U8};
    let mut all = vec![];
    for dtype in [U4, I4, U2, I2, U8, I8] {
        // Bytes with a scale for each column are another form.
        let few = [Scales::Blocks, Scales::Columns, Scales::All];
        for scales in few.into_iter().filter(|scales| dtype.bits() != Some(8) || *scales == Scales::Blocks) {
            let forms = [false, true].into_iter().flat_map(|turned| [false, true].map(|zeros| (turned, zeros)));
            all.extend(forms.map(|(turned, zeros)| Stored { dtype, scales, turned, zeros }));
        }
    }
    let step = if full_is_asked_for() { 1 } else { 7 };
    for stored in all.into_iter().step_by(step) {
        let number = |term, column| stored.number(term, column);
        let name = format!("{stored:?}");
        check(&name, &stored.model("1"), 1, [1, 1], number);
        // A scale for all says nothing of which dimension is the terms: integers share bytes along the first.
        let along_columns = stored.scales == Scales::All && stored.turned;
        check(&name, &stored.model("3"), 3, [2, 1 + u64::from(along_columns)], number);
        if stored.scales == Scales::Blocks {
            check(&name, &stored.model("rows"), 1, [1, 1], number);
            check(&name, &stored.model("rows"), 5, [2, 1], number);
        }
    }
}

/// Weights of MatMulNBits, an odd number of blocks whose zero points share bytes, as constants.
#[test]
fn zero_points_of_few_bits_are_read_as_bytes() {
    for bits in [2u32, 4, 8] {
        let per_byte = 8 / bits as usize;
        let (mask, blocks) = ((1usize << bits) - 1, TERMS / BLOCK);
        let element = |term: usize, column: usize| ((term * COLUMNS + column) * 37 % 251) & mask;
        let zero = |block: usize, column: usize| ((block * COLUMNS + column) * 11 % 239) & mask;
        let packed = |integers: &[usize]| -> Vec<u8> {
            integers.chunks(per_byte).map(|part| part.iter().rev().fold(0, |byte, e| byte << bits | e) as u8).collect()
        };
        let constant = |name: &str, dims: &[usize], bytes| constant(name, DataType::U8, dims, bytes);
        let column = |n: usize| packed(&(0..TERMS).map(|k| element(k, n)).collect::<Vec<_>>());
        let zeros = |n: usize| packed(&(0..blocks).map(|block| zero(block, n)).collect::<Vec<_>>());
        let scales: Vec<f32> = (0..COLUMNS * blocks).map(Stored::scale).collect();
        let initializer = vec![
            constant("b", &[COLUMNS, blocks, BLOCK / per_byte], (0..COLUMNS).flat_map(column).collect()),
            floats("s", &[(COLUMNS * blocks) as i64], &scales),
            constant("z", &[COLUMNS * blocks.div_ceil(per_byte)], (0..COLUMNS).flat_map(zeros).collect()),
        ];
        let mut product = node("MatMulNBits(x, b, s, z) -> y", &[]);
        product.domain = "com.microsoft".to_owned();
        let sizes = [("N", COLUMNS), ("K", TERMS), ("bits", bits as usize), ("block_size", BLOCK)];
        let product = sizes.into_iter().fold(product, |product, (name, size)| with_int(product, name, size as i64));
        for rows in [1, 3] {
            let inputs = vec![input("x", DataType::F32, &[&rows.to_string(), &TERMS.to_string()])];
            let g = GraphProto { initializer: initializer.clone(), ..graph(inputs, vec![product.clone()], &["y"]) };
            let mut proto = model_of(g, 21);
            proto.opset_import.push(opset("com.microsoft", 1));
            check(&format!("{bits} bits"), &proto, rows, [rows.min(2) as u64, 1], |term, column| {
                let block = term / BLOCK;
                let scale = f64::from(Stored::scale(column * blocks + block));
                (element(term, column) as f64 - zero(block, column) as f64) * scale
            });
            let model = Model::from_bytes(&proto.encode_to_vec(), "m.onnx", Path::new("")).expect("a model");
            let options = CompileOptions { targets: vec![Monopour::cpu().target().clone()], ..Default::default() };
            let program = compile_onnx(&model, &options).expect("compiles").program;
            let bytes = program.constants.iter().filter(|constant| constant.shape == [COLUMNS as u64, blocks as u64]);
            assert_eq!(bytes.count(), 2, "scales and zero points, one each for a block");
        }
    }
}

/// Constants, the nodes that read lines of a table of them at `i`, and its elements.
struct Table {
    name: &'static str,
    constants: Vec<TensorProto>,
    nodes: Vec<NodeProto>,
    number: fn(usize) -> f64,
}

const LINES: usize = 40;
/// An odd number of blocks.
const WIDTH: usize = 3 * BLOCK;

fn integer(i: usize) -> i64 {
    (i * 37 % 251) as i64
}
fn zero(block: usize) -> i64 {
    integer(block * 5 + 3)
}
fn nibble(i: usize) -> f64 {
    ((integer(i) & 15) - (zero(i / BLOCK) & 15)) as f64 * f64::from(Stored::scale(i / BLOCK))
}
fn byte(i: usize) -> f64 {
    (integer(i) % 256 - 128) as f64 * f64::from(Stored::scale(i / WIDTH))
}
fn half(i: usize) -> f64 {
    1.0 + (i * 37 % 1024) as f64 / 1024.0
}
/// 4 bits with a sign, in blocks of lines, whose scales and zero points are those of a column: what a line is made of.
fn signed_nibble(i: usize) -> f64 {
    let sign = |integer: i64| ((integer & 15) ^ 8) - 8;
    let block = i / WIDTH / 8 * WIDTH + i % WIDTH;
    (sign(integer(i)) - sign(zero(block))) as f64 * f64::from(Stored::scale(block))
}

/// A constant of these bytes.
pub fn constant(name: &str, dtype: DataType, dims: &[usize], raw_data: Vec<u8>) -> TensorProto {
    let (dims, data_type) = (dims.iter().map(|size| *size as i64).collect(), dtype.number());
    TensorProto { name: name.to_owned(), dims, data_type, raw_data: raw_data.into(), ..TensorProto::default() }
}

/// Lines of nibbles, each of whole bytes.
fn nibbles(lines: usize, width: usize, of: impl Fn(usize) -> i64) -> Vec<u8> {
    let nibble = |line: usize, at: usize| if at < width { of(line * width + at) & 15 } else { 0 };
    let pair = |line: usize, at: usize| (nibble(line, at) | nibble(line, at + 1) << 4) as u8;
    (0..lines).flat_map(|line| (0..width).step_by(2).map(move |at| (line, at))).map(|(l, at)| pair(l, at)).collect()
}

fn with_ints(node: NodeProto, attributes: &[(&str, i64)]) -> NodeProto {
    attributes.iter().fold(node, |node, (name, value)| with_int(node, name, *value))
}

fn gathered(made: NodeProto) -> Vec<NodeProto> {
    vec![made, with_int(node("Gather(t, i) -> y", &[]), "axis", 0)]
}

fn quantized_gather(operands: &str, attributes: &[(&str, i64)]) -> Vec<NodeProto> {
    let node = node(&format!("GatherBlockQuantized({operands}) -> y"), &[]);
    vec![with_ints(NodeProto { domain: "com.microsoft".to_owned(), ..node }, attributes)]
}

fn scales(dims: &[usize]) -> TensorProto {
    let numbers: Vec<f32> = (0..dims.iter().product()).map(Stored::scale).collect();
    floats("s", &dims.iter().map(|size| *size as i64).collect::<Vec<_>>(), &numbers)
}

fn tables() -> Vec<Table> {
    let (blocks, count) = (WIDTH / BLOCK, LINES * WIDTH);
    let packed = || constant("w", DataType::U4, &[LINES, WIDTH], nibbles(LINES, WIDTH, integer));
    let in_blocks = [("axis", 1), ("block_size", BLOCK as i64)];
    let bytes = (0..count).map(|i| (integer(i) % 256 - 128) as u8).collect();
    let halves = (0..count).flat_map(|i| (0x3c00 + (i * 37 % 1024) as u16).to_le_bytes()).collect();
    let of = |name, constants, nodes, number| Table { name, constants, nodes, number };
    vec![
        of(
            "4 bits in blocks",
            vec![
                packed(),
                scales(&[LINES, blocks]),
                constant("z", DataType::U4, &[LINES, blocks], nibbles(1, LINES * blocks, zero)),
            ],
            gathered(with_ints(node("DequantizeLinear(w, s, z) -> t", &[]), &in_blocks)),
            nibble,
        ),
        of(
            "bytes with a scale for each line",
            vec![constant("w", DataType::I8, &[LINES, WIDTH], bytes), scales(&[LINES])],
            gathered(with_int(node("DequantizeLinear(w, s) -> t", &[]), "axis", 0)),
            byte,
        ),
        of(
            "halves",
            vec![constant("w", DataType::F16, &[LINES, WIDTH], halves)],
            gathered(with_int(node("Cast(w) -> t", &[]), "to", i64::from(DataType::F32.number()))),
            half,
        ),
        of(
            "bytes of two integers",
            vec![
                constant("w", DataType::U8, &[LINES, WIDTH / 2], nibbles(LINES, WIDTH, integer)),
                scales(&[LINES, blocks]),
                constant("z", DataType::U8, &[LINES, blocks.div_ceil(2)], nibbles(LINES, blocks, zero)),
            ],
            quantized_gather("w, i, s, z", &[("quantize_axis", 1), ("block_size", BLOCK as i64)]),
            nibble,
        ),
        of(
            "signed integers in blocks of lines",
            vec![
                constant("w", DataType::I4, &[LINES, WIDTH], nibbles(LINES, WIDTH, integer)),
                scales(&[LINES / 8, WIDTH]),
                constant("z", DataType::I4, &[LINES / 8, WIDTH], nibbles(LINES / 8, WIDTH, zero)),
            ],
            quantized_gather("w, i, s, z", &[("quantize_axis", 0), ("block_size", 8)]),
            signed_nibble,
        ),
    ]
}

/// Lines of a table that is dequantised, or converted: those of the tokens are computed, by one dispatch.
#[test]
fn a_table_is_computed_where_it_is_read() {
    let tokens = [0i64, 39, 7, 7, -1, 20];
    for Table { name, constants, nodes, number } in tables() {
        let inputs = vec![input("i", DataType::I32, &["tokens"])];
        let mut proto = model_of(GraphProto { initializer: constants, ..graph(inputs, nodes, &["y"]) }, 21);
        proto.opset_import.push(opset("com.microsoft", 1));
        let model =
            Model::from_bytes(&proto.encode_to_vec(), "m.onnx", Path::new("")).unwrap_or_else(|e| panic!("{e}"));
        let data = Data::Int(tokens.to_vec());
        let given = HostTensor { dtype: Dtype::Int(32), shape: vec![tokens.len()], data };
        let line = |token: i64| token.rem_euclid(LINES as i64) as usize * WIDTH;
        let expected: Vec<f64> = tokens.iter().flat_map(|token| (line(*token)..).take(WIDTH)).map(number).collect();
        for backend in [Some(Monopour::cpu()), Monopour::gpu(), Monopour::portable()].into_iter().flatten() {
            let options =
                CompileOptions { targets: vec![backend.target().clone()], verify: true, ..Default::default() };
            let program = compile_onnx(&model, &options).unwrap_or_else(|e| panic!("{name}: {e}")).program;
            let run = backend.run_program(program, std::slice::from_ref(&given)).unwrap_or_else(|e| panic!("{e}"));
            let found = run.outputs[0].to_f64();
            let wrong = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(found.len() == expected.len() && wrong < 1e-6, "{name} on {}: {wrong:e}", backend.name());
            let cost = run.cost.expect("a program was run");
            assert_eq!((cost.dispatches, cost.copies), (1, 0), "{name} on {}", backend.name());
        }
    }
}

/// Zero points of another type than the table's are no numbers of it.
#[test]
fn zero_points_of_another_type_are_refused() {
    let constants = vec![
        constant("w", DataType::I4, &[LINES, WIDTH], nibbles(LINES, WIDTH, integer)),
        scales(&[LINES, WIDTH / BLOCK]),
        constant("z", DataType::U4, &[LINES, WIDTH / BLOCK], nibbles(1, LINES * WIDTH / BLOCK, zero)),
    ];
    let nodes = quantized_gather("w, i, s, z", &[("quantize_axis", 1), ("block_size", BLOCK as i64)]);
    let inputs = vec![input("i", DataType::I32, &["tokens"])];
    let mut proto = model_of(GraphProto { initializer: constants, ..graph(inputs, nodes, &["y"]) }, 21);
    proto.opset_import.push(opset("com.microsoft", 1));
    let model = Model::from_bytes(&proto.encode_to_vec(), "m.onnx", Path::new("")).expect("a model");
    let options = CompileOptions { targets: vec![Monopour::cpu().target().clone()], ..Default::default() };
    let refused = compile_onnx(&model, &options).err().expect("refused").to_string();
    assert!(refused.contains("zero points of ui4 for elements of i4"), "{refused}");
}
