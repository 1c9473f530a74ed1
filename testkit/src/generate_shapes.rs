//! Random shapes for one op at a time: extents of 0, 1 and primes, strides, transposed operands, every element type, and NaN,
//! infinities, denormals or the extreme integers among the values.
//!
//! Results are unique within [`tolerance`]: sums of 16-bit floats are of halves, which are exact, and floats that become
//! integers are within their range.

use crate::approx::Tolerance;
use crate::generate_graphs::pad_text;
use crate::host_tensor::Dtype;
use crate::random::Rng;
use crate::text::{Input, Program, Value, list, tensor};

const SIZES: [usize; 22] = [0, 1, 1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 17, 19, 31, 32, 37, 64, 67, 97, 128, 131];
/// Most elements of a value.
const MAX_ELEMENTS: usize = 20_000;
/// Most multiplications of a product: the evaluator interprets each.
const MAX_WORK: usize = 100_000;
const FLOATS: [Dtype; 4] = [Dtype::F16, Dtype::Bf16, Dtype::F32, Dtype::F64];
const INTEGERS: [Dtype; 4] = [Dtype::Int(8), Dtype::Int(16), Dtype::Int(32), Dtype::Int(64)];
const BIT: Dtype = Dtype::Int(1);

const FLOAT_OPS: [&str; 10] =
    ["addf", "subf", "mulf", "divf", "maximumf", "minimumf", "maxnumf", "minnumf", "remf", "copysign"];
const INTEGER_OPS: [&str; 17] = [
    "addi",
    "subi",
    "muli",
    "maxsi",
    "minsi",
    "maxui",
    "minui",
    "andi",
    "ori",
    "xori",
    "divui",
    "remui",
    "divsi",
    "remsi",
    "floordivsi",
    "ceildivsi",
    "ceildivui",
];
const FUNCTIONS: [&str; 31] = [
    "sqrt",
    "rsqrt",
    "cbrt",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "tanh",
    "sinh",
    "cosh",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "asinh",
    "acosh",
    "atanh",
    "erf",
    "erfc",
    "floor",
    "ceil",
    "trunc",
    "round",
    "roundeven",
    "powf",
    "atan2",
];
const FLOAT_ORDERS: [&str; 14] =
    ["oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno"];
const INTEGER_ORDERS: [&str; 10] = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"];

/// Allowed error of a result whose largest finite magnitude is `largest`, on a CPU or on lavapipe.
pub fn tolerance(dtype: Dtype, largest: f64) -> Tolerance {
    // Quotients may be huge, but sums are not.
    let largest = largest.min(1000.0);
    match dtype {
        Dtype::F16 => Tolerance { absolute: 2f64.powi(-20), relative: 2f64.powi(-10) },
        Dtype::Bf16 => Tolerance { absolute: 2f64.powi(-20), relative: 2f64.powi(-7) },
        Dtype::F32 => Tolerance { absolute: 2e-6 * largest, relative: 1e-5 },
        Dtype::F64 => Tolerance { absolute: 1e-12 * largest, relative: 1e-11 },
        _ => Tolerance::EXACT,
    }
}

/// A function `@main` of one op, or of one and another on its result, and its inputs.
pub fn program(seed: u64) -> (String, Vec<Input>) {
    let mut g = Shapes { rng: Rng::new(seed), text: Program::new() };
    let made = match g.rng.below(12) {
        0 | 1 => g.pointwise(),
        2 => g.comparison(),
        3 => g.function(),
        4 | 5 => g.reduction(),
        6 | 7 => g.product(),
        8 => g.window(),
        9 => g.moved(),
        10 => g.cast(),
        _ => g.softmax(),
    };
    g.text.finish(&[&made])
}

struct Shapes {
    rng: Rng,
    text: Program,
}

impl Shapes {
    fn flip(&mut self) -> bool {
        self.rng.below(2) == 0
    }
    fn size(&mut self) -> usize {
        *self.rng.pick(&SIZES)
    }
    fn shape(&mut self, rank: usize) -> Vec<usize> {
        loop {
            let shape: Vec<_> = (0..rank).map(|_| self.size()).collect();
            if shape.iter().product::<usize>() <= MAX_ELEMENTS {
                return shape;
            }
        }
    }
    fn float(&mut self) -> Dtype {
        *self.rng.pick(&FLOATS)
    }
    fn integer(&mut self) -> Dtype {
        *self.rng.pick(&INTEGERS)
    }
    fn number(&mut self) -> Dtype {
        if self.flip() { self.float() } else { self.integer() }
    }

