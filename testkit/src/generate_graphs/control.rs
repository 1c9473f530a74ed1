//! Loops and conditions of random graphs: carried tensors, conditions on data, selections of existing values.

use super::{Bounded, Graph};
use crate::host_tensor::Dtype;
use crate::text::{Value, list, tensor};

impl Graph {
    /// A loop that carries a tensor; its body keeps the values within one.
    pub(super) fn repeat(&mut self) {
        if self.depth > 1 {
            return self.unary();
        }
        let x = self.pick();
        let (from, step) = (self.text.index(0), self.text.index(1));
        let count = 1 + self.rng.below(4) as usize;
        let to = self.text.index(count);
        let (result, induction, carried) = (self.text.fresh(), self.text.fresh(), self.text.fresh());
        let ty = x.value.ty();
        self.text.raw(&format!(
            "{result} = scf.for {induction} = {} to {} step {} iter_args({carried} = {}) -> ({ty}) {{",
            from.name, to.name, step.name, x.value.name
        ));
        let bound = x.bound.max(1.0);
        let inside = Bounded { value: Value { name: carried, ..x.value.clone() }, bound };
        let yielded = self.region(|g| {
            g.values.push(inside.clone());
            let a = g.unary_of(&inside);
            let b = g.binary_of(&a);
            g.text.pointwise(Dtype::F32, &[&b.value], "%s = math.tanh %a : f32")
        });
        self.text.raw(&format!("  scf.yield {} : {ty}", yielded.name));
        self.text.raw("}");
        self.push(Value { name: result, ..x.value }, bound);
    }
    /// A loop over the first dimension that extracts a row, computes, and inserts the result.
    pub(super) fn rows(&mut self) {
        let x = self.pick();
        let shape = x.value.shape().to_vec();
        if shape.len() < 2 || shape[0] > 9 || self.depth > 1 {
            return self.unary();
        }
        let init = self.text.fill(Dtype::F32, &shape, "0.0");
        let (from, to, step) = (self.text.index(0), self.text.index(shape[0]), self.text.index(1));
        let (result, i, carried) = (self.text.fresh(), self.text.fresh(), self.text.fresh());
        let ty = x.value.ty();
        self.text.raw(&format!(
            "{result} = scf.for {i} = {} to {} step {} iter_args({carried} = {}) -> ({ty}) {{",
            from.name, to.name, step.name, init.name
        ));
        let zeros = vec!["0"; shape.len() - 1].join(", ");
        let ones = vec!["1"; shape.len()].join(", ");
        let at = format!("[{i}, {zeros}] [1, {}] [{ones}]", list(&shape[1..]));
        let yielded = self.region(|g| {
            let part_ty = tensor(Dtype::F32, &shape[1..]);
            let part = g.text.op(
                Dtype::F32,
                &shape[1..],
                &format!("tensor.extract_slice {}{at} : {ty} to {part_ty}", x.value.name),
            );
            let part = Bounded { value: part, bound: x.bound };
            g.values.push(part.clone());
            let a = g.binary_of(&part);
            let b = g.text.pointwise(Dtype::F32, &[&a.value], "%s = math.tanh %a : f32");
            g.text.op(
                Dtype::F32,
                &shape,
                &format!("tensor.insert_slice {} into {carried}{at} : {part_ty} into {ty}", b.name),
            )
        });
        self.text.raw(&format!("  scf.yield {} : {ty}", yielded.name));
        self.text.raw("}");
        self.push(Value { name: result, ..x.value }, 1.0);
    }
    /// A condition on a scalar argument or on an element of a tensor.
    pub(super) fn condition(&mut self) {
        if self.depth > 1 {
            return self.unary();
        }
        let x = self.pick();
        let condition = if self.rng.below(2) == 0 {
            self.text.scalar(Dtype::Int(1), 0.0, 2.0)
        } else {
            let indices: Vec<_> = x
                .value
                .shape()
                .to_vec()
                .into_iter()
                .map(|extent| {
                    let at = self.rng.below(extent as u64) as usize;
                    self.text.index(at).name
                })
                .collect();
            let element = self.text.scalar_op(
                Dtype::F32,
                &format!("tensor.extract {}[{}] : {}", x.value.name, indices.join(", "), x.value.ty()),
            );
            let limit = self.text.constant(Dtype::F32, "0.1234567");
            self.text.scalar_op(Dtype::Int(1), &format!("arith.cmpf olt, {}, {} : f32", element.name, limit.name))
        };
        let result = self.text.fresh();
        let ty = x.value.ty();
        self.text.raw(&format!("{result} = scf.if {} -> ({ty}) {{", condition.name));
        let mut bound = x.bound;
        for other in [false, true] {
            if other {
                self.text.raw("} else {");
            }
            let passes = other && self.rng.below(3) == 0;
            let yielded = self.region(|g| if passes { x.clone() } else { g.binary_of(&x) });
            bound = bound.max(yielded.bound);
            self.text.raw(&format!("  scf.yield {} : {ty}", yielded.value.name));
        }
        self.text.raw("}");
        self.push(Value { name: result, ..x.value }, bound);
    }
    /// A condition that selects one of two existing values, most often inputs, and a reader of the selection.
    pub(super) fn choice(&mut self) {
        if self.depth > 1 {
            return self.unary();
        }
        let x = self.pick();
        let inputs = self.values.iter().filter(|v| v.value.name.starts_with("%arg")).count();
        let from = if self.rng.below(3) == 0 { self.values.len() } else { inputs };
        let alike = |v: &&Bounded| v.value.shape() == x.value.shape();
        let others: Vec<_> = self.values[..from].iter().filter(alike).cloned().collect();
        let y = if others.is_empty() { self.input(x.value.shape()) } else { self.rng.pick(&others).clone() };
        let condition = self.text.scalar(Dtype::Int(1), 0.0, 2.0);
        let (result, ty) = (self.text.fresh(), x.value.ty());
        self.text.raw(&format!(
            "{result} = scf.if {} -> ({ty}) {{\n    scf.yield {} : {ty}\n  }} else {{\n    scf.yield {} : {ty}\n  }}",
            condition.name, x.value.name, y.value.name
        ));
        let chosen = self.push(Value { name: result, ..x.value }, x.bound.max(y.bound));
        self.unary_of(&chosen);
    }
    /// Writes the body of a region: its values are not visible outside, but inputs are.
    pub(super) fn region<T>(&mut self, write: impl FnOnce(&mut Self) -> T) -> T {
        let visible: Vec<_> = self.values.iter().map(|v| v.value.name.clone()).collect();
        let sized = self.sized.len();
        let typed: Vec<_> = self.typed.iter().map(|v| v.name.clone()).collect();
        self.depth += 1;
        let out = write(self);
        self.depth -= 1;
        self.values.retain(|v| v.value.name.starts_with("%arg") || visible.contains(&v.value.name));
        // Regions create tensors of the other kinds only to yield them.
        self.sized.truncate(sized);
        self.typed.retain(|v| v.name.starts_with("%arg") || typed.contains(&v.name));
        out
    }
}
