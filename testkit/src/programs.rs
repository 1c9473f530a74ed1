//! The benchmark programs: their text, their inputs, and their results, computed in f64 without the evaluator.
//!
//! They are those of `benches/gen.py`, with inputs from another generator. The sizes are parameters, so that tests take
//! smaller ones of the same structure.

use crate::host_tensor::{Data, Dtype, HostTensor};
use crate::random::Rng;
use crate::suite::{layer_norm, softmax};
use crate::text::{Input, Program as Text, Value};
use monopour_ir::ops;

/// A benchmark program with its inputs and the values of its result.
#[derive(Clone, Debug)]
pub struct Benchmark {
    /// Its name: `matmul_256`, `mlp`, ...
    pub name: String,
    /// The program; its entry is `main`.
    pub text: String,
    /// Inputs in order.
    pub inputs: Vec<HostTensor>,
    /// Shape of the result.
    pub shape: Vec<usize>,
    /// Elements of the result, in f64.
    pub expected: Vec<f64>,
    /// Allowed difference of an element.
    pub tolerance: f64,
    /// Most dispatches of one run.
    pub dispatches: u32,
}

/// Whether programs have their full size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Size {
    /// As `benches/gen.py` writes them.
    Full,
    /// The same structure, quick to check.
    Small,
}

/// Names of all eleven.
pub const NAMES: [&str; 11] = [
    "matmul_256",
    "matmul_512",
    "matmul_1024",
    "mlp",
    "mlp_const",
    "ew8",
    "softmax",
    "layernorm",
    "attn_128",
    "attn_512",
    "conv",
];

/// One of the eleven by name; `None` for another name.
pub fn benchmark(name: &str, size: Size) -> Option<Benchmark> {
    let full = size == Size::Full;
    let made = match name {
        "matmul_256" => matmul(256),
        "matmul_512" => matmul(if full { 512 } else { 320 }),
        "matmul_1024" => matmul(if full { 1024 } else { 384 }),
        "mlp" | "mlp_const" => {
            let widths = if full { [784, 1024, 1024, 10] } else { [196, 256, 256, 10] };
            mlp(64, widths, name == "mlp_const")
        }
        "ew8" => elementwise(if full { 1 << 24 } else { 1 << 18 }),
        "softmax" => row_softmax(if full { 4096 } else { 256 }, 1024),
        "layernorm" => row_norm(if full { 4096 } else { 256 }, 1024),
        "attn_128" => attention(if full { 12 } else { 4 }, 128),
        "attn_512" => attention(if full { 12 } else { 2 }, if full { 512 } else { 256 }),
        "conv" => convolution(if full { 56 } else { 28 }, 64),
        _ => return None,
    };
    Some(Benchmark { name: name.to_owned(), ..made })
}

/// Elements of a float tensor.
fn floats(tensor: &HostTensor) -> &[f64] {
    match &tensor.data {
        Data::Float(values) => values,
        Data::Int(_) => &[],
    }
}

/// Draws approximately normal numbers of this deviation: the sum of four uniform ones.
fn draw(rng: &mut Rng, shape: &[usize], deviation: f64) -> HostTensor {
    let scale = deviation * (3.0f64 / 4.0).sqrt();
    let mut number = || (0..4).map(|_| rng.symmetric()).sum::<f64>() * scale;
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| number() as f32).collect();
    HostTensor::from_f32(shape, &values).expect("as many values as the shape says")
}

/// A program under construction, with the values of its inputs.
struct Maker {
    text: Text,
    rng: Rng,
    inputs: Vec<HostTensor>,
}

impl Maker {
    fn new(seed: u64) -> Self {
        Self { text: Text::new(), rng: Rng::new(seed), inputs: vec![] }
    }

    fn input(&mut self, shape: &[usize], deviation: f64) -> (Value, Vec<f64>) {
        let tensor = draw(&mut self.rng, shape, deviation);
        let values = floats(&tensor).to_vec();
        self.inputs.push(tensor);
        (self.text.f32(shape), values)
    }

    /// An input, or a constant that is a resource of the module.
    fn parameter(
        &mut self,
        name: &str,
        shape: &[usize],
        deviation: f64,
        constant: bool,
        resources: &mut Vec<String>,
    ) -> (Value, Vec<f64>) {
        if !constant {
            return self.input(shape, deviation);
        }
        let tensor = draw(&mut self.rng, shape, deviation);
        let ty = crate::text::tensor(Dtype::F32, shape);
        let value = self.text.op(Dtype::F32, shape, &format!("arith.constant dense_resource<{name}> : {ty}"));
        let hex: String = tensor.to_bytes().iter().map(|b| format!("{b:02X}")).collect();
        resources.push(format!("{name}: \"0x04000000{hex}\""));
        (value, floats(&tensor).to_vec())
    }