    /// An operand with special values: an input, or a part of one.
    fn operand(&mut self, dtype: Dtype, shape: &[usize]) -> Value {
        self.operand_of(Input::new(dtype, shape).special())
    }
    /// One whose sums and products are exact in 16 bits.
    fn exact_operand(&mut self, dtype: Dtype, shape: &[usize]) -> Value {
        let input = Input::new(dtype, shape).special();
        self.operand_of(if matches!(dtype, Dtype::F16 | Dtype::Bf16) { input.in_halves() } else { input })
    }
    fn operand_of(&mut self, input: Input) -> Value {
        let shape = input.shape.clone();
        match self.rng.below(3) {
            0 if !shape.is_empty() => self.part_of(input, &shape),
            // Unsigned types have no arithmetic: their bits are taken.
            1 if matches!(input.dtype, Dtype::Int(8..)) => {
                let to = input.dtype;
                let dtype = to.int_width().map_or(to, Dtype::Unsigned);
                let x = self.text.input_from(Input { dtype, ..input });
                let text = format!("tensor.bitcast {} : {} to {}", x.name, x.ty(), tensor(to, &shape));
                self.text.op(to, &shape, &text)
            }
            _ => self.text.input_from(input),
        }
    }
    /// A slice of a larger input, of a stride in one dimension.
    fn part_of(&mut self, input: Input, shape: &[usize]) -> Value {
        let (full, at) = self.room(shape);
        let x = self.text.input_from(Input { shape: full, ..input });
        let to = tensor(x.dtype, shape);
        self.text.op(x.dtype, shape, &format!("tensor.extract_slice {}{at} : {} to {to}", x.name, x.ty()))
    }
    /// A larger shape, and the place of `shape` in it.
    fn room(&mut self, shape: &[usize]) -> (Vec<usize>, String) {
        let strided = self.rng.below(shape.len() as u64) as usize;
        let stride = |d: usize, by: u64| if d == strided { 1 + by as usize } else { 1 };
        let strides: Vec<_> = (0..shape.len()).map(|d| stride(d, self.rng.below(3))).collect();
        let offsets: Vec<_> = shape.iter().map(|_| self.rng.below(3) as usize).collect();
        // MLIR wants an offset within the extent even of a slice without elements.
        let extent = |d: usize| shape[d].saturating_sub(1) * strides[d] + 1;
        let full = (0..shape.len()).map(|d| offsets[d] + extent(d) + self.rng.below(2) as usize).collect();
        (full, format!("[{}] [{}] [{}]", list(&offsets), list(shape), list(&strides)))
    }

    /// Some of `dims` in any order.
    fn some_of(&mut self, dims: usize) -> Vec<usize> {
        let mut kept: Vec<_> = (0..dims).filter(|_| self.rng.below(3) > 0).collect();
        if self.flip() {
            kept.reverse();
        }
        kept
    }
    /// Of two operands, the second with some of the dimensions of the first in any order.
    fn pair(&mut self, dtype: Dtype) -> (Value, Value, String) {
        let rank = self.rng.below(5) as usize;
        let shape = self.shape(rank);
        let kept = self.some_of(rank);
        let small: Vec<_> = kept.iter().map(|d| shape[*d]).collect();
        let (x, y) = (self.operand(dtype, &shape), self.operand(dtype, &small));
        (x, y, map(&kept))
    }
    fn over(&mut self, to: Dtype, (x, y, of_y): &(Value, Value, String), body: &str) -> Value {
        let all: Vec<_> = (0..x.shape().len()).collect();
        let out = self.text.empty(to, x.shape());
        let loops = all.iter().map(|d| format!("d{d}")).collect::<Vec<_>>().join(" ");
        self.text.generic(&loops, &[(x, &map(&all)), (y, of_y)], (&out, &map(&all)), body)
    }

