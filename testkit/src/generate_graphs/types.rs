//! Tensors of random graphs of other types than f32: integers of several widths, booleans, halves and doubles.
//!
//! Integer arithmetic is exact and wraps; floats stay within [-1, 1], so that halves are compared with one tolerance.

use super::Graph;
use crate::host_tensor::Dtype;
use crate::text::{Value, list};

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
        match self.rng.below(12) {
            0 | 1 => drop(self.typed_input(None)),
            2 | 3 => self.typed_binary(),
            4 => self.typed_slice(),
            5 => self.typed_insert(),
            6 => self.typed_transpose(),
            7 => self.typed_reduce(),
            8 => self.typed_gather(),
            9 | 10 => self.function_of_double(),
            _ => self.convert(),
        }
    }

    fn typed_input(&mut self, like: Option<(Dtype, Vec<usize>)>) -> Value {
        let (dtype, shape) = like.unwrap_or_else(|| {
            let dtype = *self.rng.pick(self.features.types);
            let rank = 1 + self.rng.below(3) as usize;
            (dtype, self.shape(rank))
        });
        let value = self.text.input(dtype, &shape);
        self.typed.insert(0, value.clone());
        value
    }
    fn pick_typed(&mut self) -> Value {
        if self.typed.is_empty() {
            return self.typed_input(None);
        }
        let late = self.typed.len().saturating_sub(3);
        let from = if self.rng.below(2) == 0 { late } else { 0 };
        self.rng.pick(&self.typed[from..]).clone()
    }
    fn typed_like(&mut self, dtype: Dtype, shape: &[usize]) -> Value {
        let alike: Vec<_> = self.typed.iter().filter(|y| y.dtype == dtype && y.shape() == shape).cloned().collect();
        if alike.is_empty() { self.typed_input(Some((dtype, shape.to_vec()))) } else { self.rng.pick(&alike).clone() }
    }

    fn typed_binary(&mut self) {
        let x = self.pick_typed();
        let y = self.typed_like(x.dtype, x.shape());
        let ops: &[&str] = match x.dtype {
            Dtype::Int(1) => &["andi", "ori", "xori"],
            dtype if dtype.is_float() => &["mulf", "maximumf", "minimumf"],
            _ => &["addi", "subi", "muli", "maxsi", "minui", "andi", "xori"],
        };
        let body = format!("%s = arith.{} %a, %b : {}", self.rng.pick(ops), x.dtype);
        let made = self.text.pointwise(x.dtype, &[&x, &y], &body);
        self.typed.push(made);
    }
    /// With results between -1 and 1.
    fn function_of_double(&mut self) {
        if !self.features.types.contains(&Dtype::F64) {
            return self.typed_binary();
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
        self.typed.push(made);
    }
    fn typed_slice(&mut self) {
        let x = self.pick_typed();
        let (offsets, sizes, strides) = self.place(x.shape());
        let to = crate::text::tensor(x.dtype, &sizes);
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
            return self.typed_binary();
        }
        let order: Vec<_> = (0..rank).map(|d| (d + 1) % rank).collect();
        let to: Vec<_> = order.iter().map(|d| x.shape()[*d]).collect();
        let empty = self.text.empty(x.dtype, &to);
        let made =
            self.text.named_untyped("linalg.transpose", &[&x], &empty, &format!("permutation = [{}]", list(&order)));
        self.typed.push(made);
    }
    /// Over the last dimension, exactly.
    fn typed_reduce(&mut self) {
        let x = self.pick_typed();
        let shape = x.shape().to_vec();
        let Some(last) = shape.len().checked_sub(1) else { return self.typed_binary() };
        let (op, init) = match x.dtype {
            Dtype::Int(1) => ("ori", "0"),
            dtype if dtype.is_float() => ("maximumf", "-1.0"),
            _ => ("addi", "0"),
        };
        let init = self.text.fill(x.dtype, &shape[..last], init);
        let loops: Vec<_> = (0..=last).map(|d| format!("d{d}{}", if d == last { "!" } else { "" })).collect();
        let full: Vec<_> = (0..=last).map(|d| format!("d{d}")).collect();
        let body = format!("%s = arith.{op} %o, %a : {}", x.dtype);
        let operands = [(&x, &*full.join(", "))];
        let made = self.text.generic(&loops.join(" "), &operands, (&init, &full[..last].join(", ")), &body);
        self.typed.push(made);
    }
    /// Rows by number; where the feature is on, some numbers are of no row.
    fn typed_gather(&mut self) {
        let table = if self.rng.below(2) == 0 { self.pick().value } else { self.pick_typed() };
        let shape = table.shape().to_vec();
        if shape.len() != 2 {
            return self.typed_binary();
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

    /// To f32, to another width, or from a comparison to a choice between f32 tensors.
    fn convert(&mut self) {
        let x = self.pick_typed();
        let wider = |dtype: &Dtype| matches!((x.dtype, dtype), (Dtype::Int(a), Dtype::Int(b)) if *b > a);
        let widths: Vec<_> = self.features.types.iter().filter(|t| wider(t)).copied().collect();
        if !widths.is_empty() && self.rng.below(2) == 0 {
            let to = *self.rng.pick(&widths);
            let op = if x.dtype == Dtype::Int(1) { "extui" } else { "extsi" };
            let made = self.text.pointwise(to, &[&x], &format!("%s = arith.{op} %a : {} to {to}", x.dtype));
            return self.typed.push(made);
        }
        let (body, bound) = match x.dtype {
            Dtype::Int(1) => ("%s = arith.uitofp %a : i1 to f32".to_owned(), 1.0),
            Dtype::F16 => ("%s = arith.extf %a : f16 to f32".to_owned(), 1.0),
            Dtype::F64 => ("%s = arith.truncf %a : f64 to f32".to_owned(), 1.0),
            ty => (
                format!(
                    "%k = arith.constant 15 : {ty}; %n = arith.andi %a, %k : {ty}; %s = arith.sitofp %n : {ty} to f32"
                ),
                15.0,
            ),
        };
        let made = self.text.pointwise(Dtype::F32, &[&x], &body);
        self.push(made, bound);
    }
}
