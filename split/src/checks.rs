//! Run-time checks of host code; a failed one ends the run.
//!
//! Before / after:
//!
//! ```mlir
//! cf.assert %ok, "too many rows"     scf.if %not_ok {
//!                                      call @monopour_rt_message(%cx, %eight_bytes) ..      (as often as it takes)
//!                                      call @monopour_rt_trap(%cx, %c3)
//!                                    }
//! ```
//!
//! After a failed check all runtime calls do nothing, so that the code behind it needs no branch.

use crate::buffers::{Num, number};
use crate::schedule::State;
use crate::{regions, scalars};
use monopour_contract::{RuntimeFunction, Trap};
use monopour_ir::ops;
use monopour_ir::typed::arith::CmpIPredicate;
use monopour_ir::{Builder, Diagnostics, Location, Op, OpSpec, Type, Value};

/// Longest message, in bytes; longer ones are truncated.
const MAX_MESSAGE: usize = 512;
/// Sizes from here on are negative numbers or mistakes: no machine has as many elements.
const SIZE_LIMIT: i64 = 1 << 47;

/// Ends the run where `failed` holds.
///
/// # Errors
/// MLIR's, none on verified IR.
pub(crate) fn trap_when<'c>(
    state: &mut State<'c>,
    b: &mut Builder<'c>,
    loc: Location<'c>,
    failed: Value<'c>,
    trap: Trap,
    message: &str,
) -> Result<(), Diagnostics> {
    regions::when(b, loc, failed, |b| {
        for chunk in message.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            let word = number(b, i64::from_le_bytes(word), loc);
            state.call(b, loc, RuntimeFunction::Message, &[word])?;
        }
        let code = number(b, trap.code(), loc);
        state.call(b, loc, RuntimeFunction::Trap, &[code]).map(|_| ())
    })
}

/// Lowers a `cf.assert`.
///
/// # Errors
/// S0003 for a condition that host code does not have.
pub(crate) fn assert<'c>(state: &mut State<'c>, b: &mut Builder<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    let loc = op.location();
    let condition = state.scalar(op, op.operand(0))?;
    let holds = scalars::to_bits(b, loc, condition)?;
    let zero = number(b, 0, loc);
    let failed = scalars::compare(b, loc, CmpIPredicate::Eq, holds, zero)?;
    let message = op.attr("msg").and_then(|a| a.as_string().map(str::to_owned)).unwrap_or_default();
    trap_when(state, b, loc, failed, Trap::Assertion, shortened(&message))
}

fn shortened(message: &str) -> &str {
    let mut end = message.len().min(MAX_MESSAGE);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    &message[..end]
}

/// Ends the run where a size of an allocation is negative or their product exceeds all memory, so that the byte count never
/// wraps.
///
/// # Errors
/// MLIR's, none on verified IR.
pub(crate) fn sizes<'c>(
    state: &mut State<'c>,
    b: &mut Builder<'c>,
    loc: Location<'c>,
    sizes: &[Num<'c>],
) -> Result<(), Diagnostics> {
    match are_impossible(b, loc, sizes)? {
        Some(failed) => trap_when(state, b, loc, failed, Trap::Size, ""),
        None => Ok(()),
    }
}

/// Whether a size is negative or their product exceeds all memory; `None` for static sizes. The product is taken in f64, which does
/// not wrap.
///
/// # Errors
/// MLIR's, none on verified IR.
pub(crate) fn are_impossible<'c>(
    b: &mut Builder<'c>,
    loc: Location<'c>,
    sizes: &[Num<'c>],
) -> Result<Option<Value<'c>>, Diagnostics> {
    if sizes.iter().all(|size| matches!(size, Num::Const(_))) {
        return Ok(None);
    }
    let cx = b.context();
    let (f64_ty, bool_ty) = (Type::f64(cx), Type::integer(cx, 1));
    let mut failed: Option<Value> = None;
    let mut product: Option<Value> = None;
    for size in sizes {
        let value = size.value(b, loc);
        if let Num::Value(value) = size {
            let limit = number(b, SIZE_LIMIT, loc);
            let bad = scalars::compare(b, loc, CmpIPredicate::Uge, *value, limit)?;
            failed = Some(combine(b, loc, ops::arith::ORI, failed, bad, bool_ty)?);
        }
        let exact = b.create(OpSpec::new(ops::arith::UITOFP, loc).operands(&[value]).results(&[f64_ty]))?.result(0);
        product = Some(combine(b, loc, ops::arith::MULF, product, exact, f64_ty)?);
    }
    let (Some(failed), Some(product)) = (failed, product) else { return Ok(None) };
    let elements = scalars::at_least(b, loc, product, SIZE_LIMIT as f64)?;
    combine(b, loc, ops::arith::ORI, Some(failed), elements, bool_ty).map(Some)
}

fn combine<'c>(
    b: &mut Builder<'c>,
    loc: Location<'c>,
    name: &str,
    before: Option<Value<'c>>,
    next: Value<'c>,
    ty: Type<'c>,
) -> Result<Value<'c>, Diagnostics> {
    let Some(before) = before else { return Ok(next) };
    Ok(b.create(OpSpec::new(name, loc).operands(&[before, next]).results(&[ty]))?.result(0))
}