    fn pointwise(&mut self) -> Value {
        let dtype = if self.rng.below(8) == 0 { BIT } else { self.number() };
        let operands = self.pair(dtype);
        let body = match dtype {
            BIT => format!("%s = arith.{} %a, %b : i1", self.rng.pick(&["andi", "ori", "xori"])),
            _ if dtype.is_float() => match *self.rng.pick(&FLOAT_OPS) {
                // A CPU without fused multiplications has no remainder of f64.
                "remf" if dtype == Dtype::F64 => format!("%s = arith.negf %a : {dtype}"),
                "copysign" => format!("%s = math.copysign %a, %b : {dtype}"),
                op => format!("%s = arith.{op} %a, %b : {dtype}"),
            },
            _ => match self.rng.below(6) {
                0 => self.shift(dtype),
                1 => format!("%s = math.{} %a : {dtype}", self.rng.pick(&["ctpop", "ctlz", "cttz", "absi"])),
                _ => format!("%s = arith.{} %a, %b : {dtype}", self.rng.pick(&INTEGER_OPS)),
            },
        };
        self.over(dtype, &operands, &body)
    }
    fn shift(&mut self, dtype: Dtype) -> String {
        let (op, last) = (*self.rng.pick(&["shli", "shrsi", "shrui"]), dtype.int_width().unwrap_or(1) - 1);
        format!(
            "%k = arith.constant {last} : {dtype}; %n = arith.andi %b, %k : {dtype}; %s = arith.{op} %a, %n : {dtype}"
        )
    }
    /// As bits, or to select.
    fn comparison(&mut self) -> Value {
        let dtype = self.number();
        let operands = self.pair(dtype);
        let compare = if dtype.is_float() {
            format!("arith.cmpf {}", self.rng.pick(&FLOAT_ORDERS))
        } else {
            format!("arith.cmpi {}", self.rng.pick(&INTEGER_ORDERS))
        };
        if self.flip() {
            return self.over(BIT, &operands, &format!("%s = {compare}, %a, %b : {dtype}"));
        }
        let body = format!("%c = {compare}, %a, %b : {dtype}; %s = arith.select %c, %b, %a : {dtype}");
        self.over(dtype, &operands, &body)
    }
    fn function(&mut self) -> Value {
        let dtype = self.float();
        let rank = self.rng.below(4) as usize;
        let shape = self.shape(rank);
        let width = *self.rng.pick(&[1.0, 6.0]);
        let range = |shape: &[usize]| Input::new(dtype, shape).within(-width, width).special();
        let (x, y) = (self.operand_of(range(&shape)), self.operand_of(range(&shape)));
        let all: Vec<_> = (0..rank).collect();
        let body = match *self.rng.pick(&FUNCTIONS) {
            name @ ("powf" | "atan2") => format!("%s = math.{name} %a, %b : {dtype}"),
            name => format!("%s = math.{name} %a : {dtype}"),
        };
        self.over(dtype, &(x, y, map(&all)), &body)
    }

    fn reduction(&mut self) -> Value {
        let (dtype, rank) = (self.number(), 1 + self.rng.below(4) as usize);
        let shape = self.shape(rank);
        let x = self.exact_operand(dtype, &shape);
        let kept = self.some_of(rank);
        let (op, init) = match dtype.is_float() {
            true => *self.rng.pick(&[
                ("addf", "0.5"),
                ("maximumf", "-1000.0"),
                ("minimumf", "1000.0"),
                ("maxnumf", "-1000.0"),
                ("minnumf", "1000.0"),
            ]),
            false => *self.rng.pick(&[
                ("addi", "3"),
                ("muli", "1"),
                ("maxsi", "-100"),
                ("minui", "-1"),
                ("xori", "0"),
                ("andi", "-1"),
            ]),
        };
        let to: Vec<_> = kept.iter().map(|d| shape[*d]).collect();
        let init = self.text.fill(dtype, &to, init);
        let loops: Vec<_> =
            (0..rank).map(|d| if kept.contains(&d) { format!("d{d}") } else { format!("d{d}!") }).collect();
        let all: Vec<_> = (0..rank).collect();
        let body = format!("%s = arith.{op} %o, %a : {dtype}");
        self.text.generic(&loops.join(" "), &[(&x, &map(&all))], (&init, &map(&kept)), &body)
    }

