//! Tensors of random graphs of other types than f32, and their moves: slices, rows, pads, loops and selections. Computation
//! is in `numbers`.
//!
//! Integer arithmetic is exact and wraps. Floats stay within [-1, 1], and every op on them has a unique result, so that they
//! are exact too, and may be used in conditions.

use super::Graph;
use crate::host_tensor::Dtype;
use crate::text::{Value, list, tensor};
use monopour_ir::ops;

/// Of `%a` within [-1, 1], its magnitude `%m`, and one half.
const FUNCTIONS_OF_DOUBLE: [&str; 22] = [
    "%s = math.tanh %a : f64",
    "%s = math.sin %a : f64",
    "%s = math.cos %a : f64",
    "%t = math.tan %a : f64; %s = arith.mulf %t, %h : f64",
    "%n = arith.negf %m : f64; %s = math.exp %n : f64",
    "%n = arith.negf %m : f64; %s = math.exp2 %n : f64",
    "%n = arith.negf %m : f64; %s = math.expm1 %n : f64",
    "%s = math.log1p %m : f64",
    "%n = arith.addf %m, %h : f64; %s = math.log %n : f64",
    "%n = arith.addf %m, %h : f64; %s = math.log2 %n : f64",
    "%n = arith.addf %m, %h : f64; %s = math.log10 %n : f64",
    "%t = math.sinh %a : f64; %s = arith.mulf %t, %h : f64",
    "%t = math.cosh %a : f64; %s = arith.mulf %t, %h : f64",
    "%t = math.atan %a : f64; %s = arith.mulf %t, %h : f64",
    "%t = math.asinh %a : f64; %s = arith.mulf %t, %h : f64",
    "%n = arith.mulf %a, %h : f64; %s = math.asin %n : f64",
    "%n = arith.mulf %a, %h : f64; %s = math.atanh %n : f64",
    "%n = arith.addf %m, %h : f64; %t = math.atan2 %a, %n : f64; %s = arith.mulf %t, %h : f64",
    "%n = arith.addf %m, %h : f64; %t = math.cbrt %n : f64; %s = arith.mulf %t, %h : f64",
    "%s = math.erf %a : f64",
    "%s = math.erfc %m : f64",
    "%n = arith.mulf %m, %h : f64; %e = arith.addf %n, %h : f64; %s = math.powf %e, %h : f64",
];

impl Graph {
    /// An op on tensors of another type.
    pub(super) fn typed_op(&mut self) {
        match self.rng.below(24) {
            0 | 1 => drop(self.typed_input(None)),
            2 => self.typed_slice(),
            3 => self.typed_insert(),
            4 => self.typed_transpose(),
            5 => self.typed_gather(),
            6 => self.typed_concat(),
            7 => self.typed_pad(),
            8 => self.typed_repeat(),
            9 => self.typed_choice(),
            10..=13 => self.function_of_double(),
            _ => self.number_op(),
        }
    }

    pub(super) fn typed_input(&mut self, like: Option<(Dtype, Vec<usize>)>) -> Value {
        let (dtype, shape) = like.unwrap_or_else(|| {
            let dtype = *self.rng.pick(self.features.types);
            let rank = 1 + self.rng.below(3) as usize;
            (dtype, self.shape(rank))
        });
        let value = self.text.input(dtype, &shape);
        self.typed.insert(0, value.clone());
        value
    }
    pub(super) fn pick_typed(&mut self) -> Value {
        if self.typed.is_empty() {
            return self.typed_input(None);
        }
        let late = self.typed.len().saturating_sub(3);
        let from = if self.rng.below(2) == 0 { late } else { 0 };
        self.rng.pick(&self.typed[from..]).clone()
    }
    pub(super) fn typed_like(&mut self, dtype: Dtype, shape: &[usize]) -> Value {
        let alike: Vec<_> = self.typed.iter().filter(|y| y.dtype == dtype && y.shape() == shape).cloned().collect();
        if alike.is_empty() { self.typed_input(Some((dtype, shape.to_vec()))) } else { self.rng.pick(&alike).clone() }
    }

