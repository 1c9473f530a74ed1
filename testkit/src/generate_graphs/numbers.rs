//! Random graphs in other types than f32: signed and unsigned arithmetic, comparisons, powers, conversions.
//!
//! Results are unique: sums of halves are halved, divisors may be zero because kernels define that, shifts stay within the
//! width, and powers have bases whose products are exact.

use super::Graph;
use crate::host_tensor::Dtype;
use crate::text::Value;
use monopour_ir::ops;

const INTEGER: [&str; 10] = ["addi", "subi", "muli", "maxsi", "minsi", "maxui", "minui", "andi", "ori", "xori"];
const SHIFTS: [&str; 3] = ["shli", "shrsi", "shrui"];
const DIVISIONS: [&str; 7] = ["divui", "remui", "divsi", "remsi", "floordivsi", "ceildivsi", "ceildivui"];
const ORDERS: [&str; 10] = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"];
const FLOAT_ORDERS: [&str; 8] = ["oeq", "ogt", "oge", "olt", "ole", "one", "ult", "une"];
const BIT: Dtype = Dtype::Int(1);
const WORD: Dtype = Dtype::Int(32);

impl Graph {
    pub(super) fn number_op(&mut self) {
        let x = self.pick_number();
        match (self.rng.below(16), x.dtype) {
            (0 | 1, dtype) if dtype != BIT => self.power(&x),
            (2, dtype) if dtype.is_float() => self.class(&x),
            (2, Dtype::Int(16 | 32)) => self.class_of_bits(&x),
            (3, Dtype::Int(2..)) => self.shift(&x),
            (4 | 14, Dtype::Int(2..)) => self.division(&x),
            (5, Dtype::Int(2..)) => self.count(&x),
            (6 | 7, _) => self.compare(&x),
            (8, _) => self.reduce_numbers(&x),
            (9, _) => self.multiply(&x),
            (10 | 11, _) => self.convert(&x),
            (12, _) => self.single_of(&x),
            (13, _) => self.of_single(),
            _ => {
                let y = self.typed_like(x.dtype, x.shape());
                let made = self.binary_number(&x, &y);
                self.keep(made);
            }
        }
    }

