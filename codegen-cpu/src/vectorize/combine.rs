//! The combining op of a reduction: associative and commutative.

use super::nest::Nest;
use monopour_ir::bodies::constant;
use monopour_ir::typed::arith::CmpFPredicate;
use monopour_ir::{Associative, Attr, Op, Type, Value, ops};

/// One output's combining op.
#[derive(Clone, Copy, Debug)]
pub(super) struct Combiner<'c> {
    /// `arith.addf` or the like.
    pub(super) op: Op<'c>,
    kind: Associative,
    /// The value that is combined with the accumulator, from the body or from outside.
    pub(super) term: Value<'c>,
}

impl<'c> Combiner<'c> {
    /// Whether lanes may be initialised with the accumulator.
    pub(super) fn is_idempotent(&self) -> bool {
        self.kind.is_idempotent
    }

    /// The comparison with the accumulator that a term passes to replace it, of ops that drop NaNs.
    pub(super) fn outdoes(&self) -> Option<CmpFPredicate> {
        match self.op.name() {
            ops::arith::MAXNUMF => Some(CmpFPredicate::Ogt),
            ops::arith::MINNUMF => Some(CmpFPredicate::Olt),
            _ => None,
        }
    }

    /// The comparison that an accumulator passes to stay, of ops that pass NaNs on.
    pub(super) fn outlasts(&self) -> Option<CmpFPredicate> {
        match self.op.name() {
            ops::arith::MAXIMUMF => Some(CmpFPredicate::Ogt),
            ops::arith::MINIMUMF => Some(CmpFPredicate::Olt),
            _ => None,
        }
    }

    /// The neutral element, which lanes are initialised with otherwise.
    pub(super) fn neutral(&self) -> Attr<'c> {
        self.kind.identity(self.ty())
    }

    /// Type of the accumulator.
    pub(super) fn ty(&self) -> Type<'c> {
        self.op.result(0).ty()
    }
}

/// The combiners of all outputs; `None` if an output is computed in another way.
pub(super) fn of<'c>(nest: &Nest<'c>) -> Option<Vec<Combiner<'c>>> {
    let yielded = nest.yielded();
    (0..nest.outputs.len()).map(|i| combiner(nest, i, *yielded.get(i)?)).collect()
}

fn combiner<'c>(nest: &Nest<'c>, output: usize, yielded: Value<'c>) -> Option<Combiner<'c>> {
    let accumulator = nest.output_arg(output);
    let op = yielded.defining_op().filter(|op| op.block() == Some(nest.body))?;
    let kind = Associative::of(op)?;
    let once = accumulator.uses().len() == 1 && yielded.uses().len() == 1;
    let side = op.operands().iter().position(|v| *v == accumulator)?;
    once.then(|| Combiner { op, kind, term: op.operand(1 - side) })
}

/// Whether a value is a constant float other than NaN.
pub(super) fn is_number(value: Value) -> bool {
    constant(value).is_some_and(|value| !value.is_nan())
}