    /// A tensor of numbers that ops of `arith` take.
    pub(super) fn pick_number(&mut self) -> Value {
        let x = self.pick_typed();
        self.signless(&x)
    }
    /// A function of f64 with results between -1 and 1.
    fn function_of_double(&mut self) {
        if !self.features.types.contains(&Dtype::F64) {
            return self.number_op();
        }
        let doubles: Vec<_> = self.typed.iter().filter(|x| x.dtype == Dtype::F64).cloned().collect();
        let x = if doubles.is_empty() {
            let shape = self.shape(2);
            self.typed_input(Some((Dtype::F64, shape)))
        } else {
            self.rng.pick(&doubles).clone()
        };
        let body = *self.rng.pick(&FUNCTIONS_OF_DOUBLE);
        let body = format!("%m = math.absf %a : f64; %h = arith.constant 0.5 : f64; {body}");
        let made = self.text.pointwise(Dtype::F64, &[&x], &body);
        // No longer exact: it goes on as f32, which no condition uses.
        self.single_of(&made);
    }

    fn signless(&mut self, x: &Value) -> Value {
        if let Dtype::Unsigned(bits) = x.dtype { self.bits_of(x, Dtype::Int(bits)) } else { x.clone() }
    }
    pub(super) fn bits_of(&mut self, x: &Value, to: Dtype) -> Value {
        let text = format!("tensor.bitcast {} : {} to {}", x.name, x.ty(), tensor(to, x.shape()));
        self.text.op(to, x.shape(), &text)
    }
    /// Keeps a value, sometimes as unsigned numbers.
    pub(super) fn keep(&mut self, made: Value) {
        let unsigned = made.dtype.int_width().map(Dtype::Unsigned).filter(|t| self.features.types.contains(t));
        let kept = match unsigned.filter(|t| *t != made.dtype) {
            Some(unsigned) if self.rng.below(4) == 0 => self.bits_of(&made, unsigned),
            _ => made,
        };
        self.typed.push(kept);
    }

