//! Random graphs of linalg and tensor ops with loops and conditions, the same for the same seed.
//!
//! [`Features`] add element types, choices, and dynamic sizes.
//!
//! Values stay in a range: each has a bound, and one that grows beyond a limit is scaled down. No divisor may be zero, no
//! comparison of computed floats selects an element, and every element that is read was written; so all devices must agree
//! with the evaluator within a tolerance.

mod control;
mod dynamic;
mod moves;
mod numbers;
mod types;

use self::dynamic::Sized;
use crate::host_tensor::Dtype;
use crate::random::Rng;
use crate::text::{Input, Program, Value, list, tensor};
use monopour_ir::ops;

/// Values above this bound are scaled down to 1.
const LARGEST: f64 = 16.0;
/// Most elements of a value.
const MAX_ELEMENTS: usize = 3000;
const SIZES: [usize; 11] = [1, 2, 3, 4, 5, 7, 8, 9, 13, 17, 33];

/// Contents of graphs beyond f32 tensors of static sizes, loops and conditions.
#[derive(Clone, Copy, Debug)]
pub struct Features {
    /// Other element types.
    pub types: &'static [Dtype],
    /// Conditions that select existing values, inputs among them.
    pub choices: bool,
    /// Tensors of dynamic sizes.
    pub sizes: bool,
    /// Slices of data-dependent size as results.
    pub parts_as_results: bool,
    /// Tensors that grow in a loop.
    pub growing: bool,
    /// Collapses of dynamic dimensions.
    pub collapsing: bool,
    /// Gathers of rows out of range.
    pub bad_indices: bool,
    /// Explicit copies, reshapes by data, switches, checks.
    pub moves: bool,
}

impl Features {
    /// None of them.
    pub const NONE: Self = Self {
        types: &[],
        choices: false,
        sizes: false,
        parts_as_results: false,
        growing: false,
        collapsing: false,
        bad_indices: false,
        moves: false,
    };
    /// All of them, in every type.
    pub const EVERYTHING: Self = Self {
        types: &[
            Dtype::F16,
            Dtype::Bf16,
            Dtype::F64,
            Dtype::Int(1),
            Dtype::Int(8),
            Dtype::Int(16),
            Dtype::Int(32),
            Dtype::Int(64),
            Dtype::Unsigned(8),
            Dtype::Unsigned(16),
            Dtype::Unsigned(32),
            Dtype::Unsigned(64),
        ],
        choices: true,
        sizes: true,
        parts_as_results: true,
        growing: true,
        collapsing: true,
        bad_indices: true,
        moves: true,
    };
}

/// A function `@main` of f32 tensors and scalars with about `ops` ops, and its inputs.
pub fn graph(seed: u64, ops: usize) -> (String, Vec<Input>) {
    graph_with(seed, ops, Features::NONE)
}

/// As [`graph`], with these features.
pub fn graph_with(seed: u64, ops: usize, features: Features) -> (String, Vec<Input>) {
    let (rng, text) = (Rng::new(seed), Program::new());
    let mut g = Graph { rng, text, values: vec![], sized: vec![], typed: vec![], depth: 0, features };
    for _ in 0..1 + g.rng.below(2) {
        let rank = 1 + g.rng.below(3) as usize;
        let shape = g.shape(rank);
        g.input(&shape);
    }
    for _ in 0..ops {
        g.any_op();
    }
    let results = 1 + g.rng.below(2) as usize;
    let mut last: Vec<_> = g.values.iter().rev().take(results).map(|v| (v.value.name.clone(), v.value.ty())).collect();
    let returned = g.sized.iter().rev().filter(|v| features.parts_as_results || !v.is_part);
    last.extend(returned.take(2).map(|v| (v.name.clone(), v.ty())));
    last.extend(g.typed.iter().rev().take(1).map(|v| (v.name.clone(), v.ty())));
    g.text.finish_with(&last)
}

