//! Random networks of images: convolutions of all channels or of each, pools, pads, concatenations, slices, residuals and
//! means, with constant filters, as models have them.

use crate::host_tensor::Dtype;
use crate::random::Rng;
use crate::text::{Input, Program, Value, list, tensor};
use std::fmt::Write;

const CHANNELS: [usize; 8] = [3, 8, 16, 24, 32, 32, 48, 64];
/// Most multiplications of a convolution: the evaluator interprets each.
const MAX_WORK: usize = 400_000;

/// The size of batches in a text before it is made dynamic: no other dimension is as long.
const ANY_BATCH: usize = 1009;

/// A function `@main` of about so many ops, and its inputs.
pub fn network(seed: u64, ops: usize) -> (String, Vec<Input>) {
    let mut rng = Rng::new(seed);
    let batch = if rng.below(3) == 0 { Some(1 + rng.below(2) as usize) } else { None };
    written(Images { rng, text: Program::new(), batch, work: batch.unwrap_or(1), images: vec![] }, ops)
}

/// As [`network`], of batches whose size is not known, from 0 to 3.
pub fn network_of_batches(seed: u64, ops: usize) -> (String, Vec<Input>) {
    let mut rng = Rng::new(seed);
    let batch = rng.below(4) as usize;
    let g = Images { rng, text: Program::new(), batch: Some(ANY_BATCH), work: batch.max(1), images: vec![] };
    let (text, mut inputs) = written(g, ops);
    let (known, any) = (format!("tensor<{ANY_BATCH}x"), "tensor<?x");
    let text = text
        .replace(&known, any)
        .replace(&format!("tensor.empty() : {any}"), &format!("tensor.empty(%n) : {any}"))
        .replace(&format!("] [{ANY_BATCH}, "), "] [%n, ");
    let (head, body) = text.split_once("{\n").expect("invariant: a function has a body");
    let first = head.split_once('(').and_then(|(_, arguments)| arguments.split([',', ')']).next()).unwrap_or_default();
    let (name, ty) = first.split_once(": ").expect("invariant: the first input is an image");
    let size = format!("  %c0 = arith.constant 0 : index\n  %n = tensor.dim {name}, %c0 : {ty}\n");
    inputs.iter_mut().filter(|i| i.shape[0] == ANY_BATCH).for_each(|i| i.shape[0] = batch);
    (format!("{head}{{\n{size}{body}"), inputs)
}

fn written(mut g: Images, ops: usize) -> (String, Vec<Input>) {
    let first = g.image_input();
    g.images.push(first);
    for _ in 0..ops {
        let image = g.step();
        g.images.push(image);
    }
    let last = g.images[g.images.len() - 1].clone();
    let mut results = vec![last];
    if g.rng.below(2) == 0 {
        let earlier = g.pick();
        results.push(earlier);
    }
    if g.rng.below(2) == 0 {
        let of = g.pick();
        results.push(g.mean(&of));
    }
    g.text.finish(&results.iter().collect::<Vec<_>>())
}

struct Images {
    rng: Rng,
    text: Program,
    /// Images of one dimension more.
    batch: Option<usize>,
    /// Images that are computed at once.
    work: usize,
    images: Vec<Value>,
}

impl Images {
    fn shape(&self, [c, h, w]: [usize; 3]) -> Vec<usize> {
        self.batch.into_iter().chain([c, h, w]).collect()
    }

    /// Channels, height and width.
    fn sizes(&self, image: &Value) -> [usize; 3] {
        let shape = image.shape();
        [shape[shape.len() - 3], shape[shape.len() - 2], shape[shape.len() - 1]]
    }

    /// Loops or subscripts, with the batch where there is one.
    fn with_batch(&self, rest: &str, separator: &str) -> String {
        if self.batch.is_some() { format!("n{separator}{rest}") } else { rest.to_owned() }
    }

    fn pick(&mut self) -> Value {
        let late = self.images.len().saturating_sub(3);
        let from = if self.rng.below(4) == 0 { 0 } else { late };
        self.images[from + self.rng.below((self.images.len() - from) as u64) as usize].clone()
    }

    fn channels(&mut self) -> usize {
        *self.rng.pick(&CHANNELS)
    }

    fn image_input(&mut self) -> Value {
        let sizes = [self.channels(), 1 + self.rng.below(9) as usize, 1 + self.rng.below(9) as usize];
        let shape = self.shape(sizes);
        self.text.f32(&shape)
    }