    fn typed_slice(&mut self) {
        let x = self.pick_typed();
        let (offsets, sizes, strides) = self.place(x.shape());
        let to = tensor(x.dtype, &sizes);
        let at = format!("[{}] [{}] [{}]", list(&offsets), list(&sizes), list(&strides));
        let made = self.text.op(x.dtype, &sizes, &format!("tensor.extract_slice {}{at} : {} to {to}", x.name, x.ty()));
        self.typed.push(made);
    }
    fn typed_insert(&mut self) {
        let x = self.pick_typed();
        let (offsets, sizes, strides) = self.place(x.shape());
        let source = self.typed_like(x.dtype, &sizes);
        let at = format!("[{}] [{}] [{}]", list(&offsets), list(&sizes), list(&strides));
        let text = format!("tensor.insert_slice {} into {}{at} : {} into {}", source.name, x.name, source.ty(), x.ty());
        let made = self.text.op(x.dtype, x.shape(), &text);
        self.typed.push(made);
    }
    fn typed_transpose(&mut self) {
        let x = self.pick_typed();
        let rank = x.shape().len();
        if rank < 2 {
            return self.number_op();
        }
        let order: Vec<_> = (0..rank).map(|d| (d + 1) % rank).collect();
        let to: Vec<_> = order.iter().map(|d| x.shape()[*d]).collect();
        let empty = self.text.empty(x.dtype, &to);
        let made = self.text.named_untyped(
            ops::linalg::TRANSPOSE,
            &[&x],
            &empty,
            &format!("permutation = [{}]", list(&order)),
        );
        self.typed.push(made);
    }
    /// Rows by index; where the feature is on, some indices are out of range.
    fn typed_gather(&mut self) {
        let table = if self.rng.below(2) == 0 { self.pick().value } else { self.pick_typed() };
        let shape = table.shape().to_vec();
        if shape.len() != 2 {
            return self.number_op();
        }
        let count = 1 + self.rng.below(9) as usize;
        let beyond = if self.features.bad_indices { 3.0 } else { 0.0 };
        let numbers = self.text.input_within(Dtype::Int(32), &[count], -beyond, shape[0] as f64 + beyond);
        let empty = self.text.empty(table.dtype, &[count, shape[1]]);
        let body = format!(
            "%i = arith.index_cast %a : i32 to index; %j = linalg.index 1 : index; %s = tensor.extract {}[%i, %j] : {}",
            table.name,
            table.ty()
        );
        let made = self.text.generic("n d", &[(&numbers, "n")], (&empty, "n, d"), &body);
        if table.dtype == Dtype::F32 {
            self.push(made, super::LARGEST);
        } else {
            self.typed.push(made);
        }
    }
    fn typed_concat(&mut self) {
        let x = self.pick_typed();
        let y = self.typed_like(x.dtype, x.shape());
        let Some(dim) = self.any_dim(&x) else { return };
        let mut to = x.shape().to_vec();
        to[dim] *= 2;
        let text = format!(
            "tensor.concat dim({dim}) {}, {} : ({}, {}) -> {}",
            x.name,
            y.name,
            x.ty(),
            y.ty(),
            tensor(x.dtype, &to)
        );
        let made = self.text.op(x.dtype, &to, &text);
        self.typed.push(made);
    }
    /// Pads with a constant; a pad may be negative.
    fn typed_pad(&mut self) {
        let x = self.pick_number();
        let Some(dim) = self.any_dim(&x) else { return };
        let extent = x.shape()[dim] as i64;
        let (mut low, mut high) = (vec![0; x.shape().len()], vec![0; x.shape().len()]);
        low[dim] = self.rng.below(4) as i64 - 1;
        high[dim] = (self.rng.below(4) as i64 - 1).max(1 - extent - low[dim]);
        let mut to = x.shape().to_vec();
        to[dim] = (extent + low[dim] + high[dim]) as usize;
        let value = self.text.constant(x.dtype, if x.dtype.is_float() { "0.5" } else { "1" });
        let text = super::pad_text(&x, &value, (&low, &high), &to);
        let made = self.text.op(x.dtype, &to, &text);
        self.keep(made);
    }
    fn any_dim(&mut self, x: &Value) -> Option<usize> {
        let rank = x.shape().len() as u64;
        (rank > 0).then(|| self.rng.below(rank) as usize)
    }
    /// A loop that carries a tensor.
    fn typed_repeat(&mut self) {
        let x = self.pick_number();
        let count = 1 + self.rng.below(4) as usize;
        let (from, to, step) = (self.text.index(0), self.text.index(count), self.text.index(1));
        let (result, induction, carried) = (self.text.fresh(), self.text.fresh(), self.text.fresh());
        let ty = x.ty();
        self.text.raw(&format!(
            "{result} = scf.for {induction} = {} to {} step {} iter_args({carried} = {}) -> ({ty}) {{",
            from.name, to.name, step.name, x.name
        ));
        let inside = Value { name: carried, ..x.clone() };
        let yielded = self.region(|g| {
            let y = g.typed_like(x.dtype, x.shape());
            let made = g.binary_number(&inside, &y);
            g.binary_number(&made, &inside)
        });
        self.text.raw(&format!("  scf.yield {} : {ty}", yielded.name));
        self.text.raw("}");
        self.keep(Value { name: result, ..x });
    }
    /// A condition that selects one of two values, and a reader of the selection.
    fn typed_choice(&mut self) {
        let x = self.pick_typed();
        let y = self.typed_like(x.dtype, x.shape());
        let condition = self.text.scalar(Dtype::Int(1), 0.0, 2.0);
        let (result, ty) = (self.text.fresh(), x.ty());
        self.text.raw(&format!(
            "{result} = scf.if {} -> ({ty}) {{\n    scf.yield {} : {ty}\n  }} else {{\n    scf.yield {} : {ty}\n  }}",
            condition.name, x.name, y.name
        ));
        let chosen = self.signless(&Value { name: result, ..x });
        let made = self.binary_number(&chosen, &chosen);
        self.keep(made);
    }
}