#[derive(Clone)]
struct Bounded {
    value: Value,
    /// Largest magnitude of an element.
    bound: f64,
}

struct Graph {
    rng: Rng,
    text: Program,
    values: Vec<Bounded>,
    /// Tensors of dynamic sizes.
    sized: Vec<Sized>,
    /// Tensors of other types.
    typed: Vec<Value>,
    features: Features,
    /// Loops and conditions around the current place.
    depth: usize,
}

impl Graph {
    fn shape(&mut self, rank: usize) -> Vec<usize> {
        loop {
            let shape: Vec<_> = (0..rank).map(|_| *self.rng.pick(&SIZES)).collect();
            if shape.iter().product::<usize>() <= MAX_ELEMENTS {
                return shape;
            }
        }
    }
    fn input(&mut self, shape: &[usize]) -> Bounded {
        let value = self.text.f32(shape);
        // An input is visible everywhere, so it joins the values of the outer region.
        let input = Bounded { value, bound: 1.0 };
        self.values.insert(0, input.clone());
        input
    }
    fn pick(&mut self) -> Bounded {
        // Late values are likelier: graphs are deep rather than wide.
        let late = self.values.len().saturating_sub(3);
        if self.rng.below(2) == 0 {
            self.rng.pick(&self.values[late..]).clone()
        } else {
            self.rng.pick(&self.values).clone()
        }
    }
    /// A value for which `fits` holds; otherwise an input of that shape.
    fn pick_where(&mut self, shape: &[usize], fits: impl Fn(&[usize]) -> bool) -> Bounded {
        let fitting: Vec<_> = self.values.iter().filter(|v| fits(v.value.shape())).cloned().collect();
        if fitting.is_empty() { self.input(shape) } else { self.rng.pick(&fitting).clone() }
    }
    fn push(&mut self, value: Value, bound: f64) -> Bounded {
        let pushed = if bound > LARGEST {
            let body = format!("%k = arith.constant {:.12} : f32; %s = arith.mulf %a, %k : f32", 1.0 / bound);
            Bounded { value: self.text.pointwise(Dtype::F32, &[&value], &body), bound: 1.0 }
        } else {
            Bounded { value, bound }
        };
        self.values.push(pushed.clone());
        pushed
    }

    /// An op of those that the features allow.
    fn any_op(&mut self) {
        let on = [self.features.choices, self.features.sizes, !self.features.types.is_empty(), self.features.moves];
        match self.rng.below(if on.contains(&true) { 13 } else { 1 }) {
            0..=4 if on[2] => self.typed_op(),
            5 if on[0] => self.choice(),
            6 | 7 if on[1] => self.maybe_sized(),
            8 if on[3] => self.move_op(),
            _ => self.op(),
        }
    }
    fn maybe_sized(&mut self) {
        if self.rng.below(8) == 0 && self.features.growing {
            let x = self.pick();
            return self.forget_sizes(&x);
        }
        self.sized_op();
    }

    fn op(&mut self) {
        match self.rng.below(18) {
            0 | 1 => self.unary(),
            2 | 3 => self.binary(),
            4 => self.broadcast(),
            5 => self.reduce(),
            6 => self.product(),
            7 => self.transpose(),
            8 => self.reshape(),
            9 => self.slice(),
            10 => self.insert(),
            11 => self.concat(),
            12 => self.pad(),
            13 => self.softmax(),
            14 => self.by_index(),
            15 => self.repeat(),
            16 => self.rows(),
            _ => self.condition(),
        }
    }

