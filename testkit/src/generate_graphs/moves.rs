//! Ops of random graphs that compute nothing: explicit copies, reshapes by data, switches, checks that hold.

use super::{Bounded, Graph};
use crate::host_tensor::Dtype;
use crate::text::{Value, list, tensor};

impl Graph {
    pub(super) fn move_op(&mut self) {
        match self.rng.below(5) {
            0 => self.copied(),
            1 => self.materialized(),
            2 => self.reshaped(),
            3 => self.switched(),
            _ => self.checked(),
        }
    }

    fn copied(&mut self) {
        let x = self.pick();
        let text = format!("bufferization.alloc_tensor() copy({}) : {}", x.value.name, x.value.ty());
        let made = self.text.op(Dtype::F32, x.value.shape(), &text);
        let made = self.push(made, x.bound);
        self.binary_of(&made);
    }
    /// A copy into a new tensor, or over a value that is no longer used.
    fn materialized(&mut self) {
        let x = self.pick();
        let shape = x.value.shape().to_vec();
        let into = match self.rng.below(2) {
            0 => self.text.empty(Dtype::F32, &shape),
            _ => self.pick_where(&shape, |s| s == shape).value,
        };
        let text = format!(
            "bufferization.materialize_in_destination {} in {} : ({ty}, {ty}) -> {ty}",
            x.value.name,
            into.name,
            ty = x.value.ty()
        );
        let made = self.text.op(Dtype::F32, &shape, &text);
        self.push(made, x.bound);
    }
    /// A reshape to one or two dimensions, with the sizes in a tensor.
    fn reshaped(&mut self) {
        let x = self.pick();
        let count = x.value.len();
        let factors: Vec<_> = (1..=count).filter(|f| count.is_multiple_of(*f)).collect();
        let first = *self.rng.pick(&factors);
        let to = if self.rng.below(2) == 0 { vec![count] } else { vec![first, count / first] };
        let sizes = self.text.fresh();
        let of = format!("tensor<{}xindex>", to.len());
        self.text.raw(&format!("{sizes} = arith.constant dense<[{}]> : {of}", list(&to)));
        let into = tensor(Dtype::F32, &to);
        let text = format!("tensor.reshape {}({sizes}) : ({}, {of}) -> {into}", x.value.name, x.value.ty());
        let made = self.text.op(Dtype::F32, &to, &text);
        self.push(made, x.bound);
    }
    /// One case computes, one yields an existing value, the default is one of both.
    fn switched(&mut self) {
        if self.depth > 1 {
            return self.copied();
        }
        let x = self.pick();
        let which = self.text.scalar(Dtype::Index, 0.0, 4.0);
        let (result, ty) = (self.text.fresh(), x.value.ty());
        self.text.raw(&format!("{result} = scf.index_switch {} -> {ty}", which.name));
        let mut bound = x.bound;
        let passes = self.rng.below(3);
        for (at, head) in ["case 0 {", "case 2 {", "default {"].into_iter().enumerate() {
            self.text.raw(head);
            let yielded: Bounded = self.region(|g| if passes == at as u64 { x.clone() } else { g.binary_of(&x) });
            bound = bound.max(yielded.bound);
            self.text.raw(&format!("  scf.yield {} : {ty}\n  }}", yielded.value.name));
        }
        let chosen = self.push(Value { name: result, ..x.value }, bound);
        self.unary_of(&chosen);
    }
    fn checked(&mut self) {
        let (given, limit) = (self.text.scalar(Dtype::Index, 0.0, 6.0), self.text.index(6));
        let holds =
            self.text.scalar_op(Dtype::Int(1), &format!("arith.cmpi ult, {}, {} : index", given.name, limit.name));
        self.text.raw(&format!("cf.assert {}, \"below six\"", holds.name));
        self.copied();
    }
}