    fn finish(self, result: &Value, expected: Vec<f64>, tolerance: f64, dispatches: u32) -> Benchmark {
        let shape = result.shape().to_vec();
        let (text, _): (String, Vec<Input>) = self.text.finish(&[result]);
        Benchmark { name: String::new(), text, inputs: self.inputs, shape, expected, tolerance, dispatches }
    }
}

/// `[m, k] * [k, n]`, row-major.
fn multiply(a: &[f64], b: &[f64], [m, n, k]: [usize; 3]) -> Vec<f64> {
    let mut out = vec![0.0; m * n];
    for i in 0..m {
        let row = &mut out[i * n..(i + 1) * n];
        for p in 0..k {
            let x = a[i * k + p];
            for (o, y) in row.iter_mut().zip(&b[p * n..(p + 1) * n]) {
                *o += x * y;
            }
        }
    }
    out
}

fn matmul(n: usize) -> Benchmark {
    let mut m = Maker::new(n as u64);
    let ((x, a), (y, b)) = (m.input(&[n, n], 1.0), m.input(&[n, n], 1.0));
    let zero = m.text.zeros(Dtype::F32, &[n, n]);
    let r = m.text.named(ops::linalg::MATMUL, &[&x, &y], &zero);
    m.finish(&r, multiply(&a, &b, [n, n, n]), 1e-3, 1)
}

fn mlp(batch: usize, widths: [usize; 4], constant: bool) -> Benchmark {
    let mut m = Maker::new(2);
    let (mut x, mut values) = m.input(&[batch, widths[0]], 1.0);
    let mut resources: Vec<String> = vec![];
    for (layer, pair) in widths.windows(2).enumerate() {
        let (k, n) = (pair[0], pair[1]);
        let (w, w_values) = m.parameter(&format!("w{layer}"), &[k, n], (k as f64).powf(-0.5), constant, &mut resources);
        let (b, b_values) = m.parameter(&format!("b{layer}"), &[n], 0.1, constant, &mut resources);
        let zero = m.text.zeros(Dtype::F32, &[batch, n]);
        let product = m.text.named(ops::linalg::MATMUL, &[&x, &w], &zero);
        x = m.text.pointwise(Dtype::F32, &[&product, &b], "%s = arith.addf %a, %b : f32");
        values = multiply(&values, &w_values, [batch, n, k]);
        values.iter_mut().enumerate().for_each(|(i, v)| *v += b_values[i % n]);
        if layer < 2 {
            x = m.text.pointwise(Dtype::F32, &[&x], "%z = arith.constant 0.0 : f32; %s = arith.maximumf %a, %z : f32");
            values.iter_mut().for_each(|v| *v = v.max(0.0));
        }
    }
    let mut made = m.finish(&x, values, 1e-3, 3);
    if constant {
        let blobs = resources.join(",\n      ");
        made.text
            .push_str(&format!("{{-#\n  dialect_resources: {{\n    builtin: {{\n      {blobs}\n    }}\n  }}\n#-}}\n"));
    }
    made
}

/// Eight elementwise ops.
fn elementwise(n: usize) -> Benchmark {
    let mut m = Maker::new(3);
    let ((x, a), (y, b)) = (m.input(&[n], 1.0), m.input(&[n], 1.0));
    let t = &mut m.text;
    let mut v = t.pointwise(Dtype::F32, &[&x, &y], "%s = arith.addf %a, %b : f32");
    v = t.pointwise(Dtype::F32, &[&v, &x], "%s = arith.mulf %a, %b : f32");
    v = t.pointwise(Dtype::F32, &[&v], "%z = arith.constant 0.0 : f32; %s = arith.maximumf %a, %z : f32");
    v = t.pointwise(Dtype::F32, &[&v, &y], "%s = arith.subf %a, %b : f32");
    v = t.pointwise(Dtype::F32, &[&v], "%h = arith.constant 0.5 : f32; %s = arith.mulf %a, %h : f32");
    v = t.pointwise(Dtype::F32, &[&v], "%s = math.absf %a : f32");
    v = t.pointwise(Dtype::F32, &[&v], "%s = math.sqrt %a : f32");
    let r = t.pointwise(Dtype::F32, &[&v], "%u = arith.constant 1.0 : f32; %s = arith.addf %a, %u : f32");
    // In f32 as far as the root, which near zero amplifies rounding errors.
    let single = |x: f64, y: f64| {
        let (x, y) = (x as f32, y as f32);
        f64::from(((((x + y) * x).max(0.0) - y) * 0.5).abs())
    };
    let expected = a.iter().zip(&b).map(|(x, y)| single(*x, *y).sqrt() + 1.0).collect();
    m.finish(&r, expected, 1e-5, 1)
}