    /// Distinct constants: another order of them gives other sums.
    fn constant(&mut self, shape: &[usize]) -> Value {
        let mut hex = String::new();
        for _ in 0..shape.iter().product::<usize>() {
            let value = self.rng.symmetric() as f32 * 0.25;
            value.to_le_bytes().iter().for_each(|byte| _ = write!(hex, "{byte:02X}"));
        }
        let text = format!("arith.constant dense<\"0x{hex}\"> : {}", tensor(Dtype::F32, shape));
        self.text.op(Dtype::F32, shape, &text)
    }

    fn step(&mut self) -> Value {
        let x = self.pick();
        match self.rng.below(12) {
            0..=2 => self.convolution(&x, 3),
            3 | 4 => self.convolution(&x, 1),
            5 => self.depthwise(&x),
            6 => self.pool(&x),
            7 => self.concatenation(&x),
            8 => self.channel_slice(&x),
            9 => self.residual(&x),
            10 => self.scaled(&x),
            _ => self.rectified(&x),
        }
    }

    /// Zeros around an image, sometimes on one side only.
    fn padded(&mut self, x: &Value) -> Value {
        let [c, h, w] = self.sizes(x);
        let high = self.rng.below(2) as usize;
        let sizes = [c, h + 1 + high, w + 1 + high];
        let shape = self.shape(sizes);
        let zero = self.text.constant(Dtype::F32, "0.0");
        let lead = if self.batch.is_some() { "0, " } else { "" };
        let args: Vec<String> = (0..shape.len()).map(|d| format!("%p{d}: index")).collect();
        let text = format!(
            "tensor.pad {} low[{lead}0, 1, 1] high[{lead}0, {high}, {high}] {{\n  ^bb0({}):\n    tensor.yield {} : f32\n  }} : {} to {}",
            x.name,
            args.join(", "),
            zero.name,
            x.ty(),
            tensor(Dtype::F32, &shape)
        );
        self.text.op(Dtype::F32, &shape, &text)
    }

    /// The image that windows of `k` and `stride` are read of, and the sizes of their grid.
    fn windows(&mut self, x: &Value, k: usize) -> (Value, usize, [usize; 2]) {
        let stride = 1 + usize::from(self.rng.below(3) == 0);
        let [_, h, w] = self.sizes(x);
        let x = if k > 1 && (h < k || w < k || self.rng.below(4) > 0) { self.padded(x) } else { x.clone() };
        let x = if self.sizes(&x)[1..].iter().any(|size| *size < k) { self.padded(&x) } else { x };
        let [_, h, w] = self.sizes(&x);
        if h < k || w < k { self.windows(&x, k) } else { (x, stride, [(h - k) / stride + 1, (w - k) / stride + 1]) }
    }

    fn convolution(&mut self, x: &Value, k: usize) -> Value {
        let (x, stride, [h, w]) = self.windows(x, k);
        let from = self.sizes(&x)[0];
        let most = (MAX_WORK / (from * k * k * h * w * self.work).max(1)).max(1);
        let to = self.channels().min(most);
        let shape = self.shape([to, h, w]);
        let out = self.text.zeros(Dtype::F32, &shape);
        let body = "%m = arith.mulf %a, %b : f32; %s = arith.addf %o, %m : f32";
        let maps = [self.with_batch("c, y, x", ", "), self.with_batch("o, y, x", ", ")];
        let sum = if k == 1 && stride == 1 {
            let filter = self.constant(&[to, from]);
            let loops = self.with_batch("o y x c!", " ");
            self.text.generic(&loops, &[(&x, &maps[0]), (&filter, "o, c")], (&out, &maps[1]), body)
        } else {
            let filter = self.constant(&[to, from, k, k]);
            let image = self.with_batch(&format!("c, y * {stride} + i, x * {stride} + j"), ", ");
            let loops = self.with_batch("o y x c! i! j!", " ");
            self.text.generic(&loops, &[(&x, &image), (&filter, "o, c, i, j")], (&out, &maps[1]), body)
        };
        if self.rng.below(3) == 0 { sum } else { self.biased(&sum) }
    }

    fn biased(&mut self, x: &Value) -> Value {
        let [c, ..] = self.sizes(x);
        let (bias, out) = (self.constant(&[c]), self.text.empty(Dtype::F32, x.shape()));
        let (loops, image) = (self.with_batch("c y x", " "), self.with_batch("c, y, x", ", "));
        let body = "%t = arith.addf %a, %b : f32; %z = arith.constant 0.0 : f32; %s = arith.maximumf %t, %z : f32";
        self.text.generic(&loops, &[(x, &image), (&bias, "c")], (&out, &image), body)
    }

