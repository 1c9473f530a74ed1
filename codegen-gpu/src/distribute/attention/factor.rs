//! A factor of a product: a part of its body, computed from loads along one loop.

use super::super::body;
use super::super::code::Code;
use super::super::evaluate::{Evaluator, Reach};
use super::super::model::{Operand, Source, TileOp};
use super::super::types::is_vector_float;
use monopour_ir::{Block, Diagnostics, Op, Type, Value, bodies};
use std::collections::{BTreeSet, HashMap};

/// A factor, computed for neighbours along one loop of the op.
pub(super) struct Factor<'c, 'm> {
    op: &'m TileOp<'c>,
    value: Value<'c>,
    /// Positions of the operands that it reads.
    pub(super) inputs: BTreeSet<usize>,
    /// The loop of its vectors.
    along: usize,
}

impl<'c, 'm> Factor<'c, 'm> {
    pub(super) fn new(op: &'m TileOp<'c>, value: Value<'c>, along: usize) -> Option<Self> {
        let inputs = bodies::arguments(op.body?, value)?;
        Some(Self { op, value, inputs, along })
    }

    /// Whether an operand is indexed by a loop.
    pub(super) fn depends_on(&self, l: usize) -> bool {
        self.inputs.iter().any(|i| self.op.operands[*i].map.iter().any(|e| e.dims().contains(&l)))
    }

    /// The operands in buffers, with the layout of `lanes` neighbours.
    pub(super) fn operands(&self, evaluator: &Evaluator<'c, '_>, lanes: u32) -> Vec<(&'m Operand<'c>, Reach<'c>)> {
        let of = |i: &usize| {
            let operand = &self.op.operands[*i];
            let Source::Slice(s) = operand.source else { return None };
            Some((operand, evaluator.reach_along(operand, s, Some(self.along), lanes)))
        };
        self.inputs.iter().filter_map(of).collect()
    }

    /// Whether it can be computed on vectors of neighbours: of 32-bit types and short floats.
    pub(super) fn is_vectorizable(&self) -> bool {
        let lane = |ty: Type| is_vector_float(ty) || matches!(ty.integer_width(), Some(1 | 32));
        let four_bytes = |i: &usize| {
            let ty = self.op.body.map(|b| b.arg(*i).ty());
            self.op.operands[*i].linear.is_some()
                && ty.is_some_and(|ty| is_vector_float(ty) || ty.integer_width() == Some(32))
        };
        self.inputs.iter().all(four_bytes) && self.needed().iter().flat_map(|op| op.results()).all(|v| lane(v.ty()))
    }

    /// The f16 operand that it is the extension of, if it is one.
    fn halves(&self) -> Option<&'m Operand<'c>> {
        self.op.operands.get(bodies::extended_half(self.op.body?, self.value)?)
    }

    /// Whether it is f16 numbers in memory, `lanes` neighbours side by side.
    pub(super) fn is_of_halves(&self, evaluator: &Evaluator<'c, '_>, lanes: u32) -> bool {
        self.halves().is_some_and(|operand| match operand.source {
            Source::Slice(s) => evaluator.reach_along(operand, s, Some(self.along), lanes) == Reach::Wide,
            Source::Scalar(_) => false,
        })
    }

    /// The f16 numbers of [`Factor::is_of_halves`].
    pub(super) fn load_halves(
        &self,
        code: &mut Code<'c, '_>,
        evaluator: &Evaluator<'c, '_>,
        at: &[Value<'c>],
        lanes: u32,
    ) -> Value<'c> {
        let operand = self.halves().expect("invariant: planned");
        let Source::Slice(s) = operand.source else { unreachable!("invariant: planned") };
        let index = evaluator.linear_index(code, operand, s, at);
        evaluator.load(code, s, index, Reach::Wide, lanes)
    }

    /// The ops of the body that it is computed by, in order.
    fn needed(&self) -> Vec<Op<'c>> {
        let Some(body) = self.op.body else { return vec![] };
        let mut found = vec![];
        let mut next = vec![self.value];
        while let Some(op) = next.pop().map(|value| inside(body, value)) {
            if let Some(op) = op.filter(|op| !found.contains(op)) {
                found.push(op);
                next.extend(op.operands());
            }
        }
        body.ops().into_iter().filter(|op| found.contains(op)).collect()
    }

    /// The factor at these values of the op's loops, for `lanes` neighbours from there on.
    pub(super) fn load(
        &self,
        code: &mut Code<'c, '_>,
        evaluator: &Evaluator<'c, '_>,
        at: &[Value<'c>],
        lanes: u32,
    ) -> Result<Value<'c>, Diagnostics> {
        let body = self.op.body.expect("invariant: a factor is a value of a body");
        let mut map = HashMap::new();
        for i in &self.inputs {
            let operand = &self.op.operands[*i];
            let value = match operand.source {
                Source::Scalar(value) => value,
                Source::Slice(s) => {
                    let index = evaluator.linear_index(code, operand, s, at);
                    let reach = evaluator.reach_along(operand, s, Some(self.along), lanes);
                    evaluator.load(code, s, index, reach, lanes)
                }
            };
            map.insert(body.arg(*i), value);
        }
        for op in self.needed() {
            body::copy_op(evaluator, code, op, at, lanes, &mut map)?;
        }
        let value = map.get(&self.value).copied().unwrap_or(self.value);
        Ok(code.broadcast(value, lanes))
    }
}

fn inside<'c>(body: Block<'c>, value: Value<'c>) -> Option<Op<'c>> {
    value.defining_op().filter(|op| op.block() == Some(body))
}
