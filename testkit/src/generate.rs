//! Random programs: small graphs of matrix products and elementwise ops, the same for the same seed.

use crate::random::Rng;
use monopour_ir::ops;
use std::fmt::Write;

/// A function `@main` of one to three inputs and `ops` ops around matrix products, with static shapes. Values have no, one
/// or several uses, and share destinations.
pub fn program(seed: u64, ops: usize) -> String {
    let mut g = Generator { rng: Rng::new(seed), body: String::new(), values: vec![] };
    let sizes = [1, 3, 4, 7, 8, 16, 17];
    let inputs = 1 + g.rng.below(3) as usize;
    for i in 0..inputs {
        let shape = (*g.rng.pick(&sizes), *g.rng.pick(&sizes));
        g.values.push((format!("%arg{i}"), shape));
    }
    let arguments: Vec<_> = g.values.iter().map(|(name, shape)| format!("{name}: {}", ty(*shape))).collect();
    for i in 0..ops {
        match g.rng.below(5) {
            0 | 1 => g.product(i),
            2 => g.binary(i),
            3 => g.per_row(i),
            _ => g.unary(i),
        }
    }
    let (result, shape) = g.values.last().cloned().expect("there is at least one input");
    format!(
        "func.func @main({}) -> {t} {{\n{}  return {result} : {t}\n}}\n",
        arguments.join(", "),
        g.body,
        t = ty(shape)
    )
}

type Shape = (usize, usize);

struct Generator {
    rng: Rng,
    body: String,
    values: Vec<(String, Shape)>,
}

impl Generator {
    /// `x * y` where shapes fit, else `x * x^T`.
    fn product(&mut self, i: usize) {
        let (x, (m, k)) = self.rng.pick(&self.values).clone();
        let fitting: Vec<_> = self.values.iter().filter(|(_, s)| s.0 == k).cloned().collect();
        let (y, y_shape, maps) = if fitting.is_empty() {
            let map = |r: &str| format!("affine_map<(m, n, k) -> ({r})>");
            (x.clone(), (m, k), format!(" indexing_maps = [{}, {}, {}]", map("m, k"), map("n, k"), map("m, n")))
        } else {
            let (y, shape) = self.rng.pick(&fitting).clone();
            (y, shape, String::new())
        };
        let n = if maps.is_empty() { y_shape.1 } else { m };
        let t = ty((m, n));
        let _ = write!(
            self.body,
            "  %z{i} = arith.constant 0.0 : f32\n  %e{i} = tensor.empty() : {t}\n  \
             %f{i} = linalg.fill ins(%z{i} : f32) outs(%e{i} : {t}) -> {t}\n  \
             %v{i} = linalg.matmul{maps} ins({x}, {y} : {}, {}) outs(%f{i} : {t}) -> {t}\n",
            ty((m, k)),
            ty(y_shape)
        );
        self.values.push((format!("%v{i}"), (m, n)));
    }

    fn binary(&mut self, i: usize) {
        let (x, shape) = self.rng.pick(&self.values).clone();
        let same: Vec<_> = self.values.iter().filter(|(_, s)| *s == shape).map(|(v, _)| v.clone()).collect();
        let y = self.rng.pick(&same).clone();
        let op = *self.rng.pick(&[ops::arith::ADDF, ops::arith::SUBF, ops::arith::MULF, ops::arith::MAXIMUMF]);
        self.generic(i, shape, &[(x, shape, "i, j"), (y, shape, "i, j")], &format!("{op} %p0, %p1"));
    }

    /// A broadcast operand: one value per row, or one per column.
    fn per_row(&mut self, i: usize) {
        let (x, shape) = self.rng.pick(&self.values).clone();
        let rows: Vec<_> = self.values.iter().filter(|(_, s)| *s == (1, shape.1)).cloned().collect();
        if rows.is_empty() {
            return self.unary(i);
        }
        let (y, y_shape) = self.rng.pick(&rows).clone();
        self.generic(i, shape, &[(x, shape, "i, j"), (y, y_shape, "0, j")], "arith.addf %p0, %p1");
    }

    fn unary(&mut self, i: usize) {
        let (x, shape) = self.rng.pick(&self.values).clone();
        let op = *self.rng.pick(&[ops::math::TANH, ops::math::ABSF, ops::arith::NEGF]);
        self.generic(i, shape, &[(x, shape, "i, j")], &format!("{op} %p0"));
    }

    fn generic(&mut self, i: usize, shape: Shape, inputs: &[(String, Shape, &str)], op: &str) {
        let t = ty(shape);
        let maps: String = inputs.iter().map(|(_, _, m)| format!("affine_map<(i, j) -> ({m})>, ")).collect();
        let names: Vec<_> = inputs.iter().map(|(n, _, _)| n.as_str()).collect();
        let types: Vec<_> = inputs.iter().map(|(_, s, _)| ty(*s)).collect();
        let args: String = (0..inputs.len()).map(|a| format!("%p{a}: f32, ")).collect();
        let _ = write!(
            self.body,
            "  %e{i} = tensor.empty() : {t}\n  %v{i} = linalg.generic {{indexing_maps = [{maps}affine_map<(i, j) -> (i, j)>], \
             iterator_types = [\"parallel\", \"parallel\"]}} ins({} : {}) outs(%e{i} : {t}) {{\n  ^bb0({args}%o: f32):\n    \
             %s = {op} : f32\n    linalg.yield %s : f32\n  }} -> {t}\n",
            names.join(", "),
            types.join(", ")
        );
        self.values.push((format!("%v{i}"), shape));
    }
}

fn ty((rows, columns): Shape) -> String {
    format!("tensor<{rows}x{columns}xf32>")
}