    fn unary(&mut self) {
        let x = self.pick();
        self.unary_of(&x);
    }
    fn unary_of(&mut self, x: &Bounded) -> Bounded {
        let (body, bound) = match self.rng.below(8) {
            0 => ("%s = math.tanh %a : f32", 1.0),
            1 => ("%s = math.absf %a : f32", x.bound),
            2 => ("%s = arith.negf %a : f32", x.bound),
            3 if x.bound <= 2.0 => ("%s = math.exp %a : f32", x.bound.exp()),
            4 => (
                "%m = math.absf %a : f32; %h = arith.constant 0.5 : f32; %n = arith.addf %m, %h : f32; %s = math.sqrt %n : f32",
                x.bound + 1.0,
            ),
            5 => ("%z = arith.constant 0.0 : f32; %s = arith.maximumf %a, %z : f32", x.bound),
            6 => (
                "%m = math.absf %a : f32; %u = arith.constant 1.0 : f32; %n = arith.addf %m, %u : f32; %s = arith.divf %a, %n : f32",
                1.0,
            ),
            _ => ("%h = arith.constant 0.5 : f32; %s = arith.mulf %a, %h : f32", x.bound),
        };
        let r = self.text.pointwise(Dtype::F32, &[&x.value], body);
        self.push(r, bound)
    }
    fn binary(&mut self) {
        let x = self.pick();
        self.binary_of(&x);
    }
    fn binary_of(&mut self, x: &Bounded) -> Bounded {
        let shape = x.value.shape().to_vec();
        let y = self.pick_where(&shape, |s| s == shape);
        let (op, bound) = match self.rng.below(5) {
            0 => ("addf", x.bound + y.bound),
            1 => ("subf", x.bound + y.bound),
            2 => ("mulf", x.bound * y.bound),
            3 => ("maximumf", x.bound.max(y.bound)),
            _ => ("minimumf", x.bound.max(y.bound)),
        };
        let r = self.text.pointwise(Dtype::F32, &[&x.value, &y.value], &format!("%s = arith.{op} %a, %b : f32"));
        self.push(r, bound)
    }
    /// The second operand has a subset of the dimensions of the first.
    fn broadcast(&mut self) {
        let x = self.pick();
        let shape = x.value.shape().to_vec();
        let kept: Vec<_> = (0..shape.len()).filter(|_| self.rng.below(2) == 0).collect();
        let small: Vec<_> = kept.iter().map(|d| shape[*d]).collect();
        let y = self.pick_where(&small, |s| s == small);
        let (loops, full) = dims(shape.len());
        let map = kept.iter().map(|d| format!("d{d}")).collect::<Vec<_>>().join(", ");
        let e = self.text.empty(Dtype::F32, &shape);
        let r = self.text.generic(
            &loops,
            &[(&x.value, &full), (&y.value, &map)],
            (&e, &full),
            "%s = arith.mulf %a, %b : f32",
        );
        self.push(r, x.bound * y.bound);
    }
    fn reduce(&mut self) {
        let x = self.pick();
        let shape = x.value.shape().to_vec();
        if shape.is_empty() {
            return self.unary();
        }
        let reduced: Vec<_> = (0..shape.len()).map(|_| self.rng.below(2) == 0).collect();
        let loops: Vec<_> = (0..shape.len()).map(|d| format!("d{d}{}", if reduced[d] { "!" } else { "" })).collect();
        let left: Vec<_> = (0..shape.len()).filter(|d| !reduced[*d]).collect();
        let out: Vec<_> = left.iter().map(|d| shape[*d]).collect();
        let map = left.iter().map(|d| format!("d{d}")).collect::<Vec<_>>().join(", ");
        let count = shape.iter().product::<usize>() / out.iter().product::<usize>().max(1);
        let (op, init, bound) = match self.rng.below(3) {
            0 => ("maximumf", "0xFF800000", x.bound),
            1 => ("minimumf", "0x7F800000", x.bound),
            _ => ("addf", "0.0", x.bound * count as f64),
        };
        let init = self.text.fill(Dtype::F32, &out, init);
        let (_, full) = dims(shape.len());
        let r = self.text.generic(
            &loops.join(" "),
            &[(&x.value, &full)],
            (&init, &map),
            &format!("%s = arith.{op} %o, %a : f32"),
        );
        self.push(r, bound);
    }
    /// A product of matrices, or a batch of them; the second operand may be transposed.
    fn product(&mut self) {
        let fitting: Vec<_> =
            self.values.iter().filter(|v| (2..=3).contains(&v.value.shape().len())).cloned().collect();
        if fitting.is_empty() {
            return self.binary();
        }
        let x = self.rng.pick(&fitting).clone();
        let shape = x.value.shape().to_vec();
        let (batch, m, k) = (shape[..shape.len() - 2].to_vec(), shape[shape.len() - 2], shape[shape.len() - 1]);
        let transposed = self.rng.below(2) == 0;
        let n = *self.rng.pick(&SIZES[..9]);
        let with = |a: usize, b: usize| [batch.as_slice(), &[a, b]].concat();
        let at = shape.len() - if transposed { 1 } else { 2 };
        let fits = |s: &[usize]| s.len() == shape.len() && s[..batch.len()] == batch[..] && s[at] == k;
        let y = self.pick_where(&if transposed { with(n, k) } else { with(k, n) }, fits);
        let n = y.value.shape()[shape.len() - if transposed { 2 } else { 1 }];
        if m * n * batch.iter().product::<usize>() > MAX_ELEMENTS {
            return self.unary();
        }
        let zero = self.text.zeros(Dtype::F32, &with(m, n));
        let b = if batch.is_empty() { "" } else { "b, " };
        let maps = [format!("{b}m, k"), format!("{b}{}", if transposed { "n, k" } else { "k, n" }), format!("{b}m, n")];
        let body = "%m = arith.mulf %a, %b : f32; %s = arith.addf %o, %m : f32";
        let loops = format!("{}m n k!", if batch.is_empty() { "" } else { "b " });
        let r = if !transposed && self.rng.below(2) == 0 {
            let op = if batch.is_empty() { ops::linalg::MATMUL } else { ops::linalg::BATCH_MATMUL };
            self.text.named(op, &[&x.value, &y.value], &zero)
        } else {
            self.text.generic(&loops, &[(&x.value, &maps[0]), (&y.value, &maps[1])], (&zero, &maps[2]), body)
        };
        self.push(r, x.bound * y.bound * k as f64);
    }
    fn transpose(&mut self) {
        let x = self.pick();
        let mut order: Vec<_> = (0..x.value.shape().len()).collect();
        if order.len() < 2 {
            return self.unary();
        }
        let (a, b) = (self.rng.below(order.len() as u64) as usize, self.rng.below(order.len() as u64) as usize);
        order.swap(a, b);
        order.rotate_left(self.rng.below(2) as usize);
        let to: Vec<_> = order.iter().map(|d| x.value.shape()[*d]).collect();
        let e = self.text.empty(Dtype::F32, &to);
        let r = self.text.named_untyped(
            ops::linalg::TRANSPOSE,
            &[&x.value],
            &e,
            &format!("permutation = [{}]", list(&order)),
        );
        self.push(r, x.bound);
    }
    /// Collapses two neighbouring dimensions, or expands one.
    fn reshape(&mut self) {
        let x = self.pick();
        let shape = x.value.shape().to_vec();
        if shape.is_empty() {
            return self.unary();
        }
        let at = self.rng.below(shape.len() as u64) as usize;
        let join = shape.len() > 1 && at + 1 < shape.len() && self.rng.below(2) == 0;
        let mut small = shape.clone();
        let (kind, to, wide) = if join {
            small.splice(at..=at + 1, [shape[at] * shape[at + 1]]);
            ("collapse", small, shape.len())
        } else {
            let factors: Vec<_> = (1..=shape[at]).filter(|f| shape[at].is_multiple_of(*f)).collect();
            let factor = *self.rng.pick(&factors);
            small.splice(at..=at, [factor, shape[at] / factor]);
            if small.len() > 4 {
                return self.unary();
            }
            let wide = small.len();
            ("expand", small, wide)
        };
        let mut groups: Vec<Vec<usize>> = (0..wide - 1).map(|d| if d < at { vec![d] } else { vec![d + 1] }).collect();
        groups[at] = vec![at, at + 1];
        let groups: Vec<_> = groups.iter().map(|g| format!("[{}]", list(g))).collect();
        let output = if join { String::new() } else { format!("output_shape [{}] ", list(&to)) };
        let (from, into) = (x.value.ty(), tensor(Dtype::F32, &to));
        let text = format!("tensor.{kind}_shape {} [{}] {output}: {from} into {into}", x.value.name, groups.join(", "));
        let r = self.text.op(Dtype::F32, &to, &text);
        self.push(r, x.bound);
    }
    /// Offsets, sizes and strides within a shape.
    fn place(&mut self, shape: &[usize]) -> (Vec<usize>, Vec<usize>, Vec<usize>) {
        let (mut offsets, mut sizes, mut strides) = (vec![], vec![], vec![]);
        for extent in shape {
            let stride = if self.rng.below(4) == 0 { 2 } else { 1 };
            let size = 1 + self.rng.below(extent.div_ceil(stride) as u64) as usize;
            let slack = extent - ((size - 1) * stride + 1);
            offsets.push(self.rng.below(slack as u64 + 1) as usize);
            sizes.push(size);
            strides.push(stride);
        }
        (offsets, sizes, strides)
    }
    fn slice(&mut self) {
        let x = self.pick();
        let (offsets, sizes, strides) = self.place(x.value.shape());
        let to = tensor(Dtype::F32, &sizes);
        let at = format!("[{}] [{}] [{}]", list(&offsets), list(&sizes), list(&strides));
        let text = format!("tensor.extract_slice {}{at} : {} to {to}", x.value.name, x.value.ty());
        let r = self.text.op(Dtype::F32, &sizes, &text);
        self.push(r, x.bound);
    }
    /// Inserts a value into a part of another or of a fill, or a part of a value back into it.
    fn insert(&mut self) {
        let into = self.pick();
        let into = match self.rng.below(3) {
            0 => Bounded { value: self.text.fill(Dtype::F32, into.value.shape(), "0.25"), bound: 1.0 },
            _ => into,
        };
        let (offsets, sizes, strides) = self.place(into.value.shape());
        let source = self.pick_where(&sizes, |s| s == sizes);
        let at = format!("[{}] [{}] [{}]", list(&offsets), list(&sizes), list(&strides));
        let text = format!(
            "tensor.insert_slice {} into {}{at} : {} into {}",
            source.value.name,
            into.value.name,
            source.value.ty(),
            into.value.ty()
        );
        let r = self.text.op(Dtype::F32, into.value.shape(), &text);
        self.push(r, into.bound.max(source.bound));
    }
    fn concat(&mut self) {
        let x = self.pick();
        let shape = x.value.shape().to_vec();
        if shape.is_empty() {
            return self.unary();
        }
        let dim = self.rng.below(shape.len() as u64) as usize;
        let without =
            |s: &[usize]| s.iter().enumerate().filter(|(d, _)| *d != dim).map(|(_, e)| *e).collect::<Vec<_>>();
        let rest = without(&shape);
        let y = self.pick_where(&shape, |s| s.len() == shape.len() && without(s) == rest);
        let mut to = shape.clone();
        to[dim] += y.value.shape()[dim];
        if to.iter().product::<usize>() > MAX_ELEMENTS {
            return self.unary();
        }
        let (a, b) = (&x.value, &y.value);
        let text = format!(
            "tensor.concat dim({dim}) {}, {} : ({}, {}) -> {}",
            a.name,
            b.name,
            a.ty(),
            b.ty(),
            tensor(Dtype::F32, &to)
        );
        let r = self.text.op(Dtype::F32, &to, &text);
        self.push(r, x.bound.max(y.bound));
    }
    fn pad(&mut self) {
        let x = self.pick();
        let shape = x.value.shape().to_vec();
        if shape.is_empty() {
            return self.unary();
        }
        // A pad may be negative, but one element must remain.
        let least = if self.features.moves { 1 } else { 0 };
        let low: Vec<_> = shape.iter().map(|_| self.rng.below(3 + least) as i64 - least as i64).collect();
        let pads = |g: &mut Self, (extent, low): (&usize, &i64)| {
            (g.rng.below(3 + least) as i64 - least as i64).max(1 - *extent as i64 - low)
        };
        let high: Vec<_> = shape.iter().zip(&low).map(|at| pads(self, at)).collect();
        let to: Vec<_> = shape.iter().zip(&low).zip(&high).map(|((s, l), h)| (*s as i64 + l + h) as usize).collect();
        if to.iter().product::<usize>() > MAX_ELEMENTS {
            return self.unary();
        }
        let literal = *self.rng.pick(&["0.0", "0.5"]);
        let value = self.text.constant(Dtype::F32, literal);
        let text = pad_text(&x.value, &value, (&low, &high), &to);
        let r = self.text.op(Dtype::F32, &to, &text);
        self.push(r, x.bound.max(1.0));
    }
    fn softmax(&mut self) {
        let x = self.pick();
        if x.value.shape().is_empty() {
            return self.unary();
        }
        let r = crate::suite::softmax(&mut self.text, &x.value);
        self.push(r, 1.0);
    }
    /// A body with `linalg.index`: a mask, or a read from elsewhere in an operand.
    fn by_index(&mut self) {
        let x = self.pick();
        let shape = x.value.shape().to_vec();
        let Some(last) = shape.len().checked_sub(1) else { return self.unary() };
        let index = format!("%i = linalg.index {last} : index; %k = arith.constant {} : index", shape[last]);
        if self.rng.below(2) == 0 {
            let body = format!(
                "{index}; %two = arith.constant 2 : index; %m = arith.remui %i, %two : index; %z = arith.constant 0 : index; \
                 %c = arith.cmpi eq, %m, %z : index; %n = arith.constant 0.125 : f32; %s = arith.select %c, %a, %n : f32"
            );
            let r = self.text.pointwise(Dtype::F32, &[&x.value], &body);
            self.push(r, x.bound.max(1.0));
        } else {
            let others: String = (0..last).map(|d| format!("%d{d} = linalg.index {d} : index; ")).collect();
            let indices: String = (0..last).map(|d| format!("%d{d}, ")).collect();
            let body = format!(
                "{others}{index}; %u = arith.constant 1 : index; %n = arith.addi %i, %u : index; %at = arith.remui %n, %k : index; \
                 %v = tensor.extract {}[{indices}%at] : {}; %s = arith.addf %a, %v : f32",
                x.value.name,
                x.value.ty()
            );
            let r = self.text.pointwise(Dtype::F32, &[&x.value], &body);
            self.push(r, 2.0 * x.bound);
        }
    }
}

/// Loops over this many dimensions, and their identity map.
fn dims(rank: usize) -> (String, String) {
    let names: Vec<_> = (0..rank).map(|d| format!("d{d}")).collect();
    (names.join(" "), names.join(", "))
}

/// `tensor.pad` with one value.
pub(crate) fn pad_text(x: &Value, value: &Value, (low, high): (&[i64], &[i64]), to: &[usize]) -> String {
    let numbers = |pads: &[i64]| pads.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let args: Vec<_> = (0..to.len()).map(|d| format!("%i{d}: index")).collect();
    format!(
        "tensor.pad {} low[{}] high[{}] {{\n  ^bb0({}):\n    tensor.yield {} : {}\n  }} : {} to {}",
        x.name,
        numbers(low),
        numbers(high),
        args.join(", "),
        value.name,
        x.dtype,
        x.ty(),
        tensor(x.dtype, to)
    )
}
