//! A step of the online softmax: the maximum so far, the factor of what was summed before, powers.

use super::super::code::Code;
use super::tile::float;
use monopour_ir::ops;
use monopour_ir::typed::arith::CmpFPredicate;
use monopour_ir::{Diagnostics, OpSpec, Type, Value};

/// The larger number; NaNs reach the powers anyway.
pub(super) fn larger<'c>(code: &mut Code<'c, '_>, a: Value<'c>, b: Value<'c>) -> Value<'c> {
    code.op1(ops::arith::MAXNUMF, &[a, b], a.ty())
}

/// A maximum as the number that scores are compared with: 0 for negative infinity.
pub(super) fn reference<'c>(code: &mut Code<'c, '_>, most: Value<'c>) -> Result<Value<'c>, Diagnostics> {
    let (least, zero) = (float(code, f64::NEG_INFINITY), float(code, 0.0));
    let spec = OpSpec::new(ops::arith::CMPF, code.loc)
        .operands(&[most, least])
        .results(&[Type::integer(code.cx, 1)])
        .attr("predicate", CmpFPredicate::Oeq.to_attr(code.cx));
    let none = code.create(spec)?.result(0);
    Ok(code.op1(ops::arith::SELECT, &[none, zero, most], most.ty()))
}

/// `exp(score - reference)`.
pub(super) fn power<'c>(code: &mut Code<'c, '_>, score: Value<'c>, reference: Value<'c>) -> Value<'c> {
    let difference = code.op1(ops::arith::SUBF, &[score, reference], score.ty());
    code.op1(ops::math::EXP, &[difference], score.ty())
}

/// The score of a key, negative infinity where it is out of range.
pub(super) fn masked<'c>(code: &mut Code<'c, '_>, score: Value<'c>, guard: Option<Value<'c>>) -> Value<'c> {
    let Some(guard) = guard else { return score };
    let least = float(code, f64::NEG_INFINITY);
    code.op1(ops::arith::SELECT, &[guard, score, least], score.ty())
}