    fn depthwise(&mut self, x: &Value) -> Value {
        let (x, stride, [h, w]) = self.windows(x, 3);
        let [c, ..] = self.sizes(&x);
        let filter = self.constant(&[c, 3, 3]);
        let shape = self.shape([c, h, w]);
        let out = self.text.zeros(Dtype::F32, &shape);
        let image = self.with_batch(&format!("c, y * {stride} + i, x * {stride} + j"), ", ");
        let (loops, to) = (self.with_batch("c y x i! j!", " "), self.with_batch("c, y, x", ", "));
        let body = "%m = arith.mulf %a, %b : f32; %s = arith.addf %o, %m : f32";
        self.text.generic(&loops, &[(&x, &image), (&filter, "c, i, j")], (&out, &to), body)
    }

    fn pool(&mut self, x: &Value) -> Value {
        let (x, stride, [h, w]) = self.windows(x, 3);
        let [c, ..] = self.sizes(&x);
        let window = self.text.empty(Dtype::F32, &[3, 3]);
        let shape = self.shape([c, h, w]);
        let out = self.text.fill(Dtype::F32, &shape, "-1000.0");
        let image = self.with_batch(&format!("c, y * {stride} + i, x * {stride} + j"), ", ");
        let (loops, to) = (self.with_batch("c y x i! j!", " "), self.with_batch("c, y, x", ", "));
        let body = "%s = arith.maximumf %o, %a : f32";
        self.text.generic(&loops, &[(&x, &image), (&window, "i, j")], (&out, &to), body)
    }

    /// With another image of the same height and width, or with itself.
    fn concatenation(&mut self, x: &Value) -> Value {
        let [c, h, w] = self.sizes(x);
        let fits = |v: &&Value| self.sizes(v)[1..] == [h, w] && v.shape()[0] == x.shape()[0] || v.name == x.name;
        let others: Vec<Value> =
            self.images.iter().filter(fits).filter(|v| self.sizes(v)[1..] == [h, w]).cloned().collect();
        let other = self.rng.pick(&others).clone();
        let shape = self.shape([c + self.sizes(&other)[0], h, w]);
        let dim = shape.len() - 3;
        let types = format!("({}, {})", x.ty(), other.ty());
        let text =
            format!("tensor.concat dim({dim}) {}, {} : {types} -> {}", x.name, other.name, tensor(Dtype::F32, &shape));
        self.text.op(Dtype::F32, &shape, &text)
    }

    fn channel_slice(&mut self, x: &Value) -> Value {
        let [c, h, w] = self.sizes(x);
        let size = if c.is_multiple_of(2) { c / 2 } else { c };
        let offset = if self.rng.below(2) == 0 { 0 } else { c - size };
        let shape = self.shape([size, h, w]);
        let mut offsets = vec![0; shape.len()];
        offsets[shape.len() - 3] = offset;
        let ones = vec![1; shape.len()];
        let text = format!(
            "tensor.extract_slice {}[{}] [{}] [{}] : {} to {}",
            x.name,
            list(&offsets),
            list(&shape),
            list(&ones),
            x.ty(),
            tensor(Dtype::F32, &shape)
        );
        self.text.op(Dtype::F32, &shape, &text)
    }

    /// Plus another image of the type, or an input.
    fn residual(&mut self, x: &Value) -> Value {
        let others: Vec<Value> = self.images.iter().filter(|v| v.shape() == x.shape()).cloned().collect();
        let other = if self.rng.below(4) == 0 { self.text.f32(x.shape()) } else { self.rng.pick(&others).clone() };
        self.text.pointwise(Dtype::F32, &[x, &other], "%s = arith.addf %a, %b : f32")
    }

    /// By a factor per channel that is computed.
    fn scaled(&mut self, x: &Value) -> Value {
        let mean = self.mean(x);
        let out = self.text.empty(Dtype::F32, x.shape());
        let (loops, image) = (self.with_batch("c y x", " "), self.with_batch("c, y, x", ", "));
        let factor = self.with_batch("c", ", ");
        let body = "%s = arith.mulf %a, %b : f32";
        self.text.generic(&loops, &[(x, &image), (&mean, &factor)], (&out, &image), body)
    }

    fn rectified(&mut self, x: &Value) -> Value {
        self.text.pointwise(Dtype::F32, &[x], "%z = arith.constant 0.0 : f32; %s = arith.maximumf %a, %z : f32")
    }

    fn mean(&mut self, x: &Value) -> Value {
        let [c, ..] = self.sizes(x);
        let shape: Vec<usize> = self.batch.into_iter().chain([c]).collect();
        let out = self.text.zeros(Dtype::F32, &shape);
        let (loops, image) = (self.with_batch("c y! x!", " "), self.with_batch("c, y, x", ", "));
        let to = self.with_batch("c", ", ");
        let body = "%f = arith.constant 0.0625 : f32; %m = arith.mulf %a, %f : f32; %s = arith.addf %o, %m : f32";
        self.text.generic(&loops, &[(x, &image)], (&out, &to), body)
    }
}