    pub(super) fn binary_number(&mut self, x: &Value, y: &Value) -> Value {
        let ty = x.dtype;
        let body = match ty {
            Dtype::F64 => format!("%s = arith.{} %a, %b : {ty}", self.rng.pick(&["mulf", "maximumf", "minimumf"])),
            _ if ty.is_float() => self.float_body(ty),
            _ => format!("%s = arith.{} %a, %b : {ty}", self.rng.pick(&INTEGER)),
        };
        self.text.pointwise(ty, &[x, y], &body)
    }
    /// Of 16 bits: their products and sums are not contracted.
    fn float_body(&mut self, ty: Dtype) -> String {
        let halved = |op: &str| {
            format!("%k = arith.constant 0.5 : {ty}; %n = arith.{op} %a, %b : {ty}; %s = arith.mulf %n, %k : {ty}")
        };
        match self.rng.below(7) {
            0 => halved("addf"),
            1 => halved("subf"),
            2 => format!("%n = arith.negf %b : {ty}; %s = arith.maximumf %a, %n : {ty}"),
            3 => format!(
                "%n = math.absf %b : {ty}; %k = arith.constant 0.25 : {ty}; %m = arith.maximumf %n, %k : {ty}; \
                 %s = arith.remf %a, %m : {ty}"
            ),
            4 => format!("%s = arith.minimumf %a, %b : {ty}"),
            _ => format!("%s = arith.mulf %a, %b : {ty}"),
        }
    }
    fn shift(&mut self, x: &Value) {
        let (ty, y) = (x.dtype, self.typed_like(x.dtype, x.shape()));
        let last = ty.int_width().unwrap_or(1) - 1;
        let op = *self.rng.pick(&SHIFTS);
        let body =
            format!("%k = arith.constant {last} : {ty}; %n = arith.andi %b, %k : {ty}; %s = arith.{op} %a, %n : {ty}");
        self.make(ty, &[x, &y], &body);
    }
    /// By a divisor that may be zero, or by an odd number.
    fn division(&mut self, x: &Value) {
        let (ty, y) = (x.dtype, self.typed_like(x.dtype, x.shape()));
        let op = *self.rng.pick(&DIVISIONS);
        let body = match self.rng.below(2) {
            0 => format!("%s = arith.{op} %a, %b : {ty}"),
            _ => format!("%k = arith.constant 1 : {ty}; %n = arith.ori %b, %k : {ty}; %s = arith.{op} %a, %n : {ty}"),
        };
        self.make(ty, &[x, &y], &body);
    }
    fn count(&mut self, x: &Value) {
        let op = *self.rng.pick(&["ctpop", "ctlz", "cttz", "absi"]);
        self.make(x.dtype, &[x], &format!("%s = math.{op} %a : {}", x.dtype));
    }
    /// A comparison, as a tensor of bits or as the condition of a select.
    fn compare(&mut self, x: &Value) {
        let (ty, y) = (x.dtype, self.typed_like(x.dtype, x.shape()));
        let (op, orders) = if ty.is_float() { ("cmpf", &FLOAT_ORDERS[..]) } else { ("cmpi", &ORDERS[..]) };
        let order = *self.rng.pick(orders);
        let compared = |to: &str| format!("{to} = arith.{op} {order}, %a, %b : {ty}");
        match self.rng.below(3) {
            0 => self.make(ty, &[x, &y], &format!("{}; %s = arith.select %c, %b, %a : {ty}", compared("%c"))),
            1 => {
                let bits = self.typed_like(BIT, x.shape());
                self.make(ty, &[x, &y, &bits], &format!("%s = arith.select %c, %b, %a : {ty}"));
            }
            _ => self.make(BIT, &[x, &y], &compared("%s")),
        }
    }
    /// Over the last dimension, exactly.
    fn reduce_numbers(&mut self, x: &Value) {
        let shape = x.shape().to_vec();
        let Some(last) = shape.len().checked_sub(1) else { return };
        let (op, init) = match x.dtype {
            BIT => *self.rng.pick(&[("ori", "0"), ("andi", "1"), ("xori", "0")]),
            dtype if dtype.is_float() => *self.rng.pick(&[("maximumf", "-1.0"), ("minimumf", "1.0")]),
            _ => *self.rng.pick(&[("addi", "0"), ("muli", "1"), ("maxui", "0"), ("minui", "-1"), ("minsi", "127")]),
        };
        let init = self.text.fill(x.dtype, &shape[..last], init);
        let loops: Vec<_> = (0..=last).map(|d| format!("d{d}{}", if d == last { "!" } else { "" })).collect();
        let full: Vec<_> = (0..=last).map(|d| format!("d{d}")).collect();
        let body = format!("%s = arith.{op} %o, %a : {}", x.dtype);
        let operands = [(x, &*full.join(", "))];
        let made = self.text.generic(&loops.join(" "), &operands, (&init, &full[..last].join(", ")), &body);
        self.keep(made);
    }
    /// A product of matrices: of integers in their type, of halves in f32.
    fn multiply(&mut self, x: &Value) {
        let [m, k] = *x.shape() else { return self.convert(x) };
        if matches!(x.dtype, BIT | Dtype::F64) {
            return self.convert(x);
        }
        let n = *self.rng.pick(&super::SIZES[..9]);
        let y = self.typed_like(x.dtype, &[k, n]);
        let to = if x.dtype.is_float() { Dtype::F32 } else { x.dtype };
        let zero = self.text.zeros(to, &[m, n]);
        let made = self.text.named(ops::linalg::MATMUL, &[x, &y], &zero);
        if to == Dtype::F32 {
            self.push(made, k as f64);
        } else {
            self.keep(made);
        }
    }

