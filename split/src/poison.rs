//! Fills of buffers before their first write and behind their last use, so that what is read there shows in the results.
//!
//! ```text
//! %0 = memref.alloc                            %0 = memref.view %arena[..]; memref.dealloc %0 {monopour.poison}
//! dispatch(%0)                     plan: ==>   dispatch(%0)
//! dispatch(%0, %r)                             dispatch(%0, %r); memref.dealloc %0 {monopour.poison}
//! memref.dealloc %0
//! ```
//! The plan marks; the schedule fills what is marked, and each allocation of the pool when it is made and when it is freed.
//! Limits: whole patterns only, so that up to three bytes at the end of a buffer stay; memory within kernels is not filled.

use crate::buffers::{Buffer, number};
use crate::error;
use crate::schedule::State;
use monopour_contract::RuntimeFunction;
use monopour_ir::{Builder, Diagnostics, Location, Op};

/// What poisoned buffers hold: NaNs of each type of floats of 16 bits or more, and no small integers.
const POISON: i64 = 0xfffd_fffd;

/// Bytes of the pattern.
const WORD_BYTES: u64 = 4;

/// Fills all of an allocation.
///
/// # Errors
/// IR errors.
pub(crate) fn fill_all<'c>(
    state: &mut State<'c>,
    b: &mut Builder<'c>,
    loc: Location<'c>,
    of: &Buffer<'c>,
) -> Result<(), Diagnostics> {
    let [start, all, pattern] = [0, -1, POISON].map(|n| number(b, n, loc));
    state.call(b, loc, RuntimeFunction::Fill, &[of.handle, start, all, pattern]).map(|_| ())
}

/// Fills a place that is marked.
///
/// # Errors
/// IR errors.
pub(crate) fn fill_place<'c>(state: &mut State<'c>, b: &mut Builder<'c>, mark: Op<'c>) -> Result<(), Diagnostics> {
    let (loc, ty) = (mark.location(), mark.operand(0).ty());
    let buffer = state.buffer(mark, mark.operand(0))?;
    if ty.static_size_bytes().is_none() {
        return fill_all(state, b, loc, &buffer);
    }
    let start = buffer.start(b, mark, ty)?.value(b, loc);
    let bytes = ty.static_size_bytes().and_then(|bytes| i64::try_from(bytes / WORD_BYTES * WORD_BYTES).ok());
    let [bytes, pattern] = [bytes.unwrap_or(0), POISON].map(|n| number(b, n, loc));
    state.call(b, loc, RuntimeFunction::Fill, &[buffer.handle, start, bytes, pattern]).map(|_| ())
}

/// A poison value as a buffer, which no op may read.
///
/// # Errors
/// S0003, for a value that is no memref.
pub(crate) fn undefined<'c>(state: &mut State<'c>, b: &mut Builder<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    let memref = op.result(0).ty().as_memref().ok_or_else(|| error::not_schedulable(op))?;
    let zeros = vec![number(b, 0, op.location()); Buffer::flat_len(&memref)];
    state.set_buffer(op.result(0), Buffer::unflatten(&zeros, &memref));
    Ok(())
}