/// Softmax of rows of `n`, in place.
fn softmax_rows(values: &mut [f64], n: usize) {
    for row in values.chunks_mut(n) {
        let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        row.iter_mut().for_each(|v| *v = (*v - top).exp());
        let sum: f64 = row.iter().sum();
        row.iter_mut().for_each(|v| *v /= sum);
    }
}

fn row_softmax(rows: usize, n: usize) -> Benchmark {
    let mut m = Maker::new(4);
    let (x, mut values) = m.input(&[rows, n], 1.0);
    let r = softmax(&mut m.text, &x);
    softmax_rows(&mut values, n);
    m.finish(&r, values, 1e-5, 1)
}

fn row_norm(rows: usize, n: usize) -> Benchmark {
    let mut m = Maker::new(5);
    let (x, values) = m.input(&[rows, n], 1.0);
    let ((scale, g), (shift, b)) = (m.input(&[n], 1.0), m.input(&[n], 1.0));
    let r = layer_norm(&mut m.text, &x, &scale, &shift, "1.0e-5");
    let mut expected = Vec::with_capacity(values.len());
    for row in values.chunks(n) {
        let mean = row.iter().sum::<f64>() / n as f64;
        let variance = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64;
        expected.extend(row.iter().enumerate().map(|(i, v)| (v - mean) / (variance + 1e-5).sqrt() * g[i] + b[i]));
    }
    m.finish(&r, expected, 1e-5, 1)
}

fn attention(heads: usize, s: usize) -> Benchmark {
    const WIDTH: usize = 64;
    let mut m = Maker::new(6);
    let shape = [heads, s, WIDTH];
    let ((q, qs), (k, ks), (v, vs)) = (m.input(&shape, 1.0), m.input(&shape, 1.0), m.input(&shape, 1.0));
    let t = &mut m.text;
    let zero = t.zeros(Dtype::F32, &[heads, s, s]);
    let map = |r: &str| format!("affine_map<(b, m, n, k) -> ({r})>");
    let maps = format!("indexing_maps = [{}, {}, {}]", map("b, m, k"), map("b, n, k"), map("b, m, n"));
    let qk = t.named(&format!("linalg.batch_matmul {maps}"), &[&q, &k], &zero);
    let scaled = t.pointwise(Dtype::F32, &[&qk], "%c = arith.constant 0.125 : f32; %s = arith.mulf %a, %c : f32");
    let weights = softmax(t, &scaled);
    let zero = t.zeros(Dtype::F32, &shape);
    let r = t.named(ops::linalg::BATCH_MATMUL, &[&weights, &v], &zero);
    let mut expected = vec![];
    for head in 0..heads {
        let part = |x: &'_ Vec<f64>| x[head * s * WIDTH..(head + 1) * s * WIDTH].to_vec();
        let (q, k, v) = (part(&qs), part(&ks), part(&vs));
        let transposed: Vec<_> = (0..s * WIDTH).map(|i| k[i % s * WIDTH + i / s] * 0.125).collect();
        let mut scores = multiply(&q, &transposed, [s, s, WIDTH]);
        softmax_rows(&mut scores, s);
        expected.extend(multiply(&scores, &v, [s, WIDTH, s]));
    }
    m.finish(&r, expected, 1e-5, 3)
}

/// Three by three, on a padded image.
fn convolution(n: usize, c: usize) -> Benchmark {
    let mut m = Maker::new(7);
    let ((x, image), (f, filter)) = (m.input(&[1, n + 2, n + 2, c], 1.0), m.input(&[3, 3, c, c], 1.0));
    let zero = m.text.zeros(Dtype::F32, &[1, n, n, c]);
    let op = "linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}";
    let r = m.text.named(op, &[&x, &f], &zero);
    let mut expected = vec![0.0; n * n * c];
    for (dy, dx) in (0..9).map(|i| (i / 3, i % 3)) {
        let weights = &filter[(dy * 3 + dx) * c * c..(dy * 3 + dx + 1) * c * c];
        for y in 0..n {
            let row = &image[((y + dy) * (n + 2) + dx) * c..][..n * c];
            let part = multiply(row, weights, [n, c, c]);
            expected[y * n * c..(y + 1) * n * c].iter_mut().zip(part).for_each(|(e, p)| *e += p);
        }
    }
    m.finish(&r, expected, 1e-3, 1)
}
