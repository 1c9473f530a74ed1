//! Other forms of values that convolutions gain by: what is around them follows, the rest reads a copy or a reshape.

use super::copies::behind;
use monopour_ir::{Diagnostics, Module, Op, Rewriter, Type, Value, ops};
use std::collections::{HashMap, HashSet};

/// A form of values, and what keeps it.
pub(super) trait Form {
    /// Whether a generic gains so much by the form that it is worth the copies.
    fn gains(op: Op) -> bool;
    /// Whether a generic does with the form what it does without.
    fn follows(op: Op) -> bool;
    /// The operands of an op that get the form if its results do; `None` of an op that reads or writes in another way.
    fn operands(op: Op) -> Option<Vec<usize>>;
    /// Gives a generic's results and these operands the form.
    fn rewrite<'c>(op: Op<'c>, operands: &[usize], rw: &mut Rewriter<'c>);
    /// Gives the offsets (0), sizes or strides (1 each, as a dimension of one element has) of a slice the form.
    fn slice(list: &mut Vec<i64>, of_one: i64);
    fn ty<'c>(plain: Type<'c>) -> Type<'c>;
    /// Lets an input of an op that does not follow be read in the form; false if that is no matter of its maps.
    fn reads<'c>(op: Op<'c>, input: usize, rw: &mut Rewriter<'c>) -> bool;
    /// A plain value in the form.
    ///
    /// # Errors
    /// What MLIR's op builders report.
    fn into<'c>(plain: Value<'c>, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics>;
    /// A value in the form as a plain one; its type was `plain`.
    ///
    /// # Errors
    /// What MLIR's op builders report.
    fn out_of<'c>(value: Value<'c>, plain: Type<'c>, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics>;
}

/// Gives all values of `module` that gain by it the form.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(super) fn run<'c, F: Form>(module: &'c Module<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    let mut values = Values::default();
    for op in module.op().find_all(ops::linalg::GENERIC) {
        if F::gains(op) {
            values.add::<F>(op);
        }
    }
    while let Some(value) = values.new.pop() {
        let readers = value.uses().into_iter().map(|used| used.op);
        for op in value.defining_op().into_iter().chain(readers) {
            let follows = match op.name() {
                ops::linalg::FILL | ops::tensor::EMPTY => true,
                ops::tensor::INSERT_SLICE | ops::tensor::EXTRACT_SLICE => true,
                ops::linalg::GENERIC => F::follows(op),
                _ => false,
            };
            if follows {
                values.add::<F>(op);
            }
        }
    }
    values.rewrite::<F>(rw)
}

/// Values that get a form, and the ops that follow.
#[derive(Default)]
struct Values<'c> {
    /// In the order of their discovery, with the operands that get it.
    ops: Vec<(Op<'c>, Vec<usize>)>,
    known: HashSet<Op<'c>>,
    all: Vec<Value<'c>>,
    found: HashSet<Value<'c>>,
    /// Those of `all` whose makers and readers were not yet asked.
    new: Vec<Value<'c>>,
}

impl<'c> Values<'c> {
    fn add<F: Form>(&mut self, op: Op<'c>) {
        if self.known.contains(&op) {
            return;
        }
        let Some(operands) = F::operands(op) else { return };
        self.known.insert(op);
        for value in operands.iter().map(|i| op.operand(*i)).chain(op.results()) {
            if self.found.insert(value) {
                self.all.push(value);
                self.new.push(value);
            }
        }
        self.ops.push((op, operands));
    }

    fn rewrite<F: Form>(&self, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
        for (op, operands) in &self.ops {
            match op.name() {
                ops::linalg::GENERIC => F::rewrite(*op, operands, rw),
                ops::tensor::INSERT_SLICE | ops::tensor::EXTRACT_SLICE => slice::<F>(*op, rw),
                _ => (),
            }
        }
        let inside: HashMap<Op, &Vec<usize>> = self.ops.iter().map(|(op, operands)| (*op, operands)).collect();
        for value in &self.all {
            let follows = |op: Op, index: usize| inside.get(&op).is_some_and(|operands| operands.contains(&index));
            let (following, others): (Vec<_>, Vec<_>) =
                value.uses().into_iter().partition(|used| follows(used.op, used.index));
            if value.defining_op().is_some_and(|op| inside.contains_key(&op)) {
                let plain = value.ty();
                rw.set_type(*value, F::ty(plain));
                let others: Vec<_> = others.into_iter().filter(|used| !F::reads(used.op, used.index, rw)).collect();
                if !others.is_empty() {
                    behind(*value, rw);
                    let copy = F::out_of(*value, plain, rw)?;
                    others.into_iter().for_each(|used| rw.set_operand(used.op, used.index, copy));
                }
            } else {
                behind(*value, rw);
                let copy = F::into(*value, rw)?;
                following.into_iter().for_each(|used| rw.set_operand(used.op, used.index, copy));
            }
        }
        Ok(())
    }
}

fn slice<'c, F: Form>(op: Op<'c>, rw: &mut Rewriter<'c>) {
    for (name, of_one) in [("static_offsets", 0), ("static_sizes", 1), ("static_strides", 1)] {
        let mut list = op.attr(name).and_then(|a| a.as_ints()).unwrap_or_default();
        F::slice(&mut list, of_one);
        rw.set_attr(op, name, monopour_ir::Attr::dense_i64(op.context(), &list));
    }
}