    /// Integers wrap. Of floats, negative powers of 1 to 4, whose reciprocals are rounded once, and up to the second of any.
    fn power(&mut self, x: &Value) {
        let ty = x.dtype;
        if !ty.is_float() {
            let y = self.typed_like(ty, x.shape());
            let body = match self.rng.below(3) {
                0 => format!("%k = arith.constant {} : {ty}; %s = math.ipowi %a, %k : {ty}", self.rng.below(8)),
                _ => format!("%s = math.ipowi %a, %b : {ty}"),
            };
            return self.make(ty, &[x, &y], &body);
        }
        let n = self.typed_like(WORD, x.shape());
        let body = match self.rng.below(3) {
            0 => format!(
                "%k = arith.constant 3 : i32; %z = arith.constant 0 : i32; %m = arith.andi %b, %k : i32; \
                 %e = arith.subi %z, %m : i32; %f = arith.sitofp %m : i32 to {ty}; %u = arith.constant 1.0 : {ty}; \
                 %n = arith.addf %f, %u : {ty}; %s = math.fpowi %n, %e : {ty}, i32"
            ),
            1 => format!(
                "%k = arith.constant 3 : i32; %e = arith.remui %b, %k : i32; %s = math.fpowi %a, %e : {ty}, i32"
            ),
            _ => {
                let exponent = self.rng.below(3);
                format!("%k = arith.constant {exponent} : i32; %s = math.fpowi %a, %k : {ty}, i32")
            }
        };
        self.make(ty, &[x, &n], &body);
    }
    /// Float classes, after some became infinite and some NaN.
    fn class(&mut self, x: &Value) {
        let (ty, n) = (x.dtype, self.typed_like(WORD, x.shape()));
        let (infinity, nan) = match ty {
            Dtype::F16 => ("0xFC00", "0x7E00"),
            Dtype::Bf16 => ("0xFF80", "0x7FC0"),
            _ => ("0xFFF0000000000000", "0x7FF8000000000000"),
        };
        let test = *self.rng.pick(&["isnan", "isinf", "isfinite"]);
        let body = format!(
            "%k = arith.constant 3 : i32; %z = arith.constant 0 : i32; %u = arith.constant 1 : i32; %m = arith.andi %b, %k : i32; \
             %inf = arith.constant {infinity} : {ty}; %nan = arith.constant {nan} : {ty}; %c = arith.cmpi eq, %m, %z : i32; \
             %d = arith.cmpi eq, %m, %u : i32; %v = arith.select %c, %inf, %a : {ty}; %w = arith.select %d, %nan, %v : {ty}; \
             %s = math.{test} %w : {ty}"
        );
        self.make(BIT, &[x, &n], &body);
    }
    /// Float classes of any bits.
    fn class_of_bits(&mut self, x: &Value) {
        let halves = [Dtype::Bf16, Dtype::F16].into_iter().filter(|t| self.features.types.contains(t));
        let halves: Vec<_> = halves.collect();
        let as_type = match x.dtype {
            WORD => Dtype::F32,
            _ if halves.is_empty() => return self.compare(x),
            _ => *self.rng.pick(&halves),
        };
        let (test, from) = (*self.rng.pick(&["isnan", "isinf", "isfinite"]), x.dtype);
        let body = match self.rng.below(2) {
            0 => format!("%f = arith.bitcast %a : {from} to {as_type}; %s = math.{test} %f : {as_type}"),
            // Bits outside those of small numbers: all of the exponent.
            _ => {
                let exponent = if from == WORD { "0x7F800000" } else { "0x7F80" };
                format!(
                    "%k = arith.constant {exponent} : {from}; %n = arith.ori %a, %k : {from}; \
                     %f = arith.bitcast %n : {from} to {as_type}; %s = math.{test} %f : {as_type}"
                )
            }
        };
        self.make(BIT, &[x], &body);
    }