    /// A product of matrices or of batches of them, each operand as it is or transposed, perhaps with a sum after it.
    fn product(&mut self) -> Value {
        let (batch, m, n, k) = loop {
            let batch = if self.rng.below(3) == 0 { Some(self.size().min(5)) } else { None };
            let (m, n, k) = (self.size(), self.size(), self.size());
            if batch.unwrap_or(1) * m * n * k <= MAX_WORK {
                break (batch, m, n, k);
            }
        };
        let (from, to) = self.product_types();
        let at = |names: [&str; 2], sizes: [usize; 2], turned: bool| {
            let (mut names, mut sizes) = (names.to_vec(), sizes.to_vec());
            if turned {
                names.reverse();
                sizes.reverse();
            }
            if let Some(batch) = batch {
                names.insert(0, "b");
                sizes.insert(0, batch);
            }
            (names.join(", "), sizes)
        };
        let (of_x, x) = at(["m", "k"], [m, k], self.flip());
        let (of_y, y) = at(["k", "n"], [k, n], self.flip());
        let (of_out, out) = at(["m", "n"], [m, n], false);
        let (x, y) = (self.exact_operand(from, &x), self.exact_operand(from, &y));
        let zero = self.text.zeros(to, &out);
        let loops = format!("{}m n k!", if batch.is_some() { "b " } else { "" });
        let body = self.multiply_add(from, to);
        let made = self.text.generic(&loops, &[(&x, &of_x), (&y, &of_y)], (&zero, &of_out), &body);
        if self.flip() {
            return made;
        }
        let bias = self.exact_operand(to, &[n]);
        let op = if to.is_float() { "addf" } else { "addi" };
        self.text.pointwise(to, &[&made, &bias], &format!("%s = arith.{op} %a, %b : {to}"))
    }
    fn product_types(&mut self) -> (Dtype, Dtype) {
        let (word, number) = (Dtype::Int(32), self.number());
        match self.rng.below(6) {
            0 | 1 => (Dtype::Int(8), word),
            2 => (Dtype::Int(16), word),
            3 => (*self.rng.pick(&FLOATS[..2]), Dtype::F32),
            _ => (number, number),
        }
    }
    /// Multiplies in the wider type, and adds.
    fn multiply_add(&mut self, from: Dtype, to: Dtype) -> String {
        let kind = if to.is_float() { "f" } else { "i" };
        let sum =
            |a: &str, b: &str| format!("%p = arith.mul{kind} {a}, {b} : {to}; %s = arith.add{kind} %o, %p : {to}");
        if from == to {
            return sum("%a", "%b");
        }
        let mut wide = |x: &str| {
            let how = if to.is_float() { "extf" } else { *self.rng.pick(&["extsi", "extui"]) };
            format!("%{x}{x} = arith.{how} %{x} : {from} to {to}; ")
        };
        format!("{}{}{}", wide("a"), wide("b"), sum("%aa", "%bb"))
    }

    /// A convolution, of all channels or of each, or a pool, along one dimension with strides and dilations.
    fn window(&mut self) -> Value {
        let dtype = *self.rng.pick(&[Dtype::F32, Dtype::F64, Dtype::F32, Dtype::Int(32), Dtype::Bf16, Dtype::F16]);
        let (stride, dilation) = (1 + self.rng.below(3) as usize, 1 + self.rng.below(3) as usize);
        let (b, c, f) = (1 + self.rng.below(3) as usize, self.size().min(37), self.size().min(19));
        let (lines, taps) = (self.size().clamp(1, 37), 1 + self.rng.below(5) as usize);
        let long = (lines - 1) * stride + (taps - 1) * dilation + 1 + self.rng.below(2) as usize;
        let x = self.exact_operand(dtype, &[b, long, c]);
        let of_x = format!("b, i * {stride} + r * {dilation}, c");
        let multiply_add = self.multiply_add(dtype, dtype);
        let (is_float, kind) = (dtype.is_float(), self.rng.below(3));
        match kind {
            0 => {
                let (y, out) = (self.exact_operand(dtype, &[taps, c, f]), self.text.zeros(dtype, &[b, lines, f]));
                let operands = [(&x, &*of_x), (&y, "r, c, f")];
                self.text.generic("b i f r! c!", &operands, (&out, "b, i, f"), &multiply_add)
            }
            1 => {
                let (y, out) = (self.exact_operand(dtype, &[taps, c]), self.text.zeros(dtype, &[b, lines, c]));
                self.text.generic("b i c r!", &[(&x, &of_x), (&y, "r, c")], (&out, "b, i, c"), &multiply_add)
            }
            _ => {
                let window = self.text.empty(dtype, &[taps]);
                let least = if is_float { "-1000.0" } else { "-1000" };
                let out = self.text.fill(dtype, &[b, lines, c], least);
                let op = if is_float { "maximumf" } else { "maxsi" };
                let body = format!("%s = arith.{op} %o, %a : {dtype}");
                self.text.generic("b i c r!", &[(&x, &of_x), (&window, "r")], (&out, "b, i, c"), &body)
            }
        }
    }

