//! Has the product of an attention round its weights of 16 bits.
//!
//! Before / after:
//!
//! ```text
//! %w = generic ins(%p, %s) outs(%e : f16) {          %w = generic ins(%p, %s) outs(%f : f32) {
//!   %q = divf %p, %s; truncf %q to f16 }               divf %p, %s }
//! generic ins(%w, %v) {                              generic ins(%w, %v) {
//!   %a = extf %w                                       %r = truncf %w to f16; %a = extf %r
//!   addf(%o, mulf(%a, ..)) }                           addf(%o, mulf(%a, ..)) }
//! ```
//!
//! The values are the same. Scores, powers and weights then have one type, and the row's ops are one dispatch, which
//! [`crate::attention`] joins with the products.
//! Limits: quotients of f32 that the product alone reads, into a `tensor.empty`.

use crate::linalg;
use monopour_ir::bodies::{MultiplyAdd, Quotient};
use monopour_ir::{Diagnostics, InsertionPoint, Module, Op, OpSpec, Rewriter, Type, Value, ops};

/// Rounds where a product reads.
///
/// # Errors
/// What MLIR's op builders report.
pub(crate) fn run<'c>(module: &'c Module<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    for op in module.op().find_all(ops::linalg::GENERIC) {
        if let Some(product) = op.body().filter(|body| MultiplyAdd::of(*body).is_some()).map(|_| op) {
            for read in 0..linalg::num_inputs(product) {
                if let Some(rounded) = Rounded::of(product.operand(read)) {
                    rounded.move_into(product, read, rw)?;
                }
            }
        }
    }
    Ok(())
}

/// A quotient that its op rounds.
struct Rounded<'c> {
    weights: Op<'c>,
    /// The rounding.
    round: Op<'c>,
    /// The `tensor.empty` that the op writes.
    destination: Op<'c>,
}

impl<'c> Rounded<'c> {
    /// The quotient that a value of one reader is.
    fn of(value: Value<'c>) -> Option<Self> {
        let weights = value.defining_op().filter(|op| op.is(ops::linalg::GENERIC) && op.num_results() == 1)?;
        let body = weights.body()?;
        let end = body.terminator()?;
        let round = end.operand(0).defining_op().filter(|op| op.is(ops::arith::TRUNCF))?;
        let exact = round.operand(0);
        let alone = value.uses().len() == 1 && round.result(0).uses().len() == 1;
        let writes_only = body.arg(linalg::num_inputs(weights)).is_unused();
        let destination = linalg::destination(weights, 0).defining_op().filter(|op| op.is(ops::tensor::EMPTY))?;
        let quotient = exact.ty() == Type::f32(weights.context()) && Quotient::of_value(body, exact).is_some();
        (alone && writes_only && quotient).then_some(Self { weights, round, destination })
    }

    /// Has operand `read` of `product` round, and stores the quotient as it is.
    fn move_into(&self, product: Op<'c>, read: usize, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
        let (weights, old) = (self.weights, self.weights.result(0).ty());
        let (narrow, f32) = (old.element(), Type::f32(weights.context()));
        let wide = Type::tensor(&old.shape().unwrap_or_default(), f32, None);
        let inputs = linalg::num_inputs(weights);
        rw.set_point(InsertionPoint::Before(weights));
        let spec = OpSpec::new(ops::tensor::EMPTY, weights.location()).operands(&self.destination.operands());
        let own = rw.create(spec.results(&[wide]))?;
        rw.set_operand(weights, inputs, own.result(0));
        rw.set_type(weights.result(0), wide);
        let body = weights.body().expect("invariant: a generic has a body");
        rw.set_type(body.arg(inputs), f32);
        rw.replace_op(self.round, &[self.round.operand(0)]);
        let body = product.body().expect("invariant: a generic has a body");
        let element = body.arg(read);
        rw.set_type(element, f32);
        rw.set_point(InsertionPoint::Start(body));
        let spec = OpSpec::new(ops::arith::TRUNCF, product.location()).operands(&[element]);
        let round = rw.create(spec.results(&[narrow]))?;
        for use_ in element.uses().into_iter().filter(|use_| use_.op != round) {
            rw.set_operand(use_.op, use_.index, round.result(0));
        }
        Ok(())
    }
}
