//! Random programs with undefined cases: indices out of range, divisors of zero, slices at data-dependent offsets.
//!
//! In kernels all of these are defined, and the evaluator follows that. In host code they end the run: the program is then
//! undefined for the evaluator, and a device must report a failed check. Integers are exact and floats are only moved, added
//! or halved, so that results agree within any tolerance.

use crate::host_tensor::Dtype;
use crate::random::Rng;
use crate::text::{Input, Program, Value, list, tensor};

const SIZES: [usize; 7] = [1, 2, 3, 7, 8, 17, 33];
const WIDTHS: [Dtype; 3] = [Dtype::Int(8), Dtype::Int(32), Dtype::Int(64)];
const DIVISIONS: [&str; 7] = ["divsi", "remsi", "divui", "remui", "floordivsi", "ceildivsi", "ceildivui"];

/// A function `@main` with about `ops` ops, and its inputs.
pub fn program(seed: u64, ops: usize) -> (String, Vec<Input>) {
    let mut g = Guards {
        rng: Rng::new(seed ^ 0x6a61_7264),
        text: Program::new(),
        ints: vec![],
        floats: vec![],
        slices: vec![],
    };
    g.int_input();
    g.float_input();
    for _ in 0..ops {
        g.op();
    }
    let last = g.floats.last().into_iter().chain(g.ints.last());
    let mut results: Vec<Value> = last.cloned().collect();
    for slice in &g.slices {
        if results.iter().all(|result| result.name != slice.name) {
            results.push(slice.clone());
        }
    }
    g.text.finish(&results.iter().collect::<Vec<_>>())
}

struct Guards {
    rng: Rng,
    text: Program,
    ints: Vec<Value>,
    floats: Vec<Value>,
    /// Also results: the evaluator's preparation drops unused values, and with them what ends the run.
    slices: Vec<Value>,
}

impl Guards {
    fn shape(&mut self) -> Vec<usize> {
        (0..1 + self.rng.below(2)).map(|_| *self.rng.pick(&SIZES)).collect()
    }
    fn int_input(&mut self) -> Value {
        let (dtype, shape) = (*self.rng.pick(&WIDTHS), self.shape());
        self.int_input_of(dtype, &shape)
    }
    /// Few different numbers, so that zeros and equal pairs are common.
    fn int_input_of(&mut self, dtype: Dtype, shape: &[usize]) -> Value {
        let value = self.text.input_within(dtype, shape, -5.0, 12.0);
        self.ints.push(value.clone());
        value
    }
    fn float_input(&mut self) -> Value {
        let shape = self.shape();
        let value = self.text.f32(&shape);
        self.floats.push(value.clone());
        value
    }
    fn int(&mut self) -> Value {
        self.rng.pick(&self.ints).clone()
    }
    fn float(&mut self) -> Value {
        self.rng.pick(&self.floats).clone()
    }
    /// Another value of that type, which may be an input.
    fn like(&mut self, x: &Value) -> Value {
        let fitting: Vec<_> = self.ints.iter().filter(|v| v.ty() == x.ty()).cloned().collect();
        if fitting.len() < 2 { self.int_input_of(x.dtype, x.shape()) } else { self.rng.pick(&fitting).clone() }
    }

    fn op(&mut self) {
        match self.rng.below(12) {
            0 => self.arithmetic(),
            1..=3 => self.division(),
            4 | 5 => self.lookup(),
            6 => self.neighbour(),
            7 => self.cast(),
            8 => self.gather(),
            9 => self.scatter(),
            10 => self.halves(),
            _ if self.rng.below(2) == 0 && self.rng.below(2) == 0 => self.placed(),
            _ if self.rng.below(3) == 0 => self.place(),
            _ => self.lookup(),
        }
    }

