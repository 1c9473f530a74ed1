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
//! Where that integer is stored in few bits: `stored`.
//!
//! A bound that is no NaN:
//!
//! ```text
//! %m = arith.maxnumf %x, %c : f32         %m = %x > c ? %x : c
//! ```
//!
//! Both give `c` for a NaN. x86 has an instruction for the second form; LLVM makes four of the first.

mod stored;

use crate::abi;
use crate::math::has_fma;
use monopour_ir::typed::arith::CmpFPredicate;
use monopour_ir::{Attr, InsertionPoint, Location, Module, Op, OpSpec, Rewriter, Type, Value, ops};
use monopour_program::CpuTarget;
use stored::Stored;

/// Rewrites such ops of all kernels.
pub(crate) fn run(module: &Module, cpu: &CpuTarget) {
    let mut rw = Rewriter::new(module.context());
    for kernel in module.functions().into_iter().filter(|f| abi::is_kernel(*f)) {
        for op in [ops::arith::FPTOUI, ops::arith::FPTOSI].into_iter().flat_map(|name| kernel.find_all(name)) {
            if let Some(found) = Stored::of(op).filter(|_| has_fma(cpu)) {
                found.rewrite(&mut rw);
            }
        }
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
    let (x, c) = (op.operand(1 - constant), op.operand(constant));
    let mut make = Maker::before(rw, op);
    let beyond = make.compare(predicate, x, c);
    let chosen = make.op(ops::arith::SELECT, &[beyond, x, c], x.ty());
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
    let mut make = Maker::before(rw, op);
    let [product, error, quotient] = make.quotient(op.operand(0), divisor);
    // NaN for an infinite error; ordered and not equal is a finite one that is not 0.
    let zero = make.number(0.0);
    let nothing = make.float(ops::arith::MULF, &[error, zero]);
    let counts = make.compare(CmpFPredicate::One, error, nothing);
    let chosen = make.float(ops::arith::SELECT, &[counts, quotient, product]);
    rw.replace_op(op, &[chosen]);
}

/// Makes ops of numbers.
struct Maker<'c, 'a> {
    rw: &'a mut Rewriter<'c>,
    loc: Location<'c>,
    f32: Type<'c>,
}

impl<'c, 'a> Maker<'c, 'a> {
    fn before(rw: &'a mut Rewriter<'c>, op: Op<'c>) -> Self {
        rw.set_point(InsertionPoint::Before(op));
        let f32 = Type::f32(rw.context());
        Self { rw, loc: op.location(), f32 }
    }

    fn make(&mut self, spec: OpSpec<'c, '_>) -> Value<'c> {
        self.rw.create(spec).expect("invariant: an op of numbers builds").result(0)
    }

    fn op(&mut self, name: &'static str, operands: &[Value<'c>], ty: Type<'c>) -> Value<'c> {
        self.make(OpSpec::new(name, self.loc).operands(operands).results(&[ty]))
    }

    fn float(&mut self, name: &'static str, operands: &[Value<'c>]) -> Value<'c> {
        self.op(name, operands, self.f32)
    }

    fn number(&mut self, value: f32) -> Value<'c> {
        let value = Attr::float(self.f32, f64::from(value));
        self.make(OpSpec::new(ops::arith::CONSTANT, self.loc).results(&[self.f32]).attr("value", value))
    }

    fn compare(&mut self, predicate: CmpFPredicate, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        let cx = self.rw.context();
        let spec = OpSpec::new(ops::arith::CMPF, self.loc).operands(&[a, b]).results(&[Type::integer(cx, 1)]);
        self.make(spec.attr("predicate", predicate.to_attr(cx)))
    }

    /// The product with the reciprocal, its error, and where that is finite the quotient.
    fn quotient(&mut self, x: Value<'c>, divisor: f32) -> [Value<'c>; 3] {
        let [c, reciprocal] = [divisor, 1.0 / divisor].map(|value| self.number(value));
        let product = self.float(ops::arith::MULF, &[x, reciprocal]);
        let negated = self.float(ops::arith::NEGF, &[product]);
        let error = self.float(ops::math::FMA, &[negated, c, x]);
        [product, error, self.float(ops::math::FMA, &[error, reciprocal, product])]
    }
}