    /// A pad, an insertion with strides, a transposition or a concatenation.
    fn moved(&mut self) -> Value {
        let (dtype, rank) = (self.number(), 1 + self.rng.below(3) as usize);
        let shape = self.shape(rank);
        let x = self.operand(dtype, &shape);
        let literal = if dtype.is_float() { "0.25" } else { "7" };
        match self.rng.below(4) {
            0 => {
                let mut pads = || shape.iter().map(|_| self.rng.below(4) as i64).collect::<Vec<_>>();
                let (low, high) = (pads(), pads());
                let to: Vec<_> = (0..rank).map(|d| shape[d] + (low[d] + high[d]) as usize).collect();
                let value = self.text.constant(dtype, literal);
                self.text.op(dtype, &to, &pad_text(&x, &value, (&low, &high), &to))
            }
            1 => {
                let (full, at) = self.room(&shape);
                let into = if self.flip() { self.text.fill(dtype, &full, literal) } else { self.operand(dtype, &full) };
                let text =
                    format!("tensor.insert_slice {} into {}{at} : {} into {}", x.name, into.name, x.ty(), into.ty());
                self.text.op(dtype, &full, &text)
            }
            2 => {
                let turned: Vec<_> = (0..rank).rev().collect();
                let to: Vec<_> = turned.iter().map(|d| shape[*d]).collect();
                let out = self.text.empty(dtype, &to);
                let order = format!("permutation = [{}]", list(&turned));
                self.text.named_untyped(monopour_ir::ops::linalg::TRANSPOSE, &[&x], &out, &order)
            }
            _ => {
                let dim = self.rng.below(rank as u64) as usize;
                let (mut other, mut to) = (shape.clone(), shape);
                other[dim] = self.size().min(5);
                to[dim] += other[dim];
                let y = self.operand(dtype, &other);
                let (types, result) = (format!("({}, {})", x.ty(), y.ty()), tensor(dtype, &to));
                let text = format!("tensor.concat dim({dim}) {}, {} : {types} -> {result}", x.name, y.name);
                self.text.op(dtype, &to, &text)
            }
        }
    }

    /// To another type, to the bits, or to the class of a float.
    fn cast(&mut self) -> Value {
        let (from, rank) = (self.number(), 1 + self.rng.below(3) as usize);
        let shape = self.shape(rank);
        let bits = (from.size_bytes() * 8) as u32;
        if from.is_float() && self.rng.below(3) == 0 {
            let x = self.operand(from, &shape);
            if self.flip() {
                let to = Dtype::Int(bits);
                return self.text.pointwise(to, &[&x], &format!("%s = arith.bitcast %a : {from} to {to}"));
            }
            let test = *self.rng.pick(&["isnan", "isinf", "isfinite", "isnormal"]);
            return self.text.pointwise(BIT, &[&x], &format!("%s = math.{test} %a : {from}"));
        }
        let others: Vec<_> = FLOATS.into_iter().chain(INTEGERS).filter(|t| *t != from).collect();
        let to = *self.rng.pick(&others);
        let sign = if self.flip() { "s" } else { "u" };
        let op = match (from.is_float(), to.is_float()) {
            (true, true) if to.size_bytes() > from.size_bytes() => "extf".to_owned(),
            (true, true) if to.size_bytes() < from.size_bytes() => "truncf".to_owned(),
            // Between f16 and bf16 there is no conversion.
            (true, true) => return self.softmax(),
            (false, true) => format!("{sign}itofp"),
            (true, false) => format!("fpto{sign}i"),
            _ if to.size_bytes() > from.size_bytes() => format!("ext{sign}i"),
            _ => "trunci".to_owned(),
        };
        let input = Input::new(from, &shape);
        let low = if sign == "s" { -100.0 } else { 0.0 };
        let input = if op.starts_with("fpto") { input.within(low, 100.0) } else { input.special() };
        let x = self.operand_of(input);
        self.text.pointwise(to, &[&x], &format!("%s = arith.{op} %a : {from} to {to}"))
    }

    fn softmax(&mut self) -> Value {
        let rank = 1 + self.rng.below(3) as usize;
        let shape = self.shape(rank);
        let x = self.operand(Dtype::F32, &shape);
        crate::suite::softmax(&mut self.text, &x)
    }
}

/// `d2, d0`.
fn map(dims: &[usize]) -> String {
    dims.iter().map(|d| format!("d{d}")).collect::<Vec<_>>().join(", ")
}