    fn arithmetic(&mut self) {
        let x = self.int();
        let y = self.like(&x);
        let op = *self.rng.pick(&["addi", "subi", "muli", "maxsi", "minsi", "xori"]);
        let r = self.text.pointwise(x.dtype, &[&x, &y], &format!("%s = arith.{op} %a, %b : {}", x.dtype));
        self.ints.push(r);
    }
    /// In a body, or on whole tensors.
    fn division(&mut self) {
        let x = self.int();
        let y = self.like(&x);
        let op = *self.rng.pick(&DIVISIONS);
        let r = if self.rng.below(2) == 0 {
            self.text.op(x.dtype, x.shape(), &format!("arith.{op} {}, {} : {}", x.name, y.name, x.ty()))
        } else {
            self.text.pointwise(x.dtype, &[&x, &y], &format!("%s = arith.{op} %a, %b : {}", x.dtype))
        };
        self.ints.push(r);
    }
    fn cast(&mut self) {
        let x = self.int();
        let to = *self.rng.pick(&WIDTHS);
        let bits = |dtype| if let Dtype::Int(bits) = dtype { bits } else { 64 };
        let op = match bits(to).cmp(&bits(x.dtype)) {
            std::cmp::Ordering::Less => "trunci",
            std::cmp::Ordering::Equal => return self.division(),
            std::cmp::Ordering::Greater if self.rng.below(2) == 0 => "extui",
            std::cmp::Ordering::Greater => "extsi",
        };
        let r = self.text.pointwise(to, &[&x], &format!("%s = arith.{op} %a : {} to {to}", x.dtype));
        self.ints.push(r);
    }
    /// Gathers from a float or integer table, at indices from data in every dimension.
    fn lookup(&mut self) {
        let at = self.int();
        let of_ints = self.rng.below(4) == 0;
        let table = if of_ints { self.int() } else { self.float() };
        let others: Vec<Value> = (1..table.shape().len()).map(|_| self.like(&at)).collect();
        let ins: Vec<&Value> = [&at].into_iter().chain(&others).collect();
        let names: Vec<String> = ('a'..).take(ins.len()).map(|c| c.to_string()).collect();
        let casts: String =
            names.iter().map(|n| format!("%i{n} = arith.index_cast %{n} : {} to index; ", at.dtype)).collect();
        let indices: Vec<String> = names.iter().map(|n| format!("%i{n}")).collect();
        let body = format!("{casts}%s = tensor.extract {}[{}] : {}", table.name, indices.join(", "), table.ty());
        let r = self.text.pointwise(table.dtype, &ins, &body);
        if of_ints { self.ints.push(r) } else { self.floats.push(r) }
    }
    /// An element at a distance in the last dimension, out of range at one end.
    fn neighbour(&mut self) {
        let x = self.float();
        let last = x.shape().len() - 1;
        let distance = 1 + self.rng.below(3);
        let op = *self.rng.pick(&["addi", "subi"]);
        let counters: String = (0..=last).map(|d| format!("%d{d} = linalg.index {d} : index; ")).collect();
        let before: String = (0..last).map(|d| format!("%d{d}, ")).collect();
        let body = format!(
            "{counters}%k = arith.constant {distance} : index; %n = arith.{op} %d{last}, %k : index; \
             %v = tensor.extract {}[{before}%n] : {}; %w = arith.addf %a, %v : f32; %h = arith.constant 0.5 : f32; \
             %s = arith.mulf %w, %h : f32",
            x.name,
            x.ty()
        );
        let r = self.text.pointwise(Dtype::F32, &[&x], &body);
        self.floats.push(r);
    }
    fn halves(&mut self) {
        let x = self.float();
        let r = self.text.pointwise(Dtype::F32, &[&x], "%h = arith.constant 0.5 : f32; %s = arith.mulf %a, %h : f32");
        self.floats.push(r);
    }
    /// Coordinates: a tensor of integers with a dimension of one element behind.
    fn coordinates(&mut self) -> Value {
        let of_one_dim: Vec<_> =
            self.ints.iter().filter(|v| v.shape().len() == 1 && v.dtype != Dtype::Int(8)).cloned().collect();
        let at = if of_one_dim.is_empty() {
            self.int_input_of(Dtype::Int(32), &[7])
        } else {
            self.rng.pick(&of_one_dim).clone()
        };
        let shape = [at.len(), 1];
        let to = tensor(at.dtype, &shape);
        let text =
            format!("tensor.expand_shape {} [[0, 1]] output_shape [{}] : {} into {to}", at.name, list(&shape), at.ty());
        self.text.op(at.dtype, &shape, &text)
    }
    fn gather(&mut self) {
        let (table, at) = (self.float(), self.coordinates());
        let dim = self.rng.below(table.shape().len() as u64) as usize;
        let mut shape = vec![at.shape()[0]];
        shape.extend(table.shape().iter().enumerate().map(|(d, size)| if d == dim { 1 } else { *size }));
        let to = tensor(Dtype::F32, &shape);
        let text = format!(
            "tensor.gather {}[{}] gather_dims([{dim}]) : ({}, {}) -> {to}",
            table.name,
            at.name,
            table.ty(),
            at.ty()
        );
        let gathered = self.text.op(Dtype::F32, &shape, &text);
        let flat = vec![shape.iter().product::<usize>()];
        let groups = list(&(0..shape.len()).collect::<Vec<_>>());
        let text =
            format!("tensor.collapse_shape {} [[{groups}]] : {to} into {}", gathered.name, tensor(Dtype::F32, &flat));
        let r = self.text.op(Dtype::F32, &flat, &text);
        self.floats.push(r);
    }
    fn scatter(&mut self) {
        let (into, at) = (self.float(), self.coordinates());
        let dim = self.rng.below(into.shape().len() as u64) as usize;
        let mut shape = vec![at.shape()[0]];
        shape.extend(into.shape().iter().enumerate().filter(|(d, _)| *d != dim).map(|(_, size)| *size));
        let updates = self.text.f32(&shape);
        let text = format!(
            "tensor.scatter {} into {}[{}] scatter_dims([{dim}]) unique : ({}, {}, {}) -> {}",
            updates.name,
            into.name,
            at.name,
            updates.ty(),
            into.ty(),
            at.ty(),
            into.ty()
        );
        let r = self.text.op(Dtype::F32, into.shape(), &text);
        self.floats.push(r);
    }
    /// Host code: a number divided by an element.
    fn offset(&mut self) -> Value {
        let by = self.int();
        let zero = self.text.index(0);
        let zeros = vec![zero.name.clone(); by.shape().len()].join(", ");
        let element = self.text.scalar_op(by.dtype, &format!("tensor.extract {}[{zeros}] : {}", by.name, by.ty()));
        let limit = self.text.constant(by.dtype, &(1 + self.rng.below(9)).to_string());
        let op = *self.rng.pick(&["divsi", "remsi"]);
        let quotient =
            self.text.scalar_op(by.dtype, &format!("arith.{op} {}, {} : {}", limit.name, element.name, by.dtype));
        self.text.scalar_op(Dtype::Index, &format!("arith.index_cast {} : {} to index", quotient.name, by.dtype))
    }
    /// Host code: an element, divided by another, is the offset of a slice.
    fn place(&mut self) {
        let x = self.float();
        // A slice of everything is folded to its source, whatever its offset.
        if x.shape()[0] < 2 {
            return self.halves();
        }
        let at = self.offset();
        let mut shape = x.shape().to_vec();
        shape[0] = 1 + self.rng.below(shape[0] as u64 - 1) as usize;
        let mut offsets = vec!["0".to_owned(); shape.len()];
        offsets[0] = at.name;
        let ones = vec!["1"; shape.len()].join(", ");
        let text = format!(
            "tensor.extract_slice {}[{}] [{}] [{ones}] : {} to {}",
            x.name,
            offsets.join(", "),
            list(&shape),
            x.ty(),
            tensor(Dtype::F32, &shape)
        );
        let r = self.text.op(Dtype::F32, &shape, &text);
        self.slices.push(r.clone());
        self.floats.push(r);
    }
    /// What an op makes is inserted in a larger tensor at such an offset: where it is computed in its place, the check of the
    /// insertion comes late.
    fn placed(&mut self) {
        let x = self.float();
        let at = self.offset();
        let half = "%h = arith.constant 0.5 : f32; %s = arith.mulf %a, %h : f32";
        let made = self.text.pointwise(Dtype::F32, &[&x], half);
        let mut shape = x.shape().to_vec();
        shape[0] += self.rng.below(4) as usize;
        let into = self.text.f32(&shape);
        let into = self.text.pointwise(Dtype::F32, &[&into], half);
        let mut offsets = vec!["0".to_owned(); shape.len()];
        offsets[0] = at.name;
        let ones = vec!["1"; shape.len()].join(", ");
        let text = format!(
            "tensor.insert_slice {} into {}[{}] [{}] [{ones}] : {} into {}",
            made.name,
            into.name,
            offsets.join(", "),
            list(x.shape()),
            x.ty(),
            into.ty()
        );
        let r = self.text.op(Dtype::F32, &shape, &text);
        self.slices.push(r.clone());
        self.floats.push(r);
    }
}