    /// To another type, other than f32.
    fn convert(&mut self, x: &Value) {
        let others: Vec<_> = self
            .features
            .types
            .iter()
            .filter(|t| **t != x.dtype && !matches!(t, Dtype::Unsigned(_)))
            .copied()
            .collect();
        if others.is_empty() {
            return;
        }
        let to = *self.rng.pick(&others);
        let signed = self.rng.below(2) == 0;
        let from = x.dtype;
        let body = match (from, to) {
            (Dtype::Int(a), Dtype::Int(b)) if b > a => {
                format!("%s = arith.{} %a : {from} to {to}", if signed { "extsi" } else { "extui" })
            }
            (Dtype::Int(_), Dtype::Int(_)) => format!("%s = arith.trunci %a : {from} to {to}"),
            (BIT, _) => format!("%s = arith.uitofp %a : {from} to {to}"),
            (Dtype::Int(_), _) => format!(
                "%k = arith.constant 15 : {from}; %n = arith.andi %a, %k : {from}; %f = arith.{} %n : {from} to {to}; \
                 %h = arith.constant 0.0625 : {to}; %s = arith.mulf %f, %h : {to}",
                if signed { "sitofp" } else { "uitofp" }
            ),
            (_, BIT) => format!("%z = arith.constant 0.25 : {from}; %s = arith.cmpf ogt, %a, %z : {from}"),
            // Powers of two: a driver may multiply by the constant first, which then rounds the same.
            (_, Dtype::Int(_)) if signed => format!(
                "%k = arith.constant 64.0 : {from}; %n = arith.mulf %a, %k : {from}; %s = arith.fptosi %n : {from} to {to}"
            ),
            (_, Dtype::Int(_)) => format!(
                "%k = arith.constant 128.0 : {from}; %n = arith.mulf %a, %k : {from}; %m = math.absf %n : {from}; \
                 %s = arith.fptoui %m : {from} to {to}"
            ),
            (Dtype::F64, _) => format!("%s = arith.truncf %a : {from} to {to}"),
            (_, Dtype::F64) => format!("%s = arith.extf %a : {from} to {to}"),
            _ => format!("%f = arith.extf %a : {from} to f32; %s = arith.truncf %f : f32 to {to}"),
        };
        self.make(to, &[x], &body);
    }
    pub(super) fn single_of(&mut self, x: &Value) {
        let ty = x.dtype;
        let read = if self.rng.below(2) == 0 { "sitofp" } else { "uitofp" };
        let (body, bound) = match ty {
            BIT => ("%s = arith.uitofp %a : i1 to f32".to_owned(), 1.0),
            Dtype::F64 => ("%s = arith.truncf %a : f64 to f32".to_owned(), 1.0),
            _ if ty.is_float() => (format!("%s = arith.extf %a : {ty} to f32"), 1.0),
            _ => (
                format!(
                    "%k = arith.constant 15 : {ty}; %n = arith.andi %a, %k : {ty}; %s = arith.{read} %n : {ty} to f32"
                ),
                15.0,
            ),
        };
        let made = self.text.pointwise(Dtype::F32, &[x], &body);
        self.push(made, bound);
    }
    /// From an f32 input: its bits, or the nearest number of another type.
    fn of_single(&mut self) {
        let inputs: Vec<_> =
            self.values.iter().filter(|v| v.value.name.starts_with("%arg")).map(|v| v.value.clone()).collect();
        let floats: Vec<_> = self.features.types.iter().filter(|t| t.is_float()).copied().collect();
        if inputs.is_empty() {
            return;
        }
        let x = self.rng.pick(&inputs).clone();
        if floats.is_empty() || self.rng.below(3) == 0 {
            let made = self.bits_of(&x, WORD);
            return self.keep(made);
        }
        let to = *self.rng.pick(&floats);
        let op = if to == Dtype::F64 { "extf" } else { "truncf" };
        self.make(to, &[&x], &format!("%s = arith.{op} %a : f32 to {to}"));
    }

    fn make(&mut self, dtype: Dtype, operands: &[&Value], body: &str) {
        let made = self.text.pointwise(dtype, operands, body);
        self.keep(made);
    }
}
