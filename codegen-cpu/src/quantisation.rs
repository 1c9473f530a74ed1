//! Ops of quantisation in forms that have short sequences of instructions.
//!
//! Before / after, a division by a constant whose result is rounded to an integer:
//!
//! ```text
//! %q = arith.divf %x, %c : f32            %p = mulf %x, 1 / c; %e = fma(-%p, c, %x); %r = fma(%e, 1 / c, %p)
//! %n = math.roundeven %q : f32            %n = math.roundeven (%e is finite and not 0 ? %r : %p)
//! ```
//!
//! A division of a register takes 16 cycles, these take six. `%r` is the quotient, correctly rounded: `1 / c` is, and the
//! error of `%p` is exact (Markstein, IBM J. Res. Dev. 34, 1990), unless something under- or overflows. The error underflows
//! only where the quotient of a divisor of ordinary size is next to zero, which rounds to zero either way: hence the limits.
//! Where `%p` is infinite or NaN, so is the quotient; where there is no error, `%p` has the right sign of zero.
//! Limits: f32; divisors between 2^-60 and 2^60; CPUs with a fused multiply-add.
//!
//! A bound that is no NaN:
//!
//! ```text
//! %m = arith.maxnumf %x, %c : f32         %m = %x > c ? %x : c
//! ```
//!
//! Both give `c` for a NaN. x86 has an instruction for the second form; LLVM makes four of the first.

use crate::abi;
use crate::math::has_fma;
use monopour_ir::typed::arith::CmpFPredicate;
use monopour_ir::{Attr, InsertionPoint, Module, Op, OpSpec, Rewriter, Type, Value, ops};
use monopour_program::CpuTarget;

/// Rewrites such ops of all kernels.
pub(crate) fn run(module: &Module, cpu: &CpuTarget) {
    let mut rw = Rewriter::new(module.context());
    for kernel in module.functions().into_iter().filter(|f| abi::is_kernel(*f)) {
        for (name, predicate) in [(ops::arith::MAXNUMF, CmpFPredicate::Ogt), (ops::arith::MINNUMF, CmpFPredicate::Olt)]
        {
            kernel.find_all(name).into_iter().for_each(|op| bound(&mut rw, op, predicate));
        }
        for op in kernel.find_all(ops::arith::DIVF).into_iter().filter(|_| has_fma(cpu)) {
            if let Some(divisor) = divisor(op) {
                rewrite(&mut rw, op, divisor);
            }
        }
    }
}

/// The value of a constant.
fn number(value: Value) -> Option<f64> {
    value.defining_op().filter(|op| op.is(ops::arith::CONSTANT))?.attr("value")?.as_float()
}

/// Replaces a maximum or minimum with a constant by a comparison and a choice.
fn bound<'c>(rw: &mut Rewriter<'c>, op: Op<'c>, predicate: CmpFPredicate) {
    let constant = (0..2).find(|i| number(op.operand(*i)).is_some_and(|number| !number.is_nan()));
    let Some(constant) = constant else { return };
    let (x, c, loc) = (op.operand(1 - constant), op.operand(constant), op.location());
    rw.set_point(InsertionPoint::Before(op));
    let spec = OpSpec::new(ops::arith::CMPF, loc).operands(&[x, c]).results(&[Type::integer(op.context(), 1)]);
    let spec = spec.attr("predicate", predicate.to_attr(op.context()));
    let beyond = rw.create(spec).expect("invariant: a comparison of floats builds").result(0);
    let spec = OpSpec::new(ops::arith::SELECT, loc).operands(&[beyond, x, c]).results(&[x.ty()]);
    let chosen = rw.create(spec).expect("invariant: a choice of floats builds").result(0);
    rw.replace_op(op, &[chosen]);
}

/// The divisor of a division that can be rewritten.
fn divisor(op: Op) -> Option<f32> {
    let (x, result) = (op.operand(0).ty(), op.result(0));
    let rounded = result.uses().iter().all(|used| used.op.is(ops::math::ROUNDEVEN)) && !result.is_unused();
    let value = number(op.operand(1))? as f32;
    let ordinary = value.abs() > 2f32.powi(-60) && value.abs() < 2f32.powi(60);
    (rounded && ordinary && x == Type::f32(op.context())).then_some(value)
}

fn rewrite<'c>(rw: &mut Rewriter<'c>, op: Op<'c>, divisor: f32) {
    let (loc, x, c) = (op.location(), op.operand(0), op.operand(1));
    let (cx, f32) = (op.context(), Type::f32(op.context()));
    rw.set_point(InsertionPoint::Before(op));
    let mut make = |spec: OpSpec<'c, '_>| rw.create(spec).expect("invariant: an op of floats builds").result(0);
    let mut constant = |value: f32| {
        let value = Attr::float(f32, f64::from(value));
        make(OpSpec::new(ops::arith::CONSTANT, loc).results(&[f32]).attr("value", value))
    };
    let (reciprocal, zero) = (constant(1.0 / divisor), constant(0.0));
    let mut op_of = |name, operands: &[Value<'c>]| make(OpSpec::new(name, loc).operands(operands).results(&[f32]));
    let product = op_of(ops::arith::MULF, &[x, reciprocal]);
    let negated = op_of(ops::arith::NEGF, &[product]);
    let error = op_of(ops::math::FMA, &[negated, c, x]);
    let quotient = op_of(ops::math::FMA, &[error, reciprocal, product]);
    // NaN for an infinite error; ordered and not equal is a finite one that is not 0.
    let nothing = op_of(ops::arith::MULF, &[error, zero]);
    let spec = OpSpec::new(ops::arith::CMPF, loc).operands(&[error, nothing]).results(&[Type::integer(cx, 1)]);
    let counts = make(spec.attr("predicate", CmpFPredicate::One.to_attr(cx)));
    let chosen = make(OpSpec::new(ops::arith::SELECT, loc).operands(&[counts, quotient, product]).results(&[f32]));
    rw.replace_op(op, &[chosen]);
}
