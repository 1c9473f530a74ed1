//! Builds programs op by op: f32 tensors named by their definitions.

use crate::programs::tensor;
use std::fmt::Write;

/// The text of `@main`, as it grows.
#[derive(Default)]
pub struct Program {
    args: Vec<(String, String)>,
    body: String,
    shapes: Vec<(String, Vec<i64>)>,
    next: usize,
}

/// An operand: its name, and the loop of each dimension.
pub type Read<'a> = (&'a str, &'a [usize]);

impl Program {
    pub fn new() -> Self {
        let mut program = Self::default();
        program.line("%zero = arith.constant 0.0 : f32");
        program.line("%low = arith.constant 0xFF800000 : f32");
        program
    }

    pub fn line(&mut self, text: &str) {
        let _ = writeln!(self.body, "  {text}");
    }

    /// An argument; returns its name.
    pub fn arg(&mut self, shape: &[i64]) -> String {
        let name = format!("%a{}", self.args.len());
        self.args.push((name.clone(), tensor(shape)));
        self.shapes.push((name.clone(), shape.to_vec()));
        name
    }

    pub fn shape(&self, name: &str) -> Vec<i64> {
        self.shapes.iter().find(|(n, _)| n == name).map(|(_, s)| s.clone()).expect("a value of this program")
    }

    fn define(&mut self, shape: &[i64]) -> String {
        self.next += 1;
        let name = format!("%v{}", self.next);
        self.shapes.push((name.clone(), shape.to_vec()));
        name
    }

    /// A fill.
    pub fn fill(&mut self, shape: &[i64], scalar: &str) -> String {
        let (name, ty) = (self.define(shape), tensor(shape));
        self.line(&format!("%e{} = tensor.empty() : {ty}", self.next));
        self.line(&format!("{name} = linalg.fill ins({scalar} : f32) outs(%e{} : {ty}) -> {ty}", self.next));
        name
    }

    /// A generic of `loops` on `out`, whose dimensions are the first loops; the others are reductions. `body` computes `%r` of
    /// `%p0`, `%p1`, ... and `%o`.
    pub fn generic(&mut self, loops: usize, reads: &[Read<'_>], out: &str, body: &str) -> String {
        let shape = self.shape(out);
        let (name, ty) = (self.define(&shape), tensor(&shape));
        let dims = (0..loops).map(|d| format!("d{d}")).collect::<Vec<_>>().join(", ");
        let map = |read: &[usize]| {
            let results = read.iter().map(|d| format!("d{d}")).collect::<Vec<_>>().join(", ");
            format!("affine_map<({dims}) -> ({results})>")
        };
        let written: Vec<usize> = (0..shape.len()).collect();
        let mut maps: Vec<String> = reads.iter().map(|(_, read)| map(read)).collect();
        maps.push(map(&written));
        let kinds: Vec<&str> =
            (0..loops).map(|d| if d < shape.len() { "\"parallel\"" } else { "\"reduction\"" }).collect();
        let names: Vec<&str> = reads.iter().map(|(n, _)| *n).collect();
        let types: Vec<String> = reads.iter().map(|(n, _)| tensor(&self.shape(n))).collect();
        let args: Vec<String> = (0..reads.len()).map(|i| format!("%p{i}: f32, ")).collect();
        self.line(&format!(
            "{name} = linalg.generic {{indexing_maps = [{}], iterator_types = [{}]}} ins({} : {}) outs({out} : {ty}) {{\n  ^bb0({}%o: f32):\n    \
             {body}\n    linalg.yield %r : f32\n  }} -> {ty}",
            maps.join(", "),
            kinds.join(", "),
            names.join(", "),
            types.join(", "),
            args.concat(),
        ));
        name
    }

    /// A pointwise generic on a tensor of its own.
    pub fn pointwise(&mut self, shape: &[i64], reads: &[Read<'_>], body: &str) -> String {
        let empty = format!("%t{}", self.next);
        self.next += 1;
        self.line(&format!("{empty} = tensor.empty() : {}", tensor(shape)));
        self.shapes.push((empty.clone(), shape.to_vec()));
        self.generic(shape.len(), reads, &empty, body)
    }

    /// The reduction of a tensor's last dimension, over the value `%c` that `body` computes of `%p0`; `fold` combines `%c`
    /// and `%o`.
    pub fn reduce(&mut self, value: &str, body: &str, fold: &str) -> String {
        let shape = self.shape(value);
        let rows = shape.len() - 1;
        let fill = self.fill(&shape[..rows], if fold.contains("max") { "%low" } else { "%zero" });
        let all: Vec<usize> = (0..=rows).collect();
        self.generic(shape.len(), &[(value, &all)], &fill, &format!("{body}\n    %r = {fold} %c, %o : f32"))
    }

    /// Pointwise by rows: `body` computes `%r` of the element `%p0` and the row's `%p1`.
    pub fn by_row(&mut self, value: &str, row: &str, body: &str) -> String {
        let shape = self.shape(value);
        let all: Vec<usize> = (0..shape.len()).collect();
        self.pointwise(&shape, &[(value, &all), (row, &all[..all.len() - 1])], body)
    }

    /// Pointwise on one tensor.
    pub fn map(&mut self, value: &str, body: &str) -> String {
        let shape = self.shape(value);
        let all: Vec<usize> = (0..shape.len()).collect();
        self.pointwise(&shape, &[(value, &all)], body)
    }

    /// Pointwise on two tensors, `%p0` and `%p1`.
    pub fn zip(&mut self, a: &str, b: &str, body: &str) -> String {
        let shape = self.shape(a);
        let all: Vec<usize> = (0..shape.len()).collect();
        self.pointwise(&shape, &[(a, &all), (b, &all)], body)
    }

    /// Maximum, exponential, sum, quotient.
    pub fn softmax(&mut self, value: &str) -> String {
        let m = self.reduce(value, IDENTITY, "arith.maximumf");
        let e = self.by_row(value, &m, "%d = arith.subf %p0, %p1 : f32\n    %r = math.exp %d : f32");
        let s = self.reduce(&e, IDENTITY, "arith.addf");
        self.by_row(&e, &s, "%r = arith.divf %p0, %p1 : f32")
    }

    /// `sum over k of a[.., m, k] * b[.., k, n]`, on a fill.
    pub fn batched_product(&mut self, a: &str, b: &str) -> String {
        let (mut shape, right) = (self.shape(a), self.shape(b));
        let rank = shape.len();
        shape[rank - 1] = right[rank - 1];
        let fill = self.fill(&shape, "%zero");
        let batch: Vec<usize> = (0..rank - 2).collect();
        let left = [&batch[..], &[rank - 2, rank]].concat();
        let right = [&batch[..], &[rank, rank - 1]].concat();
        let body = "%m = arith.mulf %p0, %p1 : f32\n    %r = arith.addf %o, %m : f32";
        self.generic(rank + 1, &[(a, &left), (b, &right)], &fill, body)
    }

    /// The function with these results.
    pub fn finish(&self, results: &[&str]) -> String {
        let args: Vec<String> = self.args.iter().map(|(n, t)| format!("{n}: {t}")).collect();
        let types: Vec<String> = results.iter().map(|r| tensor(&self.shape(r))).collect();
        format!(
            "func.func @main({}) -> ({}) {{\n{}  return {} : {}\n}}\n",
            args.join(", "),
            types.join(", "),
            self.body,
            results.join(", "),
            types.join(", ")
        )
    }
}

/// Body of a reduction of the elements themselves.
pub const IDENTITY: &str = "%c = arith.addf %p0, %zero : f32";
